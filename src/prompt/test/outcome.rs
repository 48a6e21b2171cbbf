//! Outcomes of cases, from one run up to the versions of a prompt, for reports.

use serde::Serialize;

use crate::base::text;
use crate::conversation::message::{Cost, Usage};
use crate::prompt::file::Prompt;
use crate::template;

use super::case::{Case, Suite};
use super::check::Judged;
use super::rendering::render;
use super::reply::Reply;
use super::statistics::Count;
use super::verdict::{Judgement, Verdict};

/// All cases of one version of a prompt with one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tested {
    /// `NAME@vX.Y`.
    pub prompt: String,
    pub fingerprint: String,
    /// `None` if no case asks one.
    pub model: Option<String>,
    pub cases: Vec<Outcome>,
}

/// All runs of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    pub name: String,
    pub weight: f64,
    /// The share of runs that must pass.
    pub threshold: f64,
    /// True if no model was asked.
    pub rendered: bool,
    pub runs: Vec<Run>,
}

/// One run of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    #[serde(flatten)]
    pub judgement: Judgement,
    #[serde(flatten)]
    pub reply: Reply,
}

impl Run {
    /// Judges the result of a run. A long output is kept in part.
    #[must_use]
    pub fn of(case: &Case, mut reply: Reply, rendered: &str, judged: &[Option<Judged>]) -> Self {
        /// Bytes of an output that reports keep.
        const LONGEST: usize = 64 * 1024;
        let judgement = case.judge(&reply, rendered, judged);
        if reply.output.len() > LONGEST {
            reply.output = format!("{}…", text::head(&reply.output, LONGEST));
        }
        Self { judgement, reply }
    }

    /// A run that failed, so that nothing could be judged; `why` is reported.
    #[must_use]
    pub fn failed(what: &str, why: String) -> Self {
        let verdict =
            Verdict { assertion: what.to_owned(), passed: false, weight: 1.0, fact: why, diff: Vec::new() };
        Self {
            judgement: Judgement { passed: false, score: 0.0, verdicts: vec![verdict] },
            reply: Reply::default(),
        }
    }
}

impl Outcome {
    #[must_use]
    pub fn of(case: &Case, runs: Vec<Run>) -> Self {
        Self {
            name: case.name.clone(),
            weight: case.weight,
            threshold: case.threshold,
            rendered: case.render,
            runs,
        }
    }

    #[must_use]
    pub fn count(&self) -> Count {
        let passed = self.runs.iter().filter(|run| run.judgement.passed).count() as u64;
        Count { passed, runs: self.runs.len() as u64 }
    }

    /// USD of its runs and their judges; `None` if a part of it is unknown, or no model was asked.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        cost_of(&self.runs)
    }

    /// The same count if a model was asked; zero if every run would be the same.
    #[must_use]
    pub fn sampled(&self) -> Count {
        if self.rendered { Count::default() } else { self.count() }
    }

    /// The first reason of the first run that failed; empty if all passed.
    #[must_use]
    pub fn why(&self) -> String {
        let failed = self.runs.iter().filter(|run| !run.judgement.passed);
        let verdict = failed.flat_map(|run| &run.judgement.verdicts).find(|verdict| !verdict.passed);
        verdict.map(|verdict| format!("{}: {}", verdict.assertion, verdict.fact)).unwrap_or_default()
    }

    /// True if enough of its runs passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.runs.is_empty() && self.count().rate() + f64::EPSILON >= self.threshold
    }
}

impl Tested {
    /// The version and the model, for people.
    #[must_use]
    pub fn label(&self) -> String {
        self.model.as_ref().map_or(self.prompt.clone(), |model| format!("{} ({model})", self.prompt))
    }

    /// Runs and those that passed, of all cases that count.
    #[must_use]
    pub fn count(&self) -> Count {
        self.counted().map(Outcome::count).fold(Count::default(), |sum, count| sum + count)
    }

