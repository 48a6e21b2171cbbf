//! The verdicts of a case's assertions about one of its runs.

use serde::Serialize;

use super::assertion::Assertion;
use super::case::Case;
use super::check::{AssertionCheck, JudgeAnswer, JudgeQuestion};
use super::lines::ComparedLine;
use super::reply::{AssertionData, RunReply};

/// The verdict of one assertion about one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssertionVerdict {
    /// The assertion as it is written.
    pub assertion: String,
    pub passed: bool,
    pub weight: f64,
    /// The fact that was found, which is the reason of a failure.
    pub fact: String,
    /// If two texts were compared, the lines in which they differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<ComparedLine>,
}

/// The verdict of all assertions of a case about one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    pub passed: bool,
    /// The weighted share of assertions that passed, from 0 to 1.
    pub score: f64,
    pub verdicts: Vec<AssertionVerdict>,
}

impl AssertionVerdict {
    /// The verdict where nothing could be checked, for this reason.
    pub(super) fn record_failure(assertion: &str, fact: String) -> Self {
        Self { assertion: assertion.to_owned(), passed: false, weight: 1.0, fact, diff: Vec::new() }
    }
}

impl Judgement {
    /// The verdicts of the assertions that failed.
    pub fn list_failed(&self) -> impl Iterator<Item = &AssertionVerdict> {
        self.verdicts.iter().filter(|verdict| !verdict.passed)
    }
}

impl Case {
    /// Judges a run. `judged` has an answer for each assertion that asks one ([`Assertion::question`]), by its index.
    pub fn judge(&self, reply: &RunReply, rendered: &str, judged: &[Option<JudgeAnswer>]) -> Judgement {
        let seen = AssertionData::new(reply, rendered, &self.vars);
        let of_rendered = seen.of_rendered();
        let verdict = |(at, assertion): (usize, &Assertion)| {
            let seen = if assertion.of_rendered { &of_rendered } else { &seen };
            assertion.verdict(seen, judged.get(at).and_then(Option::as_ref))
        };
        let mut verdicts: Vec<AssertionVerdict> = self.assert.iter().enumerate().map(verdict).collect();
        // A missing output would satisfy every negated assertion.
        let ended = reply.failure.as_ref().filter(|_| !self.looks_at_the_code());
        if let Some(why) = ended {
            let fact = format!("exit code {}: {why}", reply.code);
            verdicts.insert(0, AssertionVerdict::record_failure("the run ends with an answer", fact));
        }
        let share = |passed: bool| -> f64 {
            verdicts.iter().filter(|verdict| !passed || verdict.passed).map(|verdict| verdict.weight).sum()
        };
        let score = if share(false) > 0.0 { share(true) / share(false) } else { 1.0 };
        Judgement { passed: ended.is_none() && score + f64::EPSILON >= self.min_score, score, verdicts }
    }

    /// True if a run without an answer may be intended.
    pub fn looks_at_the_code(&self) -> bool {
        self.assert.iter().any(|assertion| matches!(assertion.check, AssertionCheck::ExitCode(_)))
    }
}

