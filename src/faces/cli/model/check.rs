//! `agent model check`: finds out what a model's server supports, and prints a model file that fits.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::agent::assembly::{ModelCheck, ModelCheckResult, RunOptions, model_file};
use crate::agent::exit;
use crate::base::text;

use super::super::args::ReportFormat;
use super::super::setup::{CliSetup, build_runtime};
use super::super::{CommandFailure, CommandOutcome, note_progress, print_json, print_text};

pub(super) fn check_model(
    setup: &CliSetup,
    name: Option<String>,
    log_wire: Option<PathBuf>,
    output: ReportFormat,
) -> CommandOutcome {
    let (_, config) = setup.load()?;
    let options = RunOptions { model: name, log_wire, ..RunOptions::default() };
    let check = ModelCheck::new(&config, &options)?;
    let quiet = setup.global.quiet;
    let say = |line: &str| {
        if !quiet {
            note_progress(line);
        }
    };
    let server = check.base_url().map_or_else(String::new, |url| format!(" at {url}"));
    say(&format!(
        "{} requests to {}{server}, one at a time; a refused request may be sent again in another form",
        ModelCheck::REQUESTS,
        check.name()
    ));
    let checked = build_runtime()?.block_on(check.run(&mut |what| say(&format!("  asking for {what}"))));
    let checked = checked.map_err(|error| {
        let reason = config.redactor().redact(&error.to_string()).into_owned();
        CommandFailure::word(exit::of_model(error.kind), reason)
    })?;
    match output {
        ReportFormat::Json => print_json(&as_json(check.name(), &checked))?,
        ReportFormat::Text => print_text(format_report(check.name(), &checked))?,
    };
    say(&format_spending(&checked));
    Ok(exit::DONE)
}

/// Formats the server, the findings and the model file.
fn format_report(name: &str, checked: &ModelCheckResult) -> String {
    const FEATURE: usize = 16;
    const OUTCOME: usize = 10;
    let mut out = String::new();
    let mut row = |head: &str, outcome: &str, note: &str| {
        let note = text::make_visible(note).replace('\n', " ");
        let line = format!("{head:FEATURE$}{outcome:OUTCOME$}{note}");
        let _ = writeln!(out, "{}", line.trim_end());
    };
    row("model", &text::make_visible(&checked.id), "");
    if let Some(probed) = &checked.probed {
        row("server", probed.server, "");
    }
    let window = checked.window;
    row("window", &window.tokens.to_string(), &format!("tokens, {}", told_by(window.source)));
    for finding in &checked.findings {
        row(finding.feature.words(), finding.outcome.words(), &finding.note);
    }
    for refusal in &checked.remembered {
        row("refused before", refusal.day(), &format!(" {}", refusal.message));
    }
    // A name of the form PROVIDER/ID cannot be the name of a file.
    let file = if name.contains('/') { "NAME" } else { name };
    let advice =
        if checked.is_auto { "no file is needed; one for this model would be" } else { "the file that fits is" };
    let _ = write!(out, "\n# {advice} models/{}.yaml:\n{}", text::make_visible(file), model_file(&checked.file));
    out
}

fn told_by(source: &str) -> String {
    match source {
        "declared" => "as declared".to_owned(),
        "catalogue" => "by the catalogue".to_owned(),
        "assumed" => "assumed, because it is unknown: declare context_window".to_owned(),
        server => format!("as {server} runs it"),
    }
}

fn format_spending(checked: &ModelCheckResult) -> String {
    let ModelCheckResult { requests, usage, cost_usd, .. } = checked;
    let about = if usage.cost_about { "~" } else { "" };
    let cost = cost_usd.map_or_else(|| "cost unknown".to_owned(), |usd| format!("{about}${usd:.4}"));
    format!("{requests} requests, {} tokens in, {} out, {cost}", usage.input_tokens, usage.output_tokens)
}

fn as_json(name: &str, checked: &ModelCheckResult) -> Value {
    json!({
        "name": name,
        "id": checked.id,
        "server": checked.probed.as_ref().map(|probed| probed.server),
        "window": { "tokens": checked.window.tokens, "source": checked.window.source },
        "features": checked.findings,
        "remembered": checked.remembered,
        "file": checked.file,
        "file_is_needed": !checked.is_auto,
        "requests": checked.requests,
        "usage": checked.usage,
        "cost_usd": checked.cost_usd,
    })
}
