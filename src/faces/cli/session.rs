//! `agent session`: lists sessions, shows their messages or their next request, and compresses them; what is done with
//! those that are over is in `kept`, what takes them back in `undo`.

mod import;
mod kept;
mod trial;
mod undo;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use crate::agent::assembly::{self, ForkPoint, RunOptions};
use crate::agent::{Agent, Cancel, Conversation, Emitter, Run, refresh_prompt, run_compression, show_request};
use crate::config::Config;
use crate::conversation::export::{ExportForm, Exported};
use crate::conversation::session::{Session, SessionError, SessionSummary};
use crate::faces::chat::{context, progress};
use crate::files::workspace::Workspace;
use crate::screen::{Fanout, LookFacts, Outlets, Screen};

use super::args::{ReportFormat, SessionCommand};
use super::setup::{CliSetup, assemble_unasked, build_runtime};
use super::signals::Signals;
use super::{
    CommandFailure, CommandOutcome, exit, note_progress, print_json, print_table, print_text, print_visible,
    warn_person,
};

pub(super) fn run_session(setup: &CliSetup, command: SessionCommand) -> CommandOutcome {
    use SessionCommand::{
        Apply, Compact, Delete, Discard, Export, Fork, Import, List, Prune, Redo, Rename, Search, Show, Undo,
    };
    let only_looks_back = matches!(
        command,
        List { .. } | Search { .. } | Undo { .. } | Redo { .. } | Show { as_request: None, context: false, .. }
    );
    let (workspace, config) = match setup.load() {
        // A call may have broken the configuration: that must not keep anybody from undoing it.
        Err(failure) if only_looks_back && failure.code == exit::CONFIGURATION => {
            let Some((workspace, config)) = setup.read_unasked() else { return Err(failure) };
            failure.report();
            note_progress("What can be read of it is used.");
            (workspace, Arc::new(config))
        }
        loaded => loaded?,
    };
    match command {
        List { all, size, output } => {
            list_sessions(setup, &config, (!all).then(|| workspace.root()), size, output)
        }
        Show { id, as_request: Some(step), .. } => print_request(setup, &config, &workspace, &id, step),
        Show { id, context: true, .. } => {
            let session = setup.read_session(&config, &id)?;
            let agent = agent_of(&session, &config, &workspace)?;
            let nowhere = Box::new(Fanout { sinks: Vec::new() });
            let mut run = Run::new(Emitter::new(session.id().to_owned(), String::new(), nowhere));
            let mut conversation = Conversation::new(session, Timestamp::now());
            refresh_prompt(&agent, &mut conversation, &run, &Cancel::default())?;
            print_text(context::format_window(&agent, &mut conversation, &mut run))
        }
        Compact { id, focus, dry_run } => compact_by_id(setup, &config, &workspace, &id, &focus, dry_run),
        Search { words, by, all, output } => {
            kept::search_sessions(setup, &config, (!all).then(|| workspace.root()), &words, by, output)
        }
        Export { id, to, as_recording } => {
            let form = Some(to).filter(|_| !as_recording);
            kept::export_session(setup, &config, &workspace, id, form)
        }
        Import { files } => import::import_sessions(setup, &config, &workspace, &files),
        Fork { id, at } => {
            let point = ForkPoint { id, at };
            print_text(assembly::fork_session(&setup.store(&config), &point, Timestamp::now())? + "\n")
        }
        Rename { id, title } => {
            let opened = setup.store(&config).open(&id, Timestamp::now());
            let (mut session, _) = opened.map_err(|error| CommandFailure::new(exit::USAGE, error))?;
            session.rename(&config.redactor().redact_known(&title), Timestamp::now())?;
            Ok(exit::DONE)
        }
        Delete { ids } => kept::delete_sessions(setup, &config, &ids),
        Prune { older_than, all, keep_named, dry_run } => {
            let workspace = (!all).then(|| workspace.root());
            kept::prune_sessions(setup, &config, workspace, older_than, keep_named, dry_run)
        }
        Undo { id, to, part } => undo::undo_message(setup, &config, &workspace, id, to, part),
        Apply { id, paths, dry_run } => trial::apply_trial(setup, &config, &workspace, id, &paths, dry_run),
        Discard { id } => trial::discard_trial(setup, &config, &workspace, id),
        Redo { id, part } => undo::redo_message(setup, &config, &workspace, id, part),
        Show { id, context: false, .. } => print_visible(&write_transcript(&setup.read_session(&config, &id)?)?),
    }
}

fn list_sessions(
    setup: &CliSetup,
    config: &Config,
    workspace: Option<&Path>,
    with_size: bool,
    output: ReportFormat,
) -> CommandOutcome {
    let mut sessions = setup.list_sessions(config, workspace)?;
    let all = workspace.is_none();
    if all {
        sessions = sort_families(sessions);
    } else {
        sessions.retain(|session| session.parent.is_none());
    }
    if let ReportFormat::Json = output {
        return print_json(&sessions);
    }
    if sessions.is_empty() {
        let place = if all { "" } else { " of this workspace" };
        note_progress(&format!("There are no sessions{place} yet."));
    }
    let row = |session: SessionSummary| {
        let place = if all { session.workspace } else { session.model };
        let title = match session.parent {
            Some(_) => format!("└ {}: {}", session.agent, session.title),
            None if session.copy.is_some_and(|copy| copy.is_dir()) => {
                format!("{} (a trial that waits)", session.title)
            }
            None => session.title,
        };
        [session.id, place, format!("{} KiB", session.bytes.div_ceil(1024)), title]
    };
    let rows: Vec<_> = sessions.into_iter().map(row).collect();
    if with_size {
        return print_table(&rows);
    }
    print_table(&rows.into_iter().map(|[id, place, _, title]| [id, place, title]).collect::<Vec<_>>())
}

