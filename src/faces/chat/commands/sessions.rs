//! `/resume`, `/fork`, `/checkpoint`, `/rename`, `/export`: which conversation goes on, and what it is called.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::{CommandAnswer, tell_text};
use crate::agent::assembly::{self, ForkPoint, SessionChoice};
use crate::base::text;
use crate::conversation::export::{ExportForm, Exported};
use crate::conversation::session::{Session, SessionSummary};
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::{greeting, tables};
use crate::screen::ink::Line;
use crate::screen::terminal;

/// The most sessions that are offered.
const MOST_OFFERED: usize = 20;

/// `/resume SESSION` goes on with an earlier conversation; without a word the person picks one of this workspace.
pub(super) fn resume_session<'c>(chat: &'c mut Chat, words: &'c str) -> BoxFuture<'c, CommandAnswer> {
    async move {
        if !words.is_empty() {
            return go_on_with(chat, words).await;
        }
        let now = Timestamp::now();
        let sessions = list_others(chat, now)?;
        if sessions.is_empty() {
            return tell_text("There is no other conversation in this workspace.");
        }
        let labels: Vec<String> = sessions.iter().map(|session| label_session(session, now)).collect();
        if !chat.approver.present() {
            let rows: Vec<_> =
                sessions.into_iter().zip(labels).map(|(session, label)| [session.id, label]).collect();
            return tell_text(tables::lay_out_columns(&rows, terminal::measure_width()));
        }
        let question = "Which conversation? Type the id or the title of another one.";
        let Some(answer) = chat.approver.answer(question, &labels).await else {
            return tell_text("The conversation stays.");
        };
        let picked = labels.iter().position(|label| *label == answer);
        let id = picked.map_or(answer.as_str(), |at| sessions[at].id.as_str()).to_owned();
        go_on_with(chat, &id).await
    }
    .boxed()
}

/// The other conversations of this workspace, the latest first.
fn list_others(chat: &Chat, now: Timestamp) -> Result<Vec<SessionSummary>, super::SlashMistake> {
    let mut listed = assembly::open_store(&chat.config).list(Some(chat.origin.root()), now)?.sessions;
    listed.retain(|session| session.parent.is_none() && session.id != chat.conversation.session.id());
    listed.truncate(MOST_OFFERED);
    Ok(listed)
}

fn label_session(session: &SessionSummary, now: Timestamp) -> String {
    let title = if session.title.is_empty() { "(no message)" } else { &session.title };
    let size = session.bytes.div_ceil(1024);
    format!("{} ({}, {size} KiB)", text::make_visible(&text::one_line(title, 60)), session.describe_age(now))
}

async fn go_on_with(chat: &mut Chat, id: &str) -> CommandAnswer {
    chat.end_background();
    chat.go_to(&SessionChoice::Id(id.to_owned())).await?;
    let mut told = format!("Session {} goes on.", chat.conversation.session.id());
    if let Some((said, answer)) = chat.last_exchange() {
        let width = terminal::measure_width().unwrap_or(80);
        let rows: Vec<String> = greeting::format_exchange(said, &answer, width).iter().map(Line::text).collect();
        told = format!("{told}\n{}", rows.join("\n").trim_end());
    }
    tell_text(told)
}

/// `/fork` goes on with a copy of this conversation; `/fork m12` with one that ends before that message.
pub(super) fn fork_session<'c>(chat: &'c mut Chat, message: &'c str) -> BoxFuture<'c, CommandAnswer> {
    async move {
        let id = chat.conversation.session.id().to_owned();
        if chat.is_ephemeral || chat.conversation.session.turns() == 0 {
            return Err("nothing is kept of this conversation, so there is nothing to copy".into());
        }
        let at = Some(message.to_owned()).filter(|message| !message.is_empty());
        chat.go_to(&SessionChoice::Fork(ForkPoint { id: id.clone(), at })).await?;
        tell_text(format!("A copy goes on. The one before is kept: agent chat --session {id}"))
    }
    .boxed()
}

/// `/checkpoint NAME` names this place, for `/undo NAME` and `/fork NAME`; `/checkpoint` lists the names.
pub(super) fn mark_checkpoint(chat: &mut Chat, name: &str) -> CommandAnswer {
    if chat.is_ephemeral {
        return Err("nothing is kept of this conversation, so nothing can come back to a place in it".into());
    }
    let session = &mut chat.conversation.session;
    if name.is_empty() {
        let names: Vec<&str> = session.list_checkpoints().collect();
        return tell_text(if names.is_empty() {
            "There is no checkpoint yet.".to_owned()
        } else {
            names.join("\n")
        });
    }
    Session::check_checkpoint(name)?;
    session.mark(name, Timestamp::now())?;
    tell_text(format!("/undo {name} comes back here, /fork {name} goes on from here."))
}

/// `/export [FILE]` writes the conversation to a file, in the form that its ending says.
pub(super) fn export_session(chat: &mut Chat, file: &str) -> CommandAnswer {
    let session = &chat.conversation.session;
    let file = if file.is_empty() { format!("chat-{}.md", session.id()) } else { file.to_owned() };
    let form = match Path::new(&file).extension().and_then(OsStr::to_str) {
        Some("md") => ExportForm::Markdown,
        Some("html") => ExportForm::Html,
        Some("json") => ExportForm::Json,
        Some("jsonl") => ExportForm::Openai,
        _ => return Err("name a file that ends with .md, .html, .json or .jsonl".into()),
    };
    let text = Exported::read(session, Vec::new())?.write(form);
    let path = chat.origin.root().join(&file);
    let written = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut written = written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => format!("{file} is there already, and stays as it is: name another file"),
        _ => format!("{file}: {error}"),
    })?;
    written.write_all(text.as_bytes())?;
    tell_text(format!("Wrote {}.", path.display()))
}

/// `/rename TITLE` gives the conversation a title, by which `--session` finds it; `/rename` takes that back.
pub(super) fn rename_session(chat: &mut Chat, title: &str) -> CommandAnswer {
    if chat.is_ephemeral {
        return Err("nothing is kept of this conversation, so a title would name nothing".into());
    }
    let masked = chat.services.agent.redactor.redact_known(title);
    chat.conversation.session.rename(&masked, Timestamp::now())?;
    let told = if title.is_empty() { "Its title is the first message again." } else { "Renamed." };
    tell_text(told)
}
