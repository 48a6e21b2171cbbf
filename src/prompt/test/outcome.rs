//! Outcomes of cases, from one run up to the versions of a prompt, for reports.

use serde::Serialize;

use crate::base::text;
use crate::conversation::message::{Cost, Usage};
use crate::prompt::file::Prompt;
use crate::template;

use super::case::{Case, Suite};
use super::check::JudgeAnswer;
use super::rendering::render_case;
use super::reply::RunReply;
use super::statistics::PassCount;
use super::verdict::{AssertionVerdict, Judgement};

/// All cases of one version of a prompt with one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tested {
    /// `NAME@vX.Y`.
    pub prompt: String,
    pub fingerprint: String,
    /// `None` if no case asks one.
    pub model: Option<String>,
    pub cases: Vec<CaseOutcome>,
}

/// All runs of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseOutcome {
    pub name: String,
    pub weight: f64,
    /// The share of runs that must pass.
    pub threshold: f64,
    /// True if no model was asked.
    pub rendered: bool,
    pub runs: Vec<CaseRun>,
}

/// One run of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseRun {
    #[serde(flatten)]
    pub judgement: Judgement,
    #[serde(flatten)]
    pub reply: RunReply,
}

impl CaseRun {
    /// Judges the result of a run. A long output is kept in part.
    pub fn judge(case: &Case, mut reply: RunReply, rendered: &str, judged: &[Option<JudgeAnswer>]) -> Self {
        /// Bytes of an output that reports keep.
        const LONGEST: usize = 64 * 1024;
        let judgement = case.judge(&reply, rendered, judged);
        if reply.output.len() > LONGEST {
            reply.output = format!("{}…", text::take_head(&reply.output, LONGEST));
        }
        Self { judgement, reply }
    }

    /// A run that failed, so that nothing could be judged; `why` is reported.
    pub fn record_failure(what: &str, why: String) -> Self {
        let verdicts = vec![AssertionVerdict::record_failure(what, why)];
        Self { judgement: Judgement { passed: false, score: 0.0, verdicts }, reply: RunReply::default() }
    }
}

impl CaseOutcome {
    pub fn from_runs(case: &Case, runs: Vec<CaseRun>) -> Self {
        let Case { weight, threshold, render: rendered, .. } = *case;
        Self { name: case.name.clone(), weight, threshold, rendered, runs }
    }

    pub fn count(&self) -> PassCount {
        let passed = self.runs.iter().filter(|run| run.judgement.passed).count() as u64;
        PassCount { passed, runs: self.runs.len() as u64 }
    }

    /// The runs that failed, by their numbers from 1.
    pub fn list_failed(&self) -> impl Iterator<Item = (usize, &CaseRun)> {
        (1..).zip(&self.runs).filter(|(_, run)| !run.judgement.passed)
    }

    /// USD of its runs and their judges; `None` if a part of it is unknown, or no model was asked.
    pub fn cost(&self) -> Option<f64> {
        cost_of(&self.runs)
    }

    /// The same count if a model was asked; zero if every run would be the same.
    pub fn count_sampled(&self) -> PassCount {
        if self.rendered { PassCount::default() } else { self.count() }
    }

    /// The first reason of the first run that failed; empty if all passed.
    pub fn why(&self) -> String {
        let verdict = self.list_failed().flat_map(|(_, run)| run.judgement.list_failed()).next();
        verdict.map(|verdict| format!("{}: {}", verdict.assertion, verdict.fact)).unwrap_or_default()
    }

    /// True if enough of its runs passed.
    pub fn has_passed(&self) -> bool {
        !self.runs.is_empty() && self.count().rate() + f64::EPSILON >= self.threshold
    }
}

impl Tested {
    /// The version and the model, for people.
    pub fn label(&self) -> String {
        self.model.as_ref().map_or(self.prompt.clone(), |model| format!("{} ({model})", self.prompt))
    }

    /// Runs and those that passed, of all cases that count.
    pub fn count(&self) -> PassCount {
        self.list_counted().map(CaseOutcome::count).sum()
    }

