//! The slash commands: one table, from which dispatch, `/help` and completion are made. Each row has its function.
//! Custom commands are separate.

#![expect(clippy::unnecessary_wraps, reason = "every function of the table has one signature")]

mod help;
mod sessions;
mod settings;
mod undo;
mod context;
mod conversation;
mod messages;
mod table;
mod line;

use std::fmt::Display;

use futures_util::future::BoxFuture;

use super::chat_session::Chat;
use super::own::write_message;
use crate::config::OwnCommand;

pub(super) use conversation::show_last;
pub use line::{ParsedInput, parse_input};
pub use table::{find_command, list_commands};

/// The commands that `/help` puts under one heading.
pub struct CommandGroup {
    pub heading: &'static str,
    pub commands: &'static [SlashCommand],
}

/// A row of the table.
pub struct SlashCommand {
    /// The name without the slash.
    pub name: &'static str,
    pub alias: Option<&'static str>,
    /// The argument as `/help` shows it, `[NAME]`; empty for a command that takes none.
    pub argument: &'static str,
    pub about: &'static str,
    pub completes: Completes,
    pub run: CommandFunction,
}

impl SlashCommand {
    const fn takes(self, argument: &'static str, completes: Completes) -> Self {
        Self { argument, completes, ..self }
    }

    const fn or(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    /// Its name and its alias.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.alias)
    }
}

/// The function of a command. It takes the argument.
pub enum CommandFunction {
    Now(fn(&mut Chat, &str) -> CommandAnswer),
    /// An asynchronous function; Ctrl-C drops its future.
    Later(for<'c> fn(&'c mut Chat, &'c str) -> BoxFuture<'c, CommandAnswer>),
}

/// A command without an argument that is done at once.
const fn now(name: &'static str, about: &'static str, run: fn(&mut Chat, &str) -> CommandAnswer) -> SlashCommand {
    let (completes, run) = (Completes::Nothing, CommandFunction::Now(run));
    SlashCommand { name, alias: None, argument: "", about, completes, run }
}

/// A command without an argument that takes its time.
const fn later(
    name: &'static str,
    about: &'static str,
    run: for<'c> fn(&'c mut Chat, &'c str) -> BoxFuture<'c, CommandAnswer>,
) -> SlashCommand {
    let (completes, run) = (Completes::Nothing, CommandFunction::Later(run));
    SlashCommand { name, alias: None, argument: "", about, completes, run }
}

/// The outcome, or what is wrong.
pub type CommandAnswer = Result<SlashOutcome, SlashMistake>;

/// An error message for the person.
#[derive(Debug)]
pub struct SlashMistake(String);

impl<E: Display> From<E> for SlashMistake {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlashOutcome {
    /// Text for the person.
    Tell(String),
    /// Text for the person, shown in the pager if it is long.
    Page(String),
    /// Text for the clipboard.
    Copy(String),
    /// A message for the model that the person writes in the editor.
    Compose,
    /// A message for the model.
    Turn(String),
    /// The end of the chat.
    Leave,
}

impl From<CommandAnswer> for SlashOutcome {
    fn from(answer: CommandAnswer) -> Self {
        answer.unwrap_or_else(|SlashMistake(why)| Self::Tell(format!("error: {why}")))
    }
}

/// The outcome that is only a text for the person.
fn tell_text(text: impl Into<String>) -> CommandAnswer {
    Ok(SlashOutcome::Tell(text.into()))
}

/// The argument that Tab offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completes {
    Nothing,
    Commands,
    Models,
    Agents,
    Modes,
    Approvals,
    Prompts,
    Skills,
    /// Dotted keys of the configuration.
    Keys,
    Paths,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// Runs a custom command: its text with the arguments is a message for the model that its file names.
pub fn run_own(chat: &mut Chat, command: &OwnCommand, arguments: &str) -> CommandAnswer {
    let message = write_message(command, arguments)?;
    if let Some(model) = &command.model {
        chat.lend_model(model).map_err(|error| format!("{}: {error}", command.origin))?;
    }
    Ok(SlashOutcome::Turn(message))
}

/// True if a built-in command has this name.
pub fn is_built_in(name: &str) -> bool {
    find_command(name).is_some()
}