impl Assertion {
    /// The question to ask before this assertion can be judged.
    pub fn question(&self) -> Option<JudgeQuestion<'_>> {
        self.check.question()
    }

    fn verdict(&self, seen: &AssertionData<'_>, judged: Option<&JudgeAnswer>) -> AssertionVerdict {
        let (passed, fact, diff) = match self.check.check_run(seen, judged) {
            Ok(found) => (found.holds != self.negated, found.fact, found.diff),
            Err(why) => (false, why, Vec::new()),
        };
        AssertionVerdict { assertion: self.label.clone(), passed, weight: self.weight, fact, diff }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::assertion::KINDS;
    use super::{JudgeAnswer, RunReply};
    use crate::prompt::test::{RunCall, parse_suite};

    /// A run whose calls, figures and answer are known.
    fn reply(output: &str) -> RunReply {
        let call = |name: &str, arguments| RunCall { name: name.to_owned(), arguments, ok: true };
        RunReply {
            output: output.to_owned(),
            calls: vec![
                call("read_file", json!({"path": "a.rs", "lines": {"from": 1, "to": 9}})),
                call("grep", json!({"pattern": "x"})),
                call("read_file", json!({"path": "b.rs"})),
            ],
            skills: vec!["tour".to_owned()],
            tokens: 120,
            cost: Some(0.002),
            judging_cost: None,
            latency_ms: 1500,
            code: 0,
            failure: None,
        }
    }

    /// Assertion → an output for which it passes, and one for which it fails.
    const OF_TEXTS: &[(&str, &str, &str)] = &[
        ("equals: yes sir", " yes sir\n", "yes sir!"),
        ("equals: 42", "42", "43"),
        ("equals: { a: [1, 2.0] }", "{\"a\": [1.0, 2]}", "{\"a\": [1]}"),
        ("contains: Cat", "a Cat", "a cat"),
        ("icontains: CAT", "a cat", "a dog"),
        ("contains-all: [a, b]", "b a", "a"),
        ("contains-any: [x, b]", "b a", "a"),
        ("icontains-all: [A, B]", "b a", "a"),
        ("icontains-any: [X, B]", "b a", "a"),
        ("regex: '^a.+\\d$'", "ab1", "ab1 "),
        ("regex: '(?i)CAT'", "cat", "dog"),
        ("starts-with: Yes", "\nYes, of course", "Oh Yes"),
        ("is-json", " [1] ", "```json\n[1]\n```"),
        ("json_valid", "{}", "{"),
        ("is-json: { type: object }", "{}", "[]"),
        ("contains-json", "it is {\"a\": 1}.", "it is {a}"),
        ("contains-json: { required: [b] }", "{} then {\"b\": {}}", "{\"a\": 1}"),
        ("json-schema: { required: [a] }", "{\"a\": 1}", "{}"),
        ("json-schema: '{\"required\": [\"a\"]}'", "{\"a\": 1}", "nothing"),
        ("has_field: tool.args[0].name", "{\"tool\": {\"args\": [{\"name\": 1}]}}", "{\"tool\": {\"args\": []}}"),
        ("has-field: [a, b]", "{\"a\": 1, \"b\": null}", "{\"a\": 1}"),
        ("no_field: apology", "{}", "{\"apology\": \"\"}"),
        (
            "field_in: { field: tool, values: [calculator, 3] }",
            "{\"tool\": \"calculator\"}",
            "{\"tool\": \"web\"}",
        ),
        ("max_tokens: 3", "one two three", "one two three four"),
        ("max_latency: 1500ms", "", ""),
        ("max_cost: 0.002", "", ""),
        ("tool-called: read_file", "", ""),
        ("tool-called: [grep, read_file]", "", ""),
        ("tool-called: { tool: read_file, min: 2, max: 2 }", "", ""),
        ("tool-args-match: { tool: read_file, args: { lines: { to: 9 } } }", "", ""),
        ("tool-args-match: { tool: grep, schema: { required: [pattern] } }", "", ""),
        ("tool-sequence: [read_file, read_file]", "", ""),
        ("tool-sequence: { tools: [read_file, grep, read_file], exact: true }", "", ""),
        ("skill-loaded: tour", "", ""),
        ("exit-code: 0", "", ""),
        ("expr: json.n > 2 and tools | length == 3 and vars.who == 'Ann'", "{\"n\": 3}", "{\"n\": 1}"),
        ("similar: { value: x }", "", ""),
    ];

    /// The same for what a reply holds beside its text: these fail for it.
    const FAILING: &[&str] = &[
        "max_latency: 1s",
        "max_cost: 0.001",
        "tool-called: write_file",
        "tool-called: { tool: read_file, max: 1 }",
        "tool-args-match: { tool: read_file, args: { path: c.rs } }",
        "tool-args-match: { tool: write_file, args: {} }",
        "tool-args-match: { tool: grep, schema: { required: [path] } }",
        "tool-sequence: [grep, grep]",
        "tool-sequence: { tools: [read_file, grep], exact: true }",
        "skill-loaded: [tour, other]",
        "exit-code: 7",
        "expr: tokens < 100 or cost is none or latency > 2 or exit_code == 1",
        "similar: { value: x, threshold: 0.99 }",
    ];

    fn passes(assertion: &str, output: &str) -> (bool, String) {
        let text = format!("cases:\n- name: c\n  vars: {{ who: Ann }}\n  assert:\n  - {assertion}\n");
        let suite = parse_suite("tests.yaml", &text).unwrap_or_else(|wrong| panic!("{}", wrong[0]));
        let judged = [Some(JudgeAnswer::Likeness(0.9))];
        let judgement = suite.cases[0].judge(&reply(output), "the prompt", &judged);
        (judgement.passed, judgement.verdicts[0].fact.clone())
    }

    #[test]
    fn each_assertion_and_its_negation() {
        for (assertion, good, bad) in OF_TEXTS {
            let (holds, fact) = passes(assertion, good);
            assert!(holds, "{assertion}: {fact}");
            if good != bad {
                let (holds, fact) = passes(assertion, bad);
                assert!(!holds && !fact.is_empty(), "{assertion}: {fact}");
            }
            assert!(!passes(&format!("not-{assertion}"), good).0, "not-{assertion}");
        }
        for assertion in FAILING {
            assert!(!passes(assertion, "").0, "{assertion}");
        }
        let tried = |name: &str| {
            let written =
                |a: &str| a.split(':').next().is_some_and(|a| a.replace('_', "-") == name.replace('_', "-"));
            OF_TEXTS.iter().any(|(assertion, ..)| written(assertion)) || name == "llm-rubric"
        };
        let forgotten: Vec<&str> =
            KINDS.iter().flat_map(|kind| kind.names).copied().filter(|n| !tried(n)).collect();
        assert_eq!(forgotten, Vec::<&str>::new(), "every kind of assertion has a case here");
    }

    #[test]
    fn what_cannot_be_said_fails_the_negation_too() {
        for assertion in [
            "not-has_field: a",
            "no_field: a",
            "not-field_in: { field: a, values: [1] }",
            "not-equals: { a: 1 }",
            "not-expr: json.deep.er == 1",
        ] {
            assert!(!passes(assertion, "no JSON").0, "{assertion}");
        }
    }

    #[test]
    fn a_judge_decides_about_a_rubric_and_must_have_answered() {
        let text = "cases:\n- { name: c, assert: [llm-rubric: it is polite] }\n";
        let suite = parse_suite("tests.yaml", text).expect("sound");
        let judge =
            |judged: &[Option<JudgeAnswer>]| suite.cases[0].judge(&reply(""), "", judged).verdicts[0].clone();
        let said = |pass| Some(JudgeAnswer::Verdict { pass, reason: "it says please".to_owned() });
        assert!(judge(&[said(true)]).passed && !judge(&[said(false)]).passed);
        assert_eq!(judge(&[said(false)]).fact, "the judge says: it says please");
        assert!(!judge(&[]).passed && !judge(&[Some(JudgeAnswer::Failed("no model".to_owned()))]).passed);
    }

    #[test]
    fn weights_make_a_score_and_min_score_decides() {
        let case = |min: &str| {
            let assert = "[{ type: contains, value: a, weight: 3 }, { contains: b }, { contains: c, weight: 0 }]";
            let text = format!("cases:\n- {{ name: c, min_score: {min}, assert: {assert} }}\n");
            parse_suite("tests.yaml", &text).expect("sound").cases.remove(0).judge(&reply("a"), "", &[])
        };
        let judgement = case("1");
        assert!((judgement.score - 0.75).abs() < 1e-9 && !judgement.passed);
        assert!(case("0.75").passed && !case("0.76").passed);
    }

    #[test]
    fn an_assertion_may_look_at_the_rendered_prompt() {
        let text = "cases:\n- name: c\n  assert:\n  - { contains: prompt, of: rendered }\n";
        let case = parse_suite("tests.yaml", text).expect("sound").cases.remove(0);
        assert!(case.render && case.judge(&reply("no"), "the prompt", &[]).passed);
    }

    #[test]
    fn a_run_without_an_answer_fails_unless_its_code_is_asked_for() {
        let judge = |assert: &str| {
            let text = format!("cases:\n- {{ name: c, assert: [{assert}] }}\n");
            let case = parse_suite("tests.yaml", &text).expect("sound").cases.remove(0);
            let failure = Some("no more than 1 step".to_owned());
            case.judge(&RunReply { code: 8, failure, ..RunReply::default() }, "", &[])
        };
        let judgement = judge("not-contains: sorry");
        assert!(!judgement.passed && judgement.verdicts[0].fact == "exit code 8: no more than 1 step");
        assert!(judge("{ not-contains: sorry }, { exit-code: 8 }").passed);
    }

    #[test]
    fn a_huge_output_is_quoted_in_part() {
        let huge = "[".repeat(4 << 20);
        for assertion in ["contains: x", "regex: '(a|b|[^x]*)*x$'", "contains-json", "is-json", "equals: x"] {
            let (passed, fact) = passes(assertion, &huge);
            assert!(!passed && fact.len() < 2000, "{assertion}: {} bytes", fact.len());
        }
    }
}
