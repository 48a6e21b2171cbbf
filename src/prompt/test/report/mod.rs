//! The report of a test run, for people and programs: a table, JSON, JUnit XML, a page.

mod compare;
mod text;
mod junit;
mod html;

use serde::Serialize;
use serde_json::{Value, json};

use super::outcome::Tested;
use super::statistics::PassCount;

pub use compare::Comparison;

/// All versions that were tested, with all models.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TestReport {
    pub tested: Vec<Tested>,
    /// Two of them side by side.
    pub comparison: Option<Comparison>,
}

impl TestReport {
    /// True if every case of every version has passed.
    pub fn has_passed(&self) -> bool {
        self.tested.iter().all(Tested::has_passed)
    }

    /// A table for each version and model, then the failures.
    pub fn text(&self) -> String {
        text::write_text(self)
    }

    /// JUnit XML: a suite for each version and model.
    pub fn junit(&self) -> String {
        junit::write_junit(self)
    }

    /// One self-contained HTML page.
    pub fn html(&self) -> String {
        html::write_html(self)
    }

    /// Everything, as data.
    pub fn json(&self) -> Value {
        let tested = self.tested.iter().map(|tested| {
            let cases = tested.cases.iter().map(|case| {
                let figures = write_figures(case.count(), case.count_sampled(), case.has_passed());
                let (name, weight, threshold) = (&case.name, case.weight, case.threshold);
                let about = json!({"name": name, "weight": weight, "threshold": threshold,
                    "rendered": case.rendered, "runs": case.runs});
                join_objects(figures, about)
            });
            let figures = write_figures(tested.count(), tested.count_sampled(), tested.has_passed());
            let about = json!({"prompt": tested.prompt, "fingerprint": tested.fingerprint, "model": tested.model,
                "score": tested.score(), "cost_usd": tested.cost(), "cases": cases.collect::<Vec<_>>()});
            join_objects(figures, about)
        });
        let tested: Vec<Value> = tested.collect();
        json!({"passed": self.has_passed(), "tested": tested, "comparison": self.comparison})
    }
}

fn write_figures(count: PassCount, sampled: PassCount, passed: bool) -> Value {
    let interval = (sampled.runs > 0).then(|| <[f64; 2]>::from(sampled.interval()));
    json!({"passed": passed, "count": count, "rate": count.rate(), "interval": interval})
}

fn join_objects(mut one: Value, other: Value) -> Value {
    if let (Value::Object(one), Value::Object(other)) = (&mut one, other) {
        one.extend(other);
    }
    one
}

/// The cells of a table: runs that passed, their rate with its interval, and the cost.
fn format_figures(count: PassCount, sampled: PassCount, cost: Option<f64>) -> [String; 4] {
    let cost = cost.filter(|cost| *cost > 0.0).map_or_else(|| "-".to_owned(), |cost| format!("${cost:.4}"));
    [count.to_string(), format_percent(count.rate()), format_interval(sampled), cost]
}

/// A share in whole percent: never 100 % or 0 % unless it is.
fn format_percent(share: f64) -> String {
    let rounded = (share * 100.0).round();
    let honest = if share < 1.0 && rounded >= 100.0 { 99.0 } else { rounded };
    let honest = if share > 0.0 && honest <= 0.0 { 1.0 } else { honest };
    format!("{honest:.0} %")
}

