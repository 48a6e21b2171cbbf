//! `agent review`: a model reads a change, and what it finds is printed for a person, a program or a step of a pipeline.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::assembly::{self, MapOutcome, MapRunner, MapTask, ReviewedDiff, RunOptions};
use crate::base::spelling::spell;
use crate::base::text;
use crate::config::SettingFlags;
use crate::faces::collector::CollectorExport;
use crate::prompt::AnswerReader;

use super::args::{ReviewArgs, ReviewFormat};
use super::github::{WorkflowStep, annotate};
use super::setup::{CliSetup, build_runtime};
use super::signals::Signals;
use super::{
    CommandFailure, CommandOutcome, close_export, exit, note_progress, print_json, print_visible, warn_person,
};

/// The prompt that reads a diff.
const PROMPT: &str = "review";

/// What a model finds in a change.
#[derive(Debug, Serialize, Deserialize)]
struct Review {
    findings: Vec<ReviewFinding>,
    verdict: String,
}

impl Review {
    fn find_code(&self) -> u8 {
        if self.findings.is_empty() { exit::DONE } else { exit::FAILED }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct ReviewFinding {
    file: String,
    line: u64,
    severity: Severity,
    /// From 0 to 1.
    confidence: f64,
    title: String,
    detail: String,
}

/// Heaviest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Severity {
    High,
    Medium,
    Low,
}

impl Severity {
    fn word(self) -> &'static str {
        spell(&self)
    }

    /// The command of a workflow that shows it.
    fn annotation(self) -> &'static str {
        match self {
            Self::High => "error",
            Self::Medium => "warning",
            Self::Low => "notice",
        }
    }
}

pub(super) fn run_review(setup: &CliSetup, args: ReviewArgs) -> CommandOutcome {
    let format = args.output;
    match format {
        ReviewFormat::Github => {
            let step = WorkflowStep::begin(&setup.env)?;
            let outcome = make_review(setup, args).and_then(|review| {
                step.speak(&format_annotations(&review))?;
                step.add_summary(&format_summary(&review))?;
                Ok(review.find_code())
            });
            step.end(outcome)
        }
        ReviewFormat::Json => {
            let review = make_review(setup, args)?;
            print_json(&review)?;
            Ok(review.find_code())
        }
        ReviewFormat::Text => {
            let review = make_review(setup, args)?;
            print_visible(&format_text(&review))?;
            Ok(review.find_code())
        }
    }
}

fn make_review(setup: &CliSetup, args: ReviewArgs) -> Result<Review, CommandFailure> {
    let signals = Signals::listen()?;
    let flags = SettingFlags::default().of_agent(Some(args.agent.clone()));
    let (workspace, config) = setup.load_with(flags)?;
    let mut options = RunOptions {
        agent: Some(args.agent),
        model: args.model,
        prompt: Some(PROMPT.to_owned()),
        schema: Some(describe_review(args.max_findings)),
        output: AnswerReader::Schema,
        ..RunOptions::default()
    };
    let runtime = build_runtime()?;
    let read = assembly::read_diff(&config, &workspace, &options, args.range.as_deref());
    let ReviewedDiff { text: diff, left_out } = runtime.block_on(read)?;
    if !left_out.is_empty() {
        warn_person(&format!("not reviewed, as it is denied: {}", left_out.join(", ")));
    }
    if diff.trim().is_empty() {
        note_progress("Nothing changed, so there is nothing to review.");
        return Ok(Review { findings: Vec::new(), verdict: String::new() });
    }
    if !setup.global.quiet {
        let files = diff.lines().filter(|line| line.starts_with("diff --git ")).count() as u64;
        note_progress(&format!("Reviewing {} …", text::count_noun(files, "file", "files")));
    }
    options.vars = vec![
        ("diff".to_owned(), diff.into()),
        ("focus".to_owned(), args.focus.into()),
        ("max_findings".to_owned(), args.max_findings.into()),
    ];
    let store = (!args.ephemeral).then(|| assembly::open_store(&config));
    let mut runner = MapRunner::new(&config, &workspace, options, store, None, args.max_cost)?;
    let export = CollectorExport::open(&config)?;
    runner.open_sink = export.opener();
    runner.warnings.iter().for_each(|warning| warn_person(warning));
    signals.trigger(&runner.cancel);
    let MapOutcome { ending, result, .. } = runtime.block_on(runner.run(MapTask::default()))?;
    close_export(export, ending.code);
    if ending.code != exit::DONE {
        return Err(CommandFailure::word(ending.code, ending.reason));
    }
    let mut review: Review = serde_json::from_value(result)
        .map_err(|error| CommandFailure::word(exit::SCHEMA, format!("the answer is no review: {error}")))?;
    review.findings.sort_by_key(|finding| finding.severity);
    Ok(review)
}

