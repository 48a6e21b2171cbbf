//! `agent session list / show`: what was said, where it is kept.

use std::fmt::Write;
use std::io::{self, IsTerminal, Write as _};

use crate::app;
use crate::message::{AssistantMessage, Message, Origin};
use crate::session::Session;
use crate::text;

use super::args::SessionCommand;
use super::setup::Setup;
use super::{Failure, Outcome, exit, print, tables};

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
        SessionCommand::Show { id } => {
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
