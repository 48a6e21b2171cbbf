//! The report as JUnit XML for CI servers: a suite for each version and model, a test for each case.

use std::fmt::Write as _;

use super::super::outcome::CaseOutcome;
use super::TestReport;
use super::html::escape_html;

pub(super) fn write_junit(report: &TestReport) -> String {
    let all = || report.tested.iter().flat_map(|tested| &tested.cases);
    let failed = all().filter(|case| is_failure(case)).count();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{}\" failures=\"{failed}\">\n",
        all().count()
    );
    for tested in &report.tested {
        let failed = tested.cases.iter().filter(|case| is_failure(case)).count();
        let (label, all) = (escape_html(&tested.label()), tested.cases.len());
        let _ = writeln!(out, "<testsuite name=\"{label}\" tests=\"{all}\" failures=\"{failed}\">");
        for case in &tested.cases {
            write_test(case, &escape_html(&tested.prompt), &mut out);
        }
        out += "</testsuite>\n";
    }
    out + "</testsuites>\n"
}

/// True if a case failed; one of weight 0 never does.
fn is_failure(case: &CaseOutcome) -> bool {
    !case.has_passed() && case.weight > 0.0
}

fn write_test(case: &CaseOutcome, class: &str, out: &mut String) {
    let milliseconds: u64 = case.runs.iter().map(|run| run.reply.latency_ms).sum();
    let time = format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000);
    let _ = write!(out, "<testcase name=\"{}\" classname=\"{class}\" time=\"{time}\"", escape_html(&case.name));
    if !is_failure(case) {
        *out += "/>\n";
        return;
    }
    let count = case.count();
    let rate = format!("{} of {} runs passed", count.passed, count.runs);
    let _ = writeln!(out, ">\n<failure message=\"{}\">", escape_html(&rate));
    for (number, run) in case.list_failed() {
        for verdict in run.judgement.list_failed() {
            let told = format!("run {number}: {}: {}", verdict.assertion, verdict.fact);
            let _ = writeln!(out, "{}", escape_html(&told));
        }
    }
    *out += "</failure>\n</testcase>\n";
}
