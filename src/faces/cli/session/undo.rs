//! `agent session undo / redo`: takes messages back, and what they changed in files.

use std::sync::Arc;

use jiff::Timestamp;

use crate::agent::assembly;
use crate::config::Config;
use crate::conversation::session::Session;
use crate::faces::chat::undo::{explain_unkept, open_history, restore_files};
use crate::files::history::Direction;
use crate::files::workspace::Workspace;

use super::super::args::UndoPart;
use super::super::setup::CliSetup;
use super::super::signals::Signals;
use super::super::{CommandFailure, CommandOutcome, exit, note_progress, print_text, print_visible, warn_person};

pub(super) fn undo_message(
    setup: &CliSetup,
    config: &Arc<Config>,
    workspace: &Workspace,
    id: Option<String>,
    to: Option<String>,
    part: UndoPart,
) -> CommandOutcome {
    let session = open_session(setup, config, workspace, id, part)?;
    let nothing = || {
        let why = format!("session {} has no message of yours left to undo", session.id());
        CommandFailure::word(exit::FAILED, why)
    };
    let messages = match &to {
        None => 1,
        Some(to) => session.count_since(to).map_err(CommandFailure::usage)?,
    };
    let from = Some(messages).filter(|messages| *messages > 0).and_then(|messages| session.find_undo(messages));
    let from = from.ok_or_else(nothing)?;
    if !part.conversation {
        let is_put_back = put_back(config, &session, Direction::Undo(from), part)?;
        if let Some(why) = explain_unkept(&session, from).filter(|_| !is_put_back) {
            warn_person(why.trim_end());
        }
    }
    if part.files || part.dry_run {
        return Ok(exit::DONE);
    }
    let id = session.id().to_owned();
    let said = session.undo(messages, Timestamp::now())?.unwrap_or_default();
    note_progress(&format!("Undone in session {id}: the message below and what followed it. The log keeps them."));
    print_visible(&format!("{}\n", said.trim_end()))
}

pub(super) fn redo_message(
    setup: &CliSetup,
    config: &Arc<Config>,
    workspace: &Workspace,
    id: Option<String>,
    part: UndoPart,
) -> CommandOutcome {
    let session = open_session(setup, config, workspace, id, part)?;
    let id = session.id().to_owned();
    let has_files = !part.conversation && put_back(config, &session, Direction::Redo, part)?;
    let has_messages = !part.files && session.can_redo();
    if !has_files && !has_messages {
        return Err(CommandFailure::word(exit::FAILED, format!("session {id} has no undo to take back")));
    }
    if has_messages && !part.dry_run {
        session.redo(Timestamp::now())?;
        note_progress(&format!("Session {id} has its messages again."));
    }
    Ok(exit::DONE)
}

/// Puts files back, and prints what that is. Returns false if there is nothing to put back.
fn put_back(
    config: &Config,
    session: &Session,
    direction: Direction,
    part: UndoPart,
) -> Result<bool, CommandFailure> {
    assembly::enter_session(config, session, false)?;
    if !part.dry_run {
        assembly::note_writes(config);
        Signals::listen()?;
    }
    let Some(history) = open_history(session) else { return Ok(false) };
    let restored = restore_files(config, session, &history, direction, part.force, part.dry_run);
    let text = restored.map_err(|why| CommandFailure::word(exit::FAILED, why))?;
    match &text {
        Some(text) if part.dry_run => drop(print_text(text)?),
        Some(text) => note_progress(text.trim_end()),
        None => {}
    }
    Ok(text.is_some())
}

fn open_session(
    setup: &CliSetup,
    config: &Arc<Config>,
    workspace: &Workspace,
    id: Option<String>,
    part: UndoPart,
) -> Result<Session, CommandFailure> {
    let store = setup.store(config);
    let Some(id) = id.map_or_else(|| setup.find_latest(config, workspace), |id| Ok(Some(id)))? else {
        let why = "this workspace has no session to undo in: `agent session list --all` shows those of others";
        return Err(CommandFailure::word(exit::FAILED, why));
    };
    let opened = if part.dry_run { store.read(&id) } else { store.open(&id, Timestamp::now()) };
    // And its bar.
    drop(store);
    let (session, warnings) = opened.map_err(|error| CommandFailure::new(exit::USAGE, error))?;
    for warning in &warnings {
        warn_person(warning);
    }
    Ok(session)
}
