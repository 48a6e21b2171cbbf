//! The slash commands: one table, from which dispatch, `/help` and completion are made. Each row has its function.
//! Custom commands are separate.

#![expect(clippy::unnecessary_wraps, reason = "every function of the table has one signature")]

mod help;
mod context;
mod conversation;
mod last;
mod messages;
mod mode;
mod models;
mod own;
mod prompts;
mod settings;
mod skills;
mod table;
mod line;

use futures_util::future::BoxFuture;

use super::chat_session::Chat;

pub(super) use last::last;
pub use line::{Input, parse};
pub use own::run as run_own;
pub use table::{COMMANDS, find};

/// A row of the table.
pub struct Command {
    /// The names without the slash. The first one is shown.
    pub names: &'static [&'static str],
    /// The argument as `/help` shows it, `[NAME]`; empty for a command that takes none.
    pub argument: &'static str,
    pub about: &'static str,
    pub group: Group,
    pub completes: Completes,
    pub run: Run,
}

/// The heading that `/help` puts a command under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Agent,
    Context,
    Conversation,
    Message,
    Chat,
}

impl Group {
    /// All groups, in the order of `/help`.
    pub const ALL: [Self; 5] = [Self::Message, Self::Agent, Self::Context, Self::Conversation, Self::Chat];

    /// The heading.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Self::Agent => "Agent and model",
            Self::Context => "Context",
            Self::Conversation => "Conversation",
            Self::Message => "Messages",
            Self::Chat => "Chat",
        }
    }
}

/// The function of a command. It takes the argument.
pub enum Run {
    Now(fn(&mut Chat, &str) -> Answer),
    /// An asynchronous function; Ctrl-C drops its future.
    Later(for<'c> fn(&'c mut Chat, &'c str) -> BoxFuture<'c, Answer>),
}

/// The outcome, or an error message for the person.
pub type Answer = Result<Outcome, String>;

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
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

/// True if a built-in command has this name.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    find(name).is_some()
}