    /// The same count for the cases that asked a model: the others have the same result each time, so they are not part
    /// of the statistics.
    #[must_use]
    pub fn sampled(&self) -> Count {
        self.counted().map(Outcome::sampled).fold(Count::default(), |sum, count| sum + count)
    }

    /// The pass rates of the cases by their weights, from 0 to 1.
    #[must_use]
    pub fn score(&self) -> f64 {
        let weight: f64 = self.cases.iter().map(|case| case.weight).sum();
        let gained: f64 = self.cases.iter().map(|case| case.weight * case.count().rate()).sum();
        if weight > 0.0 { gained / weight } else { 0.0 }
    }

    /// True if every case that counts has passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.counted().all(Outcome::passed)
    }

    /// USD of all runs and their judges; `None` if a part of it is unknown, or no model was asked.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        cost_of(self.cases.iter().flat_map(|case| &case.runs))
    }

    fn counted(&self) -> impl Iterator<Item = &Outcome> {
        self.cases.iter().filter(|case| case.weight > 0.0)
    }
}

fn cost_of<'r>(runs: impl IntoIterator<Item = &'r Run>) -> Option<f64> {
    let mut cost = Cost::default();
    for Run { reply, .. } in runs {
        cost.add(&Usage { input_tokens: reply.tokens, ..Usage::default() }, reply.cost);
        // The requests of judges have no count of their own: their cost is added where it is known.
        cost.add(&Usage::default(), reply.judging_cost);
    }
    cost.usd()
}

/// Runs a case for which no model is asked: once, since every run would be the same.
#[must_use]
pub fn run_rendered(prompt: &Prompt, case: &Case, sample: &template::Value) -> Outcome {
    let run = match render(prompt, case, sample) {
        Ok(text) => {
            let reply = Reply { output: text.clone(), ..Reply::default() };
            Run::of(case, reply, &text, &[])
        }
        Err(error) => Run::failed("the prompt renders", error.to_string()),
    };
    Outcome::of(case, vec![run])
}

/// Runs those cases of a suite for which no model is asked, against one prompt.
#[must_use]
pub fn run_all_rendered(prompt: &Prompt, suite: &Suite, sample: &template::Value) -> Vec<Outcome> {
    suite.cases.iter().filter(|case| case.render).map(|case| run_rendered(prompt, case, sample)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Tested, run_all_rendered};
    use crate::prompt::Prompt;
    use crate::prompt::test::parse;
    use crate::template::value;

    #[test]
    fn cases_that_only_render_need_no_model() {
        let prompt = Prompt::inline("Route {{ user_request }} for {{ name }} in {{ vars.team }}.", "here");
        let suite = parse(
            "tests.yaml",
            "defaults: { render: true, vars: { team: red } }\n\
             cases:\n\
             - { name: good, vars: { user_request: '{{ name }}' }, assert: [contains: 'Route {{ name }} for Ann in red'] }\n\
             - { name: other, weight: 0, vars: { user_request: x, name: Bob }, assert: [contains: Ann] }\n\
             - { name: undefined, assert: [starts-with: Route] }\n",
        );
        let (prompt, suite) = (prompt.expect("a template"), suite.expect("sound"));
        let cases = run_all_rendered(&prompt, &suite, &value(&json!({"name": "Ann"})));
        let passed: Vec<bool> = cases.iter().map(super::Outcome::passed).collect();
        assert_eq!(passed, [true, false, false]);
        let fact = &cases[2].runs[0].judgement.verdicts[0].fact;
        assert!(fact.contains("`user_request`"), "{fact}");
        let all = Tested { prompt: "p@v1.0".to_owned(), fingerprint: String::new(), model: None, cases };
        assert_eq!((all.count().passed, all.count().runs, all.passed()), (1, 2, false));
        assert!((all.score() - 0.5).abs() < 1e-9);
    }
}