/// Sorts the sessions of helpers below the session that called them; the order is kept otherwise.
fn sort_families(sessions: Vec<SessionSummary>) -> Vec<SessionSummary> {
    let known: BTreeSet<String> = sessions.iter().map(|session| session.id.clone()).collect();
    let is_child = |session: &SessionSummary| session.parent.as_ref().is_some_and(|parent| known.contains(parent));
    let (mut children, roots): (Vec<_>, Vec<_>) = sessions.into_iter().partition(is_child);
    let mut left: Vec<SessionSummary> = roots.into_iter().rev().collect();
    let mut listed = Vec::new();
    while let Some(session) = left.pop() {
        let (own, others): (Vec<_>, Vec<_>) =
            children.into_iter().partition(|child| child.parent.as_ref() == Some(&session.id));
        children = others;
        left.extend(own);
        listed.push(session);
    }
    listed
}

/// Prints the body of a request that a session sent.
fn print_request(
    setup: &CliSetup,
    config: &Arc<Config>,
    workspace: &Workspace,
    id: &str,
    step: u64,
) -> CommandOutcome {
    let read = setup.store(config).read_before(id, step);
    let (session, closing) = read.map_err(|error| CommandFailure::new(exit::USAGE, error))?;
    let agent = agent_of(&session, config, workspace)?;
    let nowhere = Box::new(Fanout { sinks: Vec::new() });
    let mut run = Run::new(Emitter::new(session.id().to_owned(), String::new(), nowhere));
    let mut conversation = Conversation::new(session, Timestamp::now());
    let (request, changed) = show_request(&agent, &mut conversation, &mut run, closing);
    if !changed.is_empty() {
        let changed = changed.join(" and ");
        warn_person(&format!("{changed} changed since: this is the request as it would be sent now"));
    }
    print_text(format!("{request}\n"))
}

/// Assembles the agent of the session, with the session's model if that is still configured.
fn agent_of(session: &Session, config: &Arc<Config>, workspace: &Workspace) -> Result<Agent, CommandFailure> {
    let about = session.describe();
    let agent = RunOptions { agent: Some(about.agent.to_owned()), ..RunOptions::default() };
    let with_model = RunOptions { model: Some(about.model.to_owned()), ..agent.clone() };
    let services = assemble_unasked(config, workspace, &with_model)
        .or_else(|_| assemble_unasked(config, workspace, &agent))?;
    Ok(services.agent)
}

fn compact_by_id(
    setup: &CliSetup,
    config: &Arc<Config>,
    workspace: &Workspace,
    id: &str,
    focus: &str,
    dry_run: bool,
) -> CommandOutcome {
    let signals = Signals::listen()?;
    let store = setup.store(config);
    let opened = if dry_run { store.read(id) } else { store.open(id, Timestamp::now()) };
    // And its bar.
    drop(store);
    let (session, warnings) = opened.map_err(|error| CommandFailure::new(exit::USAGE, error))?;
    let agent = agent_of(&session, config, workspace)?;
    let mut conversation = Conversation::new(session, Timestamp::now());
    let look = setup.look(LookFacts { chat: true, ..LookFacts::default() });
    let outlets = Outlets::open(&look);
    let screen = Box::new(Screen::new(&outlets, look, CliSetup::manner(config)));
    let mut run = Run::new(Emitter::new(conversation.session.id().to_owned(), assembly::new_run_id(), screen));
    run.emitter.warn(warnings);
    if dry_run {
        refresh_prompt(&agent, &mut conversation, &run, &Cancel::default())?;
        outlets.wait();
        return print_text(context::format_plan(&agent, &mut conversation, &mut run));
    }
    let cancel = Cancel::default();
    signals.trigger(&cancel);
    let compression = run_compression(&agent, &mut conversation, &mut run, focus, &cancel);
    let done = build_runtime()?.block_on(compression);
    outlets.display.settle();
    outlets.wait();
    if done?.is_none() {
        note_progress("Nothing to compact. Recent steps and pinned messages stay whole.");
    }
    Ok(exit::DONE)
}

/// The messages as an export has them, the plan, what a reply said before it was cut, and the sums.
fn write_transcript(session: &Session) -> Result<String, SessionError> {
    let mut out = String::new();
    if let Some(parent) = session.parent() {
        let _ = writeln!(out, "of the helper {}, called in session {parent}\n", session.describe().agent);
    }
    out += &Exported::read(session, Vec::new())?.write(ExportForm::Markdown);
    if let Some(plan) = progress::format_table(session.progress()) {
        let _ = write!(out, "\n## Plan\n\n{}\n", plan.trim_end());
    }
    let (unfinished, _) = session.partial();
    if !unfinished.trim().is_empty() {
        let _ = write!(out, "\n## Agent (unfinished)\n\n{}\n", unfinished.trim());
    }
    let usage = session.usage();
    let estimated = if usage.estimated { ", estimated" } else { "" };
    let counts = [(session.turns(), "turn"), (session.steps(), "step"), (session.calls(), "call")];
    let counts = counts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    let (input, output) = (usage.input_tokens, usage.output_tokens);
    let _ = write!(out, "\n{}, {input} tokens in, {output} out{estimated}", counts.join(", "));
    let about = if usage.cost_about { "~" } else { "" };
    match session.cost_usd() {
        Some(cost) => drop(write!(out, ", {about}${cost:.4}")),
        None if usage.total() > 0 => out.push_str(", cost unknown"),
        None => {}
    }
    out.push('\n');
    Ok(out)
}
