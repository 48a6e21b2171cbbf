//! Refusals of real servers, by public documents and issues. Each file of `tests/refusal_cases/` lists some: where they
//! stand, the answer, and what it is about, as a person judged it. The program has to treat it as that: to add a case,
//! add an entry. `known` gives the reason of one that is treated otherwise.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Surroundings;
use super::super::errors::{Hints, StatedError, judge_failure};
use super::super::gather_facts;
use super::super::learn::learn_lesson;
use super::super::plan::RequestPlan;
use super::super::refused::PictureRefusal;
use super::conversations::tool;
use crate::base::yaml;
use crate::config::ModelConfig;
use crate::model::{ModelError, ModelErrorKind, ToolDefinition};

/// A refusal, and what it is about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusalCase {
    /// The address of the document.
    from: String,
    /// `None` in mid-stream.
    status: Option<u16>,
    wire: String,
    model: String,
    body: String,
    /// `field NAME`, `picture`, `tokens`, …
    about: String,
    /// `usual`: only the words were quoted, in the shape that this provider uses.
    #[serde(rename = "shape")]
    _shape: Option<String>,
    /// The reason that it is treated otherwise.
    known: Option<String>,
}

impl RefusalCase {
    /// A plan with everything in it that a request can have, and the field that was refused, if nothing knows it.
    fn plan(&self) -> RequestPlan {
        let field = self.about.strip_prefix("field ").unwrap_or("unheard_of");
        let config = json!({
            "name": "m", "provider": "openai", "base_url": "https://models.example/v1", "model": self.model,
            "wire": self.wire, "temperature": 0.5, "reasoning_effort": "high", "max_output_tokens": 100_000,
            "extra_body": { field: 1 },
            "capabilities": { "strict_tools": true, "vision": true, "structured_output": true,
                "prompt_cache_key": true, "cache_breakpoints": true },
        });
        let config: ModelConfig = serde_json::from_value(config).expect("a model");
        let (_, known) = gather_facts(&config, &self.model, &Surroundings::default());
        let (mut plan, _) = RequestPlan::new(&config, &self.model, "models.example/v1", known).expect("a plan");
        plan.dialect.chat.parallel_field = true;
        plan.dialect.responses.parallel_field = true;
        plan.dialect.anthropic.eager_stream = true;
        plan.dialect.anthropic.parallel_switch = true;
        plan.dialect.anthropic.interleaved_beta = true;
        plan.dialect.anthropic.answer_format = true;
        plan
    }

    /// What the program takes the refusal for, in the words of `about`; several where it has several answers.
    fn treat(&self) -> Vec<&'static str> {
        let error = judge_failure(self.status, StatedError::read(&self.body), Hints::default(), &self.model);
        match error.kind {
            ModelErrorKind::ContextTooLong => match error.find_picture_refusal() {
                Some(PictureRefusal::TooLarge) => vec!["bytes"],
                _ => vec!["tokens"],
            },
            ModelErrorKind::Authentication => vec!["key"],
            ModelErrorKind::Quota => vec!["quota"],
            ModelErrorKind::RateLimit => vec!["rate"],
            ModelErrorKind::BadRequest => self.treat_request(&error),
            _ => vec!["overloaded"],
        }
    }

    fn treat_request(&self, error: &ModelError) -> Vec<&'static str> {
        let mut ways = Vec::new();
        let names: Vec<String> = (0..60).map(|number| format!("tool_{number}")).collect();
        let all = ["get_room_layout", "mysql_execute"].into_iter().chain(names.iter().map(String::as_str));
        let tools: Vec<ToolDefinition> = all.map(tool).collect();
        if let Some(lesson) = learn_lesson(&self.plan(), error, &tools) {
            ways.push("field");
            let by_notice = [
                ("reasoning", "signature"),
                ("its reasoning back", "signature"),
                ("does not see", "picture"),
                ("schema", "schema"),
                ("strict", "schema"),
                ("refuses a tool", "schema"),
                ("after results", "order"),
                ("over Responses", "wire"),
            ];
            ways.extend(by_notice.iter().filter(|(words, _)| lesson.notice.contains(words)).map(|(_, way)| *way));
        }
        match error.find_picture_refusal() {
            Some(PictureRefusal::One) => ways.push("picture"),
            Some(PictureRefusal::TooMany(_)) => ways.push("pictures count"),
            _ => {}
        }
        if error.find_pointer().is_some() || error.names_content() {
            ways.extend(["content", "order"]);
        }
        let advice = [
            ("agent model list", "model"),
            ("`capabilities: { tools: false }`", "tools"),
            ("`wire: responses`", "wire"),
            ("`base_url`", "wire"),
            ("content filter", "filter"),
            ("rules forbid", "filter"),
        ];
        ways.extend(advice.iter().filter(|(words, _)| error.message.contains(words)).map(|(_, way)| *way));
        if ways.is_empty() {
            ways.push("other");
            // Which request would be in order, nobody can tell.
            ways.push("order");
        }
        ways
    }
}

#[test]
fn every_refusal_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refusal_cases");
    let (mut count, mut failures) = (0, String::new());
    for file in std::fs::read_dir(folder).expect("the folder") {
        let path = file.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let cases: Vec<RefusalCase> =
            yaml::parse_document(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in cases {
            count += 1;
            let ways = case.treat();
            let about = case.about.split(' ').next().filter(|word| *word == "field").unwrap_or(&case.about);
            let is_right = ways.contains(&about);
            if is_right == case.known.is_some() {
                let (file, body) = (path.file_name().unwrap_or_default().display(), &case.body);
                let _ = writeln!(failures, "{file} {} is about {about}, taken for {ways:?}: {body}", case.from);
            }
        }
    }
    assert!(failures.is_empty(), "these refusals are treated otherwise:\n{failures}");
    assert!(count >= 180, "{count} cases");
}

/// A value that nothing reads as another.
#[test]
fn an_empty_answer_is_about_nothing() {
    let case: RefusalCase = serde_json::from_value(json!({
        "from": "nowhere", "status": 400, "wire": "chat", "model": "m", "body": "", "about": "other",
    }))
    .expect("a case");
    assert_eq!(case.treat(), ["other", "order"]);
    assert_eq!(case.plan().settings.extra.get("unheard_of"), Some(&Value::from(1)));
}