    /// The same count for the cases that asked a model: the others have the same result each time, so they are not part
    /// of the statistics.
    pub fn count_sampled(&self) -> PassCount {
        self.list_counted().map(CaseOutcome::count_sampled).sum()
    }

    /// The pass rates of the cases by their weights, from 0 to 1.
    pub fn score(&self) -> f64 {
        let weight: f64 = self.cases.iter().map(|case| case.weight).sum();
        let gained: f64 = self.cases.iter().map(|case| case.weight * case.count().rate()).sum();
        if weight > 0.0 { gained / weight } else { 0.0 }
    }

    /// True if every case that counts has passed.
    pub fn has_passed(&self) -> bool {
        self.list_counted().all(CaseOutcome::has_passed)
    }

    /// USD of all runs and their judges; `None` if a part of it is unknown, or no model was asked.
    pub fn cost(&self) -> Option<f64> {
        cost_of(self.cases.iter().flat_map(|case| &case.runs))
    }

    fn list_counted(&self) -> impl Iterator<Item = &CaseOutcome> {
        self.cases.iter().filter(|case| case.weight > 0.0)
    }
}

fn cost_of<'r>(runs: impl IntoIterator<Item = &'r CaseRun>) -> Option<f64> {
    let mut cost = Cost::default();
    for CaseRun { reply, .. } in runs {
        cost.add(&Usage { input_tokens: reply.tokens, ..Usage::default() }, reply.cost);
        // The requests of judges have no count of their own: their cost is added where it is known.
        cost.add(&Usage::default(), reply.judging_cost);
    }
    cost.usd()
}

/// Runs a case for which no model is asked: once, since every run would be the same.
pub fn run_rendered(prompt: &Prompt, case: &Case, sample: &template::Value) -> CaseOutcome {
    let run = match render_case(prompt, case, sample) {
        Ok(text) => {
            let reply = RunReply { output: text.clone(), ..RunReply::default() };
            CaseRun::judge(case, reply, &text, &[])
        }
        Err(error) => CaseRun::record_failure("the prompt renders", error.to_string()),
    };
    CaseOutcome::from_runs(case, vec![run])
}

/// Runs those cases of a suite for which no model is asked, against one prompt.
pub fn run_all_rendered(prompt: &Prompt, suite: &Suite, sample: &template::Value) -> Vec<CaseOutcome> {
    suite.cases.iter().filter(|case| case.render).map(|case| run_rendered(prompt, case, sample)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Tested, run_all_rendered};
    use crate::prompt::Prompt;
    use crate::prompt::test::parse_suite;
    use crate::template::convert_value;

    #[test]
    fn cases_that_only_render_need_no_model() {
        let prompt = Prompt::inline("Route {{ user_request }} for {{ name }} in {{ vars.team }}.", "here");
        let suite = parse_suite(
            "tests.yaml",
            "defaults: { render: true, vars: { team: red } }\n\
             cases:\n\
             - { name: good, vars: { user_request: '{{ name }}' }, assert: [contains: 'Route {{ name }} for Ann in red'] }\n\
             - { name: other, weight: 0, vars: { user_request: x, name: Bob }, assert: [contains: Ann] }\n\
             - { name: undefined, assert: [starts-with: Route] }\n",
        );
        let (prompt, suite) = (prompt.expect("a template"), suite.expect("sound"));
        let cases = run_all_rendered(&prompt, &suite, &convert_value(&json!({"name": "Ann"})));
        let passed: Vec<bool> = cases.iter().map(super::CaseOutcome::has_passed).collect();
        assert_eq!(passed, [true, false, false]);
        let fact = &cases[2].runs[0].judgement.verdicts[0].fact;
        assert!(fact.contains("`user_request`"), "{fact}");
        let all = Tested { prompt: "p@v1.0".to_owned(), fingerprint: String::new(), model: None, cases };
        assert_eq!((all.count().passed, all.count().runs, all.has_passed()), (1, 2, false));
        assert!((all.score() - 0.5).abs() < 1e-9);
    }
}