/// The schema of an answer.
fn describe_review(most: u16) -> Value {
    let text = json!({ "type": "string" });
    let finding = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["file", "line", "severity", "confidence", "title", "detail"],
        "properties": {
            "file": text,
            "line": { "type": "integer", "minimum": 0, "description": "of the new file; 0 for the whole file" },
            "severity": { "enum": ["high", "medium", "low"] },
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "title": text,
            "detail": { "type": "string", "description": "what goes wrong, by which input or order of events, and what mends it" },
        },
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["findings", "verdict"],
        "properties": {
            "findings": { "type": "array", "items": finding, "maxItems": most },
            "verdict": { "type": "string", "description": "merge, merge after changes, or do not merge, and why, in one sentence" },
        },
    })
}

fn format_text(review: &Review) -> String {
    let mut out = String::new();
    for ReviewFinding { file, line, severity, confidence, title, detail } in &review.findings {
        let place = if *line == 0 { file.clone() } else { format!("{file}:{line}") };
        let sure = confidence * 100.0;
        let _ = writeln!(out, "{place}: {} ({sure:.0} % sure): {title}", severity.word());
        for line in detail.trim().lines() {
            let _ = writeln!(out, "    {line}");
        }
    }
    match review.verdict.trim() {
        "" if review.findings.is_empty() => out.push_str("No findings.\n"),
        verdict => drop(writeln!(out, "{verdict}")),
    }
    out
}

/// The commands of a workflow that show the findings beside the lines of the change.
fn format_annotations(review: &Review) -> String {
    let mut out = String::new();
    for ReviewFinding { file, line, severity, title, detail, .. } in &review.findings {
        let line = line.to_string();
        let mut about = vec![("file", file.as_str())];
        about.extend(Some(("line", line.as_str())).filter(|(_, line)| *line != "0"));
        about.push(("title", title));
        out += &annotate(severity.annotation(), &about, detail.trim());
    }
    out
}

/// The findings as Markdown, for the summary of a step.
fn format_summary(review: &Review) -> String {
    let mut out = String::from("## Review\n\n");
    for ReviewFinding { file, line, severity, title, detail, .. } in &review.findings {
        let detail = detail.trim().replace('\n', "\n  ");
        let _ = writeln!(out, "- **{}** `{file}:{line}` {title}\n\n  {detail}\n", severity.word());
    }
    let verdict = review.verdict.trim();
    let _ = writeln!(out, "{}", if verdict.is_empty() { "No findings." } else { verdict });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_holds_whatever_a_finding_says() {
        let finding = ReviewFinding {
            file: "a,b:c.rs".to_owned(),
            line: 7,
            severity: Severity::High,
            confidence: 0.9,
            title: "50 % lost\n::error::forged".to_owned(),
            detail: "one\ntwo".to_owned(),
        };
        let review = Review { findings: vec![finding], verdict: "do not merge".to_owned() };
        assert_eq!(
            format_annotations(&review),
            "::error file=a%2Cb%3Ac.rs,line=7,title=50 %25 lost%0A%3A%3Aerror%3A%3Aforged::one%0Atwo\n"
        );
    }
}
