//! Recorded runs of a version, one JSON object per line, so that tests can be repeated without a model.
//!
//! A run is found by its case and by the fingerprint of the request: the prompt, the variables, the messages, the files
//! and the tools. A recording of any other request is stale, and the error says so.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::digest::{hash_sha256, shorten_digest};

use super::case::Case;
use super::check::{JudgeAnswer, JudgeQuestion};
use super::outcome::CaseRun;
use super::reply::RunReply;

/// One recorded run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    pub case: String,
    /// From 1.
    pub run: u32,
    /// The fingerprint of the request.
    pub asked: String,
    pub model: String,
    pub reply: RunReply,
    /// Answers of judges, by the fingerprint of the question.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub judged: BTreeMap<String, JudgeAnswer>,
}

/// The recorded runs of one version.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Recordings(Vec<Recorded>);

impl Recordings {
    /// # Errors
    /// A line is not a recorded run; the error names the first one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let read = |(at, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: not a recorded run: {error}", at + 1))
        };
        lines.map(read).collect::<Result<_, _>>().map(Self)
    }

    /// The file, sorted, so that a new recording changes no other line.
    pub fn text(&self) -> String {
        let mut runs: Vec<&Recorded> = self.0.iter().collect();
        runs.sort_by(|a, b| (&a.case, &a.model, a.run).cmp(&(&b.case, &b.model, b.run)));
        let lines = runs.into_iter().filter_map(|run| serde_json::to_string(run).ok());
        lines.fold(String::new(), |text, line| text + &line + "\n")
    }

    /// The recorded runs of a case, in order; of one model if one is named.
    ///
    /// # Errors
    /// There are none: nothing is recorded, or the request has changed since.
    pub fn find_runs(&self, case: &str, asked: &str, model: Option<&str>) -> Result<Vec<&Recorded>, String> {
        let same = |run: &&Recorded| run.case == case && model.is_none_or(|model| run.model == model);
        let (fresh, stale): (Vec<_>, Vec<_>) = self.0.iter().filter(same).partition(|run| run.asked == asked);
        match (fresh.is_empty(), stale.is_empty()) {
            (false, _) => Ok(fresh),
            (true, false) => Err("its recording is stale: the prompt or the case has changed since".to_owned()),
            (true, true) => Err("it has no recording".to_owned()),
        }
    }

    /// The models that runs were recorded with, sorted.
    pub fn models(&self) -> Vec<&str> {
        let models: BTreeSet<&str> = self.0.iter().map(|run| run.model.as_str()).collect();
        models.into_iter().collect()
    }

    /// Replaces the recordings of these cases with this model.
    pub fn put(&mut self, runs: Vec<Recorded>) {
        self.0.retain(|old| !runs.iter().any(|new| (&new.case, &new.model) == (&old.case, &old.model)));
        self.0.extend(runs);
    }

    /// Removes recordings that no longer belong to a case.
    pub fn retain(&mut self, is_case: impl Fn(&str) -> bool) {
        self.0.retain(|run| is_case(&run.case));
    }
}

/// The fingerprint of a case's request: 12 hexadecimal digits. `prompt` is the prompt's own fingerprint.
pub fn fingerprint_request(prompt: &str, case: &Case) -> String {
    let mut all = serde_json::json!([prompt, case.vars, case.messages, case.files, case.tools]);
    all.sort_all_objects();
    fingerprint_text(&all.to_string())
}

/// The fingerprint of the question to a judge about an output.
pub fn question_key(question: JudgeQuestion<'_>) -> String {
    fingerprint_text(&match question {
        JudgeQuestion::Likeness { texts } => serde_json::json!(["similar", texts]).to_string(),
        JudgeQuestion::Rubric { rubric, model } => serde_json::json!(["rubric", rubric, model]).to_string(),
    })
}

fn fingerprint_text(text: &str) -> String {
    shorten_digest(&hash_sha256([text.as_bytes()])).to_owned()
}

/// Judges a recorded run again.
pub fn replay_run(case: &Case, recorded: &Recorded, rendered: &str) -> CaseRun {
    let answer = |question| recorded.judged.get(&question_key(question)).cloned();
    let judged: Vec<Option<JudgeAnswer>> =
        case.assert.iter().map(|assertion| assertion.question().and_then(answer)).collect();
    CaseRun::judge(case, recorded.reply.clone(), rendered, &judged)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{JudgeAnswer, JudgeQuestion, Recorded, Recordings, fingerprint_request, question_key, replay_run};
    use crate::prompt::test::{RunReply, parse_suite};

    fn recorded(case: &str, run: u32, asked: &str) -> Recorded {
        let reply = RunReply { output: "yes".to_owned(), tokens: 3, ..RunReply::default() };
        Recorded {
            case: case.to_owned(),
            run,
            asked: asked.to_owned(),
            model: "m".to_owned(),
            reply,
            judged: BTreeMap::new(),
        }
    }

    #[test]
    fn a_file_reads_back_as_it_was_written() {
        let mut runs = Recordings::default();
        runs.put(vec![recorded("b", 2, "x"), recorded("b", 1, "x"), recorded("a", 1, "x")]);
        let text = runs.text();
        assert_eq!(Recordings::parse(&text).map(|read| read.text()), Ok(text));
        runs.put(vec![recorded("b", 1, "y")]);
        assert_eq!(runs.find_runs("b", "y", None).map(|runs| runs.len()), Ok(1));
        assert!(runs.find_runs("b", "x", None).expect_err("changed").contains("stale"));
        assert!(runs.find_runs("c", "x", None).expect_err("unknown").contains("no recording"));
        assert!(runs.find_runs("b", "y", Some("other")).is_err());
        runs.retain(|case| case == "a");
        assert!(runs.find_runs("b", "y", None).is_err());
        assert!(Recordings::parse("{}\n").expect_err("not a run").starts_with("line 1: "));
    }

    #[test]
    fn whatever_is_asked_differently_is_stale_and_assertions_may_change() {
        let case = |rest: &str| {
            let text = format!("cases:\n- {{ name: c, {rest} }}\n");
            parse_suite("tests.yaml", &text).expect("sound").cases.remove(0)
        };
        let base = fingerprint_request("f", &case("vars: { a: 1, b: 2 }, assert: [is-json]"));
        assert_eq!(base, fingerprint_request("f", &case("vars: { b: 2, a: 1 }, assert: [contains: x], runs: 9")));
        assert_ne!(base, fingerprint_request("g", &case("vars: { a: 1, b: 2 }, assert: [is-json]")));
        for other in ["vars: { a: 2 }", "messages: [user: x]", "files: { a: b }", "tools: [grep]"] {
            assert_ne!(base, fingerprint_request("f", &case(&format!("{other}, assert: [is-json]"))), "{other}");
        }
    }

    #[test]
    fn what_a_judge_said_is_found_by_its_question() {
        let text = "cases:\n- { name: c, assert: [is-json, llm-rubric: polite] }\n";
        let case = parse_suite("tests.yaml", text).expect("sound").cases.remove(0);
        let mut run = recorded("c", 1, "x");
        let key = question_key(JudgeQuestion::Rubric { rubric: "polite", model: None });
        run.judged.insert(key, JudgeAnswer::Verdict { pass: true, reason: "so".to_owned() });
        let passed: Vec<bool> =
            replay_run(&case, &run, "").judgement.verdicts.iter().map(|verdict| verdict.passed).collect();
        assert_eq!(passed, [false, true]);
    }
}
