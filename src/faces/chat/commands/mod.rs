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

pub(super) use last::show_last;
pub use line::{ParsedInput, parse_input};
pub use own::run_own_command as run_own;
pub use table::{COMMANDS, find_command};

/// A row of the table.
pub struct SlashCommand {
    /// The names without the slash. The first one is shown.
    pub names: &'static [&'static str],
    /// The argument as `/help` shows it, `[NAME]`; empty for a command that takes none.
    pub argument: &'static str,
    pub about: &'static str,
    pub group: CommandGroup,
    pub completes: Completes,
    pub run: CommandFunction,
}

/// The heading that `/help` puts a command under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandGroup {
    Agent,
    Context,
    Conversation,
    Message,
    Chat,
}

impl CommandGroup {
    /// All groups, in the order of `/help`.
    pub const ALL: [Self; 5] = [Self::Message, Self::Agent, Self::Context, Self::Conversation, Self::Chat];

    /// The heading.
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
pub enum CommandFunction {
    Now(fn(&mut Chat, &str) -> CommandAnswer),
    /// An asynchronous function; Ctrl-C drops its future.
    Later(for<'c> fn(&'c mut Chat, &'c str) -> BoxFuture<'c, CommandAnswer>),
}

/// The outcome, or an error message for the person.
pub type CommandAnswer = Result<SlashOutcome, String>;

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
pub fn is_built_in(name: &str) -> bool {
    find_command(name).is_some()
}
