//! Asks a model on behalf of two kinds of assertions: how similar two texts are, and whether a text meets a rubric.

use serde_json::{Value, json};

use crate::model;
use crate::prompt::Registry;
use crate::prompt::test::{JudgeAnswer, JudgeQuestion};
use crate::template;

use super::super::models::chosen_model;
use super::super::{RunOptions, SetupError, gather_model_surroundings};
use super::attempt::{AttemptContext, ask_once};

/// The prompt of the judge.
const RUBRIC: &str = "rubric";

/// Answers a question about an output. Also returns the cost in USD, if known. If the judge cannot answer, the result
/// says so: it fails the assertion, not the test run.
pub(super) async fn answer_question(
    around: AttemptContext<'_>,
    registry: &Registry,
    question: JudgeQuestion<'_>,
    output: &str,
) -> (JudgeAnswer, Option<f64>) {
    let answered = match question {
        JudgeQuestion::Likeness { texts } => {
            measure_likeness(around, texts, output).await.map(|judged| (judged, None))
        }
        JudgeQuestion::Rubric { rubric, model } => ask_verdict(around, registry, rubric, model, output).await,
    };
    answered.unwrap_or_else(|why| (JudgeAnswer::Failed(why), None))
}

async fn ask_verdict(
    around: AttemptContext<'_>,
    registry: &Registry,
    rubric: &str,
    model: Option<&str>,
    output: &str,
) -> Result<(JudgeAnswer, Option<f64>), String> {
    let prompt = registry.get(RUBRIC).map_err(|error| error.to_string())?;
    let context = template::convert_value(&json!({ "rubric": rubric, "output": output, "vars": {} }));
    let question = prompt.render(&context).map_err(|error| error.to_string())?;
    let schema = json!({
        "type": "object",
        "properties": { "reason": { "type": "string" }, "pass": { "type": "boolean" } },
        "required": ["reason", "pass"],
        "additionalProperties": false,
    });
    let model = model.map(str::to_owned).or_else(|| around.options.model.clone());
    let options = RunOptions { model, ..around.options.clone() };
    let around = AttemptContext { options: &options, ..around };
    let reply = ask_once(around, question, schema).await.map_err(|error| format!("no judge: {error}"))?;
    if let Some(why) = reply.failure {
        return Err(format!("the judge gave no answer: {why}"));
    }
    let answer: Value = serde_json::from_str(&reply.output).unwrap_or_default();
    match (answer["pass"].as_bool(), answer["reason"].as_str()) {
        (Some(pass), Some(reason)) => Ok((JudgeAnswer::Verdict { pass, reason: reason.to_owned() }, reply.cost)),
        _ => Err("the judge's answer has no `pass` and `reason`".to_owned()),
    }
}

async fn measure_likeness(
    around: AttemptContext<'_>,
    texts: &[String],
    output: &str,
) -> Result<JudgeAnswer, String> {
    let told = |error: SetupError| error.to_string();
    let config = around.config;
    let agent = config.agent(around.options.agent.as_deref()).map_err(|error| error.to_string())?;
    let chosen = chosen_model(config, agent, around.options).map_err(told)?;
    let around = gather_model_surroundings(config, around.options).map_err(told)?;
    let embedder = model::connect_embedder(&chosen, &config.settings.tools.embedding_model, &around)
        .map_err(|error| error.to_string())?;
    let all: Vec<String> = std::iter::once(output.to_owned()).chain(texts.iter().cloned()).collect();
    let vectors = embedder.embed(&all).await.map_err(|error| error.to_string())?;
    let Some((output, texts)) = vectors.split_first() else {
        return Err("the server made no embeddings".to_owned());
    };
    let nearest = texts.iter().map(|text| measure_cosine(output, text)).fold(-1.0, f64::max);
    Ok(JudgeAnswer::Likeness(nearest))
}

/// The cosine of the angle between two vectors; 0 if one of them is zero.
fn measure_cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { dot(a, b) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::measure_cosine;

    #[test]
    fn the_cosine_of_two_vectors() {
        for (a, b, expected) in [
            ([1.0, 0.0], [2.0, 0.0], 1.0),
            ([1.0, 0.0], [0.0, 3.0], 0.0),
            ([1.0, 1.0], [-1.0, -1.0], -1.0),
            ([0.0, 0.0], [1.0, 0.0], 0.0),
        ] {
            assert!((measure_cosine(&a, &b) - expected).abs() < 1e-9, "{a:?} {b:?}");
        }
    }
}
