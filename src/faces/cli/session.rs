//! `agent session list / show / compact`: lists sessions, shows their messages or their next request, and compresses
//! them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::{self, IsTerminal, Write as _};
use std::sync::Arc;

use jiff::Timestamp;

use crate::agent::assembly::{self, RunOptions};
use crate::agent::{Agent, Cancel, Conversation, Emitter, Run, refresh_prompt, run_compression};
use crate::base::text;
use crate::config::Config;
use crate::conversation::EventSink;
use crate::conversation::event::Event;
use crate::conversation::message::{Author, Item, Step};
use crate::conversation::session::{Session, SessionError, SessionSummary};
use crate::faces::chat::{context, progress};
use crate::files::workspace::Workspace;
use crate::safety::Nobody;
use crate::screen::{LookFacts, Outlets, Screen};

use super::args::SessionCommand;
use super::setup::CliSetup;
use super::signals::Signals;
use super::{CommandFailure, CommandOutcome, exit, print_text, tables};

pub(super) fn run_session(setup: &CliSetup, command: SessionCommand) -> CommandOutcome {
    let workspace = setup.workspace()?;
    let config = setup.config(&workspace)?;
    match command {
        SessionCommand::List { all } => {
            let sessions = setup.store(&config).list((!all).then(|| workspace.root()))?;
            let sessions = if all { sort_families(sessions) } else { without_helpers(sessions) };
            if sessions.is_empty() {
                let place = if all { "" } else { " of this workspace" };
                let _ = writeln!(io::stderr(), "There are no sessions{place} yet.");
            }
            let rows: Vec<[String; 3]> = sessions
                .into_iter()
                .map(|session| {
                    let place = if all { session.workspace } else { session.model };
                    let title = match session.parent {
                        Some(_) => format!("└ {}: {}", session.agent, session.title),
                        None => session.title,
                    };
                    [session.id, place, title]
                })
                .collect();
            print_text(tables::lay_out_columns(&rows, tables::find_edge()))
        }
        SessionCommand::Show { id, context: true } => {
            let (session, _) =
                setup.store(&config).read(&id).map_err(|error| CommandFailure::new(exit::USAGE, error))?;
            let agent = agent_of(&session, &config, &workspace)?;
            let mut run = Run::new(Emitter::new(session.id().to_owned(), String::new(), Box::new(Unwatched)));
            let mut conversation = Conversation::new(session, Timestamp::now());
            refresh_prompt(&agent, &mut conversation, &run).map_err(CommandFailure::ended)?;
            print_text(context::format_window(&agent, &mut conversation, &mut run))
        }
        SessionCommand::Compact { id, focus, dry_run } => {
            compact_by_id(&config, &workspace, &id, &focus, dry_run, setup)
        }
        SessionCommand::Show { id, context: false } => {
            let (session, warnings) =
                setup.store(&config).read(&id).map_err(|error| CommandFailure::new(exit::USAGE, error))?;
            for warning in warnings {
                super::warn_person(&warning);
            }
            let transcript = write_transcript(&session)?;
            // On a terminal, escapes from a model or a file are made visible; a pipe gets the bytes as they are.
            let shown =
                if io::stdout().is_terminal() { text::make_visible(&transcript).into_owned() } else { transcript };
            print_text(shown)
        }
    }
}

fn without_helpers(mut sessions: Vec<SessionSummary>) -> Vec<SessionSummary> {
    sessions.retain(|session| session.parent.is_none());
    sessions
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

/// Assembles the agent of the session, with the session's model if that is still configured.
fn agent_of(session: &Session, config: &Arc<Config>, workspace: &Workspace) -> Result<Agent, CommandFailure> {
    let about = session.describe();
    let agent = RunOptions { agent: Some(about.agent.to_owned()), ..RunOptions::default() };
    let with_model = RunOptions { model: Some(about.model.to_owned()), ..agent.clone() };
    let assemble =
        |options: &RunOptions| assembly::assemble_services(config, workspace, options, Arc::new(Nobody));
    let services = assemble(&with_model).or_else(|_| assemble(&agent)).map_err(CommandFailure::from_setup)?;
    Ok(services.agent)
}

fn compact_by_id(
    config: &Arc<Config>,
    workspace: &Workspace,
    id: &str,
    focus: &str,
    dry_run: bool,
    setup: &CliSetup,
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
        refresh_prompt(&agent, &mut conversation, &run).map_err(CommandFailure::ended)?;
        outlets.wait();
        return print_text(context::format_plan(&agent, &mut conversation, &mut run));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cancel = Cancel::default();
    signals.trigger(&cancel);
    let done = runtime.block_on(run_compression(&agent, &mut conversation, &mut run, focus, &cancel));
    outlets.display.settle();
    outlets.wait();
    if done.map_err(CommandFailure::ended)?.is_none() {
        let _ = writeln!(io::stderr(), "Nothing to compact. Recent steps and pinned messages stay whole.");
    }
    Ok(exit::DONE)
}

/// Discards events, for commands that print only a table.
struct Unwatched;

impl EventSink for Unwatched {
    fn emit(&mut self, _: &Event) -> io::Result<()> {
        Ok(())
    }
}

fn write_transcript(session: &Session) -> Result<String, SessionError> {
    let mut out = format!("session {}\n", session.id());
    if let Some(parent) = session.parent() {
        let _ = writeln!(out, "of the helper {}, called in session {parent}", session.describe().agent);
    }
    for item in session.originals()? {
        match item {
            Item::Said(said) => {
                let heading = if said.author == Author::Person { "user" } else { "agent" };
                let body = said.texts().collect::<Vec<_>>().join("\n\n");
                let _ = write!(out, "\n── {heading}\n{}\n", body.trim_end());
            }
            Item::Summary(summary) => {
                let _ = write!(out, "\n── summary\n{}\n", summary.text.trim_end());
            }
            Item::Step(step) => {
                let _ = write!(out, "\n── assistant\n{}\n", join_texts(&step).trim_end());
                for call in step.calls() {
                    let Some(answer) = &call.answer else { continue };
                    let heading = format!("{} ({:?})", call.request.name, answer.status).to_lowercase();
                    let _ = write!(out, "\n── {heading}\n{}\n", answer.content.trim_end());
                }
            }
        }
    }
    if let Some(plan) = progress::format_table(session.progress()) {
        let _ = write!(out, "\n── plan\n{plan}");
    }
    let (unfinished, _) = session.partial();
    if !unfinished.trim().is_empty() {
        let _ = write!(out, "\n── assistant (unfinished)\n{}\n", unfinished.trim_end());
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

fn join_texts(step: &Step) -> String {
    let mut out = step.text();
    for call in step.calls() {
        let _ = write!(out, "\n→ {} {}", call.request.name, call.request.arguments);
    }
    out.trim_start().to_owned()
}