/// A 95 % interval: `57–100 %`; empty without runs.
fn format_interval(count: PassCount) -> String {
    if count.runs == 0 {
        return "-".to_owned();
    }
    let (low, high) = count.interval();
    format!("{:.0}–{:.0} %", (low * 100.0).floor(), (high * 100.0).ceil())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Comparison, TestReport, format_percent};
    use crate::prompt::Prompt;
    use crate::prompt::test::{Tested, parse_suite, run_all_rendered};
    use crate::template::convert_value;

    /// One case that passes, one that fails with a difference and marks of markup in it.
    fn report() -> TestReport {
        let prompt = Prompt::inline("one\n<two> & \u{1b}[31m\n{{ x }}", "here").expect("a template");
        let suite = "defaults: { render: true, vars: { x: three } }\ncases:\n\
            - { name: good, assert: [contains: three] }\n\
            - { name: 'bad \"<case>\"', assert: [equals: \"one\\nthree\"] }\n";
        let cases = run_all_rendered(
            &prompt,
            &parse_suite("tests.yaml", suite).expect("sound"),
            &convert_value(&json!({})),
        );
        let mut cases = cases;
        // As if a model had been asked three times.
        cases[0].rendered = false;
        cases[0].runs = vec![cases[0].runs[0].clone(); 3];
        let (name, fingerprint) = ("p@v1.0".to_owned(), "0123456789ab".to_owned());
        let a = Tested { prompt: name, fingerprint, model: Some("m".to_owned()), cases };
        let b = Tested { prompt: "p@v1.1".to_owned(), ..a.clone() };
        let comparison = Comparison::compare(&a, &b);
        TestReport { tested: vec![a, b], comparison: Some(comparison) }
    }

    #[test]
    fn a_table_shows_rates_and_then_what_failed() {
        let text = report().text();
        let start = "p@v1.0 #0123456789ab, m\n\n\
            \x20 case          passed   rate  95 % interval  cost\n\
            \x20 good             3/3  100 %       43–100 %     -\n\
            ✗ bad \"<case>\"     0/1    0 %              -     -\n\
            \x20 all              3/4   75 %       43–100 %     -\n";
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains("✗ bad \"<case>\" (run 1)\n    equals: one three: the output differs"), "{text}");
        assert!(text.contains("      one\n    + <two> & ␛[31m\n      three\n"), "{text}");
        assert!(text.contains("No difference was found: p = 1.00"), "{text}");
    }

    #[test]
    fn junit_has_a_suite_for_each_version() {
        let junit = report().junit();
        assert!(
            junit.starts_with(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"4\" failures=\"2\">"
            )
        );
        assert!(junit.contains("<testcase name=\"bad &quot;&lt;case&gt;&quot;\" classname=\"p@v1.0\""), "{junit}");
        assert!(!junit.contains('\u{1b}'), "a control character is no XML");
    }

    #[test]
    fn the_page_escapes_whatever_it_shows() {
        let html = report().html();
        assert!(
            html.contains("bad &quot;&lt;case&gt;&quot;") && !html.contains("<case>") && !html.contains("<two>")
        );
        assert!(!html.contains("http"), "it needs nothing beside it");
    }

    #[test]
    fn data_has_every_run() {
        let json = report().json();
        assert_eq!(json["passed"], false);
        assert_eq!(json["tested"][0]["cases"][1]["runs"][0]["verdicts"][0]["diff"][0]["side"], "both");
        assert_eq!(json["tested"][0]["count"], json!({"passed": 3, "runs": 4}));
    }

    #[test]
    fn a_cost_is_the_sum_of_the_runs_or_unknown() {
        let mut report = report();
        assert_eq!(report.json()["tested"][0]["cost_usd"], json!(null), "no model was asked");
        for run in &mut report.tested[0].cases[0].runs {
            (run.reply.tokens, run.reply.cost) = (100, Some(0.25));
        }
        assert_eq!(report.json()["tested"][0]["cost_usd"], 0.75);
        report.tested[0].cases[0].runs[1].reply.cost = None;
        assert_eq!(report.json()["tested"][0]["cost_usd"], json!(null), "a run has no known price");
    }

    #[test]
    fn a_rate_is_never_rounded_to_all_or_nothing() {
        let table = [(1.0, "100 %"), (0.999, "99 %"), (0.0, "0 %"), (0.001, "1 %"), (0.5, "50 %")];
        for (share, text) in table {
            assert_eq!(format_percent(share), text);
        }
    }
}
