//! `agent session search / export / delete / prune`: finds words in sessions, writes them in other forms, deletes them.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::assembly::{self, DeleteError};
use crate::config::Config;
use crate::conversation::export::{ExportForm, Exported};
use crate::conversation::session::{Session, SessionError, SessionSummary, WordsBy};
use crate::files::disk;
use crate::files::workspace::Workspace;
use crate::model::record_session;

use super::super::args::ReportFormat;
use super::super::setup::CliSetup;
use super::super::{CommandFailure, CommandOutcome, exit, note_progress, print_json, print_text, print_visible};

pub(super) fn search_sessions(
    setup: &CliSetup,
    config: &Config,
    workspace: Option<&Path>,
    words: &str,
    by: Option<WordsBy>,
    output: ReportFormat,
) -> CommandOutcome {
    if words.trim().is_empty() {
        return Err(CommandFailure::usage("there are no words to search for"));
    }
    let now = Timestamp::now();
    let found = setup.store(config).search(words, by, workspace, now)?;
    if let ReportFormat::Json = output {
        return print_json(&found);
    }
    if found.is_empty() {
        note_progress("No session contains these words.");
    }
    let mut out = String::new();
    for session in &found {
        let (summary, hits) = (&session.summary, session.hits);
        let times = if hits == 1 { String::new() } else { format!(", {hits} times") };
        let _ = writeln!(out, "{}  {} ({}{times})", summary.id, summary.title, summary.describe_age(now));
        for found in &session.lines {
            let _ = writeln!(out, "  {}: {}", found.by.word(), found.line);
        }
    }
    print_visible(&out)
}

pub(super) fn export_session(
    setup: &CliSetup,
    config: &Config,
    workspace: &Workspace,
    id: Option<String>,
    form: Option<ExportForm>,
) -> CommandOutcome {
    let Some(id) = id.map_or_else(|| setup.find_latest(config, workspace), |id| Ok(Some(id)))? else {
        let why = "this workspace has no session to export: `agent session list --all` shows those of others";
        return Err(CommandFailure::word(exit::FAILED, why));
    };
    let session = setup.read_session(config, &id)?;
    let Some(form) = form else { return print_text(record_session(&session)?) };
    let all = setup.list_sessions(config, None)?;
    print_visible(&read_family(setup, config, &session, &all)?.write(form))
}

/// Reads a session with those of its helpers.
fn read_family(
    setup: &CliSetup,
    config: &Config,
    session: &Session,
    all: &[SessionSummary],
) -> Result<Exported, CommandFailure> {
    let mut helpers = Vec::new();
    // A helper's session is newer than its parent's, so no circle comes back here.
    let is_child = |summary: &&SessionSummary| {
        summary.parent.as_deref() == Some(session.id()) && summary.id.as_str() > session.id()
    };
    for summary in all.iter().filter(is_child).collect::<Vec<_>>().into_iter().rev() {
        let child = setup.read_session(config, &summary.id)?;
        helpers.push(read_family(setup, config, &child, all)?);
    }
    Ok(Exported::read(session, helpers)?)
}

pub(super) fn delete_sessions(setup: &CliSetup, config: &Config, ids: &[String]) -> CommandOutcome {
    let store = setup.store(config);
    for id in ids {
        let deleted = assembly::delete_session(config, &store, id);
        let deleted = deleted.map_err(|error| refuse_deletion(error, exit::USAGE))?;
        note_progress(&format!("Deleted: {}", deleted.join(", ")));
    }
    Ok(exit::DONE)
}

fn refuse_deletion(error: DeleteError, code: u8) -> CommandFailure {
    match error {
        DeleteError::Session(error) => CommandFailure::new(code, error),
        DeleteError::Copy(error) => error.into(),
    }
}

pub(super) fn prune_sessions(
    setup: &CliSetup,
    config: &Config,
    workspace: Option<&Path>,
    older_than: Duration,
    keep_named: bool,
    dry_run: bool,
) -> CommandOutcome {
    let (now, store) = (Timestamp::now(), setup.store(config));
    let listed = setup.list_sessions(config, workspace)?;
    let (mut count, mut in_use) = (0, Vec::new());
    for summary in listed.iter().filter(|summary| assembly::is_old(summary, older_than, keep_named, now)) {
        let done = if dry_run {
            store.check_free(&summary.id).map_err(DeleteError::Session)
        } else {
            assembly::delete_session(config, &store, &summary.id).map(drop)
        };
        match done {
            Err(DeleteError::Session(SessionError::Locked { id })) => in_use.push(id),
            Err(error) => return Err(refuse_deletion(error, exit::FAILED)),
            Ok(()) => {
                count += 1;
                print_visible(&format!("{}  {}\n", summary.id, summary.title))?;
            }
        }
    }
    // What was moved aside belongs to no session.
    for dir in workspace.map_or_else(|| assembly::list_old_kept(config, older_than), |_| Vec::new()) {
        if dry_run {
            print_visible(&format!("{}\n", dir.display()))?;
            continue;
        }
        disk::remove_tree(&dir)
            .map_err(|error| CommandFailure::word(exit::FAILED, format!("{} stays: {error}", dir.display())))?;
    }
    let done = if dry_run { "would be deleted" } else { "deleted" };
    note_progress(&format!("{count} {} {done}.", if count == 1 { "session" } else { "sessions" }));
    if !in_use.is_empty() {
        note_progress(&format!("In use, and so kept: {}.", in_use.join(", ")));
    }
    Ok(exit::DONE)
}
