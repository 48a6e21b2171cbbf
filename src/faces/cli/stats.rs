//! `agent stats`: reports the cost of a session, or compares versions of prompts, as a table or as JSON.

use crate::agent::PROMPT_BASIS;
use crate::agent::assembly;
use crate::conversation::telemetry::{self, SessionFigures};

use super::args::ReportFormat;
use super::setup::CliSetup;
use super::{CommandFailure, CommandOutcome, exit, print_text, tables};

pub(super) fn run_stats(setup: &CliSetup, session: Option<&str>, output: ReportFormat) -> CommandOutcome {
    let workspace = setup.workspace()?;
    let config = setup.config(&workspace)?;
    let store = assembly::open_store(&config);
    let id = match session {
        Some(id) => id.to_owned(),
        None => match store.latest(workspace.root())? {
            Some(latest) => latest.id,
            None => {
                return Err(CommandFailure::usage(
                    "there is no session in this workspace yet. `agent session list --all` lists those of others.",
                ));
            }
        },
    };
    let read = setup.store(&config).read(&id);
    let (session, warnings) = read.map_err(|error| CommandFailure::new(exit::USAGE, error))?;
    for warning in warnings {
        super::warn_person(&warning);
    }
    let (report, model) = (tables::sum_costs(&session), session.describe().model);
    print_text(match output {
        ReportFormat::Text => telemetry::format_report(&report, model, tables::find_edge()),
        ReportFormat::Json => {
            let mut data = report.json(session.id(), model);
            data["prompt"] = session.system().and_then(|system| system.basis.get(PROMPT_BASIS)).cloned().into();
            serde_json::to_string_pretty(&data)? + "\n"
        }
    })
}

/// Compares the sessions of this workspace, or of all workspaces, by the system prompt that they ended with.
pub(super) fn by_prompt(setup: &CliSetup, all: bool, output: ReportFormat) -> CommandOutcome {
    let workspace = setup.workspace()?;
    let config = setup.config(&workspace)?;
    let store = assembly::open_store(&config);
    let sessions = setup.store(&config).list((!all).then_some(workspace.root()))?;
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
            super::warn_person(&format!("{} is left out: {error}", summary.id));
            None
        }
    });
    let versions = telemetry::by_prompt(figures);
    drop(bar);
    print_text(match output {
        ReportFormat::Json => {
            let rows: Vec<_> = versions.iter().map(|(prompt, of)| telemetry::version_json(prompt, of)).collect();
            serde_json::to_string_pretty(&rows)? + "\n"
        }
        ReportFormat::Text if versions.is_empty() => "no session has used a prompt yet\n".to_owned(),
        ReportFormat::Text => {
            let head = telemetry::VERSION_HEADINGS.map(str::to_owned);
            let rows = versions.iter().map(|(prompt, of)| telemetry::format_row(prompt, of));
            tables::lay_out_columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>(), tables::find_edge())
        }
    })
}
