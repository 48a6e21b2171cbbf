//! The report for a person in a terminal. Text from a model is made visible and cut.

use std::fmt::Write as _;

use super::super::outcome::{CaseOutcome, Tested};
use super::super::statistics::PassCount;
use super::{Comparison, TestReport, format_figures, format_interval, format_percent};
use crate::base::text;

/// Runs of a case whose failures are shown in full; the others are counted.
const MOST_SHOWN: usize = 2;
/// Columns of the name of a case.
const WIDEST: usize = 60;

pub(super) fn write_text(report: &TestReport) -> String {
    let mut out = String::new();
    for tested in &report.tested {
        let model = tested.model.as_deref().map(|model| format!(", {model}")).unwrap_or_default();
        let _ = writeln!(out, "{} #{}{model}\n", tested.prompt, tested.fingerprint);
        out += &write_table(tested);
        out.push('\n');
        for case in tested.cases.iter().filter(|case| !case.has_passed()) {
            write_failures(case, &mut out);
        }
    }
    if let Some(comparison) = &report.comparison {
        side_by_side(comparison, &mut out);
    }
    let cases = || report.tested.iter().flat_map(|tested| &tested.cases);
    let (passed, all) = (cases().filter(|case| case.has_passed()).count(), cases().count());
    let verdict = if report.has_passed() { "passed" } else { "failed" };
    let _ = writeln!(out, "{verdict}: {passed} of {all} cases pass");
    out
}

fn write_table(tested: &Tested) -> String {
    let row = |name: String, [passed, rate, interval, cost]: [String; 4]| [name, passed, rate, interval, cost];
    let mut rows = vec![["  case", "passed", "rate", "95 % interval", "cost"].map(str::to_owned)];
    for case in &tested.cases {
        let mark = if case.has_passed() { " " } else { "✗" };
        let name = format!("{mark} {}", text::one_line(&case.name, WIDEST));
        rows.push(row(name, format_figures(case.count(), case.count_sampled(), case.cost())));
    }
    let all = format_figures(tested.count(), tested.count_sampled(), tested.cost());
    rows.push(row("  all".to_owned(), all));
    lay_out_columns(&rows)
}

/// The first column to the left, the others to the right.
fn lay_out_columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |at: usize| rows.iter().map(|row| text::count_columns(&row[at])).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = String::new();
    for row in rows {
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let blank = " ".repeat(width - text::count_columns(cell));
            let _ = if at == 0 { write!(out, "{cell}{blank}") } else { write!(out, "  {blank}{cell}") };
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

fn write_failures(case: &CaseOutcome, out: &mut String) {
    for (number, run) in case.list_failed().take(MOST_SHOWN) {
        let _ = writeln!(out, "✗ {} (run {number})", text::one_line(&case.name, WIDEST));
        for verdict in run.judgement.list_failed() {
            let fact = text::make_visible(&verdict.fact).replace('\n', "\n      ");
            let _ = writeln!(out, "    {}: {fact}", text::make_visible(&verdict.assertion));
            for line in &verdict.diff {
                let _ = writeln!(out, "    {} {}", line.side.mark(), text::make_visible(&line.text));
            }
        }
    }
    let more = case.list_failed().count().saturating_sub(MOST_SHOWN);
    if more > 0 {
        let _ = writeln!(out, "    … and {more} more runs that failed");
    }
    out.push('\n');
}

fn side_by_side(comparison: &Comparison, out: &mut String) {
    let cell = |count: Option<PassCount>| {
        count.map_or("-".to_owned(), |count| format!("{count} {}", format_percent(count.rate())))
    };
    let (a, b) = (&comparison.a, &comparison.b);
    let mut rows = vec![["  case".to_owned(), a.label.clone(), b.label.clone()]];
    for row in &comparison.cases {
        rows.push([format!("  {}", text::one_line(&row.name, WIDEST)), cell(row.a), cell(row.b)]);
    }
    rows.push(["  all".to_owned(), cell(Some(a.count)), cell(Some(b.count))]);
    rows.push(["  95 % interval".to_owned(), format_interval(a.sampled), format_interval(b.sampled)]);
    let _ = writeln!(out, "{}\n{}\n", lay_out_columns(&rows), comparison.conclude());
}
