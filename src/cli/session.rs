//! `agent session list / show / compact`: what was said, where it is kept, and what of it is sent.

use std::fmt::Write;
use std::io::{self, IsTerminal, Write as _};
use std::sync::Arc;

use jiff::Timestamp;

use crate::agent::{Agent, Cancel, Emitter, Run, compact};
use crate::app::{self, Options};
use crate::config::Config;
use crate::contract::EventSink;
use crate::event::Event;
use crate::message::{AssistantMessage, Message, Origin};
use crate::session::Session;
use crate::sink::{Facts, Nobody, Screen, Spinner};
use crate::text;
use crate::workspace::Workspace;

use super::args::SessionCommand;
use super::setup::Setup;
use super::{Failure, Outcome, context, exit, print, tables};

pub(super) fn run(setup: &Setup, command: SessionCommand) -> Outcome {
    let workspace = setup.workspace()?;
    let config = setup.config(&workspace)?;
    let store = app::store(&config);
    match command {
        SessionCommand::List { all } => {
            let sessions = store.list((!all).then(|| workspace.root()))?;
            if sessions.is_empty() {
                let place = if all { "" } else { " of this workspace" };
                let _ = writeln!(io::stderr(), "There are no sessions{place} yet.");
            }
            let rows: Vec<[String; 3]> = sessions
                .into_iter()
                .map(|session| {
                    let place = if all { session.workspace } else { session.model };
                    [session.id, place, session.title]
                })
                .collect();
            print(tables::columns(&rows, tables::edge()))
        }
        SessionCommand::Show { id, context: true } => {
            let (mut session, _) = store.read(&id).map_err(|error| Failure::new(exit::USAGE, error))?;
            let agent = agent_of(&session, &config, &workspace)?;
            let mut run = Run::new(Emitter::new(session.id().to_owned(), String::new(), Box::new(Unwatched)));
            print(context::table(&agent, &mut session, &mut run))
        }
        SessionCommand::Compact { id, focus, dry_run } => {
            compact_by_id(&config, &workspace, &id, &focus, dry_run, setup)
        }
        SessionCommand::Show { id, context: false } => {
            let (session, warnings) = store.read(&id).map_err(|error| Failure::new(exit::USAGE, error))?;
            for warning in warnings {
                super::warn(&warning);
            }
            let transcript = transcript(&session);
            // A terminal is not moved by what a model or a file said; a pipe gets the bytes as they are.
            let shown =
                if io::stdout().is_terminal() { text::visible(&transcript).into_owned() } else { transcript };
            print(shown)
        }
    }
}

/// The agent that the session was held with, and its model as far as it is still there.
fn agent_of(session: &Session, config: &Config, workspace: &Workspace) -> Result<Agent, Failure> {
    let about = session.about();
    let agent = Options { agent: Some(about.agent.to_owned()), ..Options::default() };
    let with_model = Options { model: Some(about.model.to_owned()), ..agent.clone() };
    let assemble = |options: &Options| app::assemble(config, workspace, options, Arc::new(Nobody));
    let services = assemble(&with_model).or_else(|_| assemble(&agent)).map_err(Failure::from_setup)?;
    services.agent.spill.attach(session.path());
    Ok(services.agent)
}

fn compact_by_id(
    config: &Config,
    workspace: &Workspace,
    id: &str,
    focus: &str,
    dry_run: bool,
    setup: &Setup,
) -> Outcome {
    let store = app::store(config);
    let opened = if dry_run { store.read(id) } else { store.open(id, Timestamp::now()) };
    let (mut session, warnings) = opened.map_err(|error| Failure::new(exit::USAGE, error))?;
    let agent = agent_of(&session, config, workspace)?;
    let look = setup.look(Facts { chat: true, ..Facts::default() });
    let screen = Screen::new(io::stdout(), io::stderr(), look, Spinner::new(look.spinner));
    let mut run = Run::new(Emitter::new(session.id().to_owned(), app::new_run_id(), Box::new(screen)));
    run.emitter.warn(warnings);
    run.emitter.warn(app::brief(&agent, &mut session, &run)?);
    if dry_run {
        return print(context::plan(&agent, &mut session, &mut run));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(compact(&agent, &mut session, &mut run, focus, &Cancel::default()));
    match done {
        Ok(Some(_)) => Ok(exit::DONE),
        Ok(None) => {
            let _ =
                writeln!(io::stderr(), "There is nothing to gain: recent steps and what is pinned stay whole.");
            Ok(exit::DONE)
        }
        Err(stop) => {
            let verdict = exit::verdict(&stop, 0, None);
            Err(Failure::new(verdict.code, anyhow::anyhow!(agent.redactor.redact(&verdict.reason).into_owned())))
        }
    }
}

/// Nobody watches: what is printed is the table alone.
struct Unwatched;

impl EventSink for Unwatched {
    fn emit(&mut self, _: &Event) -> io::Result<()> {
        Ok(())
    }
}

fn transcript(session: &Session) -> String {
    let mut out = format!("session {}\n", session.id());
    for message in session.said() {
        let (heading, body) = match message {
            // The prompt is the agent's, not the conversation's: `agent prompt render` shows it.
            Message::System { .. } => continue,
            Message::User { content, origin: Origin::Program } => ("agent".to_owned(), content.clone()),
            Message::User { content, .. } => ("user".to_owned(), content.clone()),
            Message::Assistant(reply) => ("assistant".to_owned(), said(reply)),
            Message::Tool(answer) => {
                (format!("{} ({:?})", answer.name, answer.status).to_lowercase(), answer.content.clone())
            }
        };
        let _ = write!(out, "\n── {heading}\n{}\n", body.trim_end());
    }
    let usage = session.usage();
    let estimated = if usage.estimated { ", estimated" } else { "" };
    let counts = [(session.turns(), "turn"), (session.steps(), "step"), (session.calls(), "call")];
    let counts = counts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    let (input, output) = (usage.input_tokens, usage.output_tokens);
    let _ = write!(out, "\n{}, {input} tokens in, {output} out{estimated}", counts.join(", "));
    if let Some(cost) = session.cost_usd() {
        let _ = write!(out, ", ${cost:.4}");
    }
    out.push('\n');
    out
}

fn said(reply: &AssistantMessage) -> String {
    let mut out = reply.content.clone();
    for call in &reply.tool_calls {
        let _ = write!(out, "\n→ {} {}", call.name, call.arguments);
    }
    out.trim_start().to_owned()
}
