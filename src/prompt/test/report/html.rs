//! The report as one self-contained page: no script, no address, nothing to load.

use std::fmt::Write as _;

use super::super::outcome::{CaseOutcome, Tested};
use super::{TestReport, format_figures};
use crate::base::text;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}\
    table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;text-align:right;border-bottom:1px solid #ccc}\
    td:first-child,th:first-child{text-align:left}.bad{color:#b00020}.good{color:#146c2e}\
    pre{background:#f4f4f4;padding:.6rem;overflow:auto;white-space:pre-wrap}";

pub(super) fn write_html(report: &TestReport) -> String {
    let verdict = if report.has_passed() { "passed" } else { "failed" };
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Tests of prompts: {verdict}</title>\n\
         <style>{STYLE}</style>\n<h1>Tests of prompts: {verdict}</h1>\n"
    );
    if let Some(comparison) = &report.comparison {
        let (a, b) = (&comparison.a, &comparison.b);
        let _ = writeln!(out, "<h2>{} and {}</h2>", escape_html(&a.label), escape_html(&b.label));
        let _ = writeln!(out, "<p>{}</p>", escape_html(&comparison.conclude()));
    }
    for tested in &report.tested {
        write_section(tested, &mut out);
    }
    out + "</html>\n"
}

fn write_section(tested: &Tested, out: &mut String) {
    let _ =
        writeln!(out, "<h2>{}</h2>\n<p>#{}</p>", escape_html(&tested.label()), escape_html(&tested.fingerprint));
    *out += "<table><tr><th>case<th>passed<th>rate<th>95 % interval<th>cost</tr>\n";
    for case in &tested.cases {
        let class = if case.has_passed() { "good" } else { "bad" };
        let figures = format_figures(case.count(), case.count_sampled(), case.cost()).join("<td>");
        let _ = writeln!(out, "<tr class=\"{class}\"><td>{}<td>{figures}</tr>", escape_html(&case.name));
    }
    let figures = format_figures(tested.count(), tested.count_sampled(), tested.cost()).join("<th>");
    let _ = writeln!(out, "<tr><th>all<th>{figures}</tr></table>");
    for case in tested.cases.iter().filter(|case| !case.has_passed()) {
        write_failures(case, out);
    }
}

fn write_failures(case: &CaseOutcome, out: &mut String) {
    let _ = writeln!(out, "<h3 class=\"bad\">{}</h3>", escape_html(&case.name));
    for (number, run) in case.list_failed() {
        let open = if number == 1 { " open" } else { "" };
        let _ = writeln!(out, "<details{open}><summary>run {number}</summary>");
        for verdict in run.judgement.list_failed() {
            let _ = writeln!(out, "<p>{}: {}</p>", escape_html(&verdict.assertion), escape_html(&verdict.fact));
            if !verdict.diff.is_empty() {
                let lines = verdict.diff.iter().map(|line| format!("{} {}", line.side.mark(), line.text));
                let _ = writeln!(out, "<pre>{}</pre>", escape_html(&lines.collect::<Vec<_>>().join("\n")));
            }
        }
        let _ = writeln!(out, "<pre>{}</pre></details>", escape_html(&run.reply.output));
    }
}

/// Text that is neither markup nor a control character.
pub(super) fn escape_html(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len());
    for c in text::make_visible(plain).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
