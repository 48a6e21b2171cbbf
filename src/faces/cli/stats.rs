//! `agent stats`: reports the cost of a session, or compares versions of prompts, as a table or as JSON.

use crate::agent::PROMPT_BASIS;
use crate::agent::assembly;
use crate::conversation::telemetry::{self, SessionFigures};

use super::args::ReportFormat;
use super::setup::CliSetup;
use super::{CommandFailure, CommandOutcome, print_json, print_table, print_text, tables, warn_person};

/// The mistake of asking for the latest session where there is none.
const NO_SESSION: &str =
    "there is no session in this workspace yet. `agent session list --all` lists those of others.";

pub(super) fn run_stats(setup: &CliSetup, session: Option<String>, output: ReportFormat) -> CommandOutcome {
    let (workspace, config) = setup.load()?;
    let id = match session {
        Some(id) => id,
        None => setup.find_latest(&config, &workspace)?.ok_or_else(|| CommandFailure::usage(NO_SESSION))?,
    };
    let session = setup.read_session(&config, &id)?;
    let (report, model) = (tables::sum_costs(&session), session.describe().model);
    match output {
        ReportFormat::Text => print_text(telemetry::format_report(&report, model, tables::find_edge())),
        ReportFormat::Json => {
            let mut data = report.json(session.id(), model);
            data["prompt"] = session.system().and_then(|system| system.basis.get(PROMPT_BASIS)).cloned().into();
            print_json(&data)
        }
    }
}

/// Compares the sessions of this workspace, or of all workspaces, by the system prompt that they ended with.
pub(super) fn by_prompt(setup: &CliSetup, all: bool, output: ReportFormat) -> CommandOutcome {
    let (workspace, config) = setup.load()?;
    let store = assembly::open_store(&config);
    let sessions = setup.list_sessions(&config, (!all).then_some(workspace.root()))?;
    // The session that called a helper already counts its cost.
    let counted: Vec<_> = sessions.iter().filter(|summary| summary.parent.is_none()).collect();
    let bar = setup.bar();
    let numbered =
        counted.iter().enumerate().inspect(|(done, summary)| bar.set(*done, counted.len(), &summary.id));
    let figures = numbered.filter_map(|(_, summary)| match store.read(&summary.id) {
        Ok((session, _)) => {
            let prompt = session.system()?.basis.get(PROMPT_BASIS)?.clone();
            let (turns, codes) = (session.turns(), session.codes().clone());
            Some((prompt, SessionFigures { turns, codes, report: tables::sum_costs(&session) }))
        }
        Err(error) => {
            warn_person(&format!("{} is left out: {error}", summary.id));
            None
        }
    });
    let versions = telemetry::by_prompt(figures);
    drop(bar);
    match output {
        ReportFormat::Json => {
            let rows = versions.iter().map(|(prompt, of)| telemetry::version_json(prompt, of));
            print_json(&rows.collect::<Vec<_>>())
        }
        ReportFormat::Text if versions.is_empty() => print_text("no session has used a prompt yet\n"),
        ReportFormat::Text => {
            let head = telemetry::VERSION_HEADINGS.map(str::to_owned);
            let rows = versions.iter().map(|(prompt, of)| telemetry::format_row(prompt, of));
            print_table(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
        }
    }
}
