//! The slash commands: one table, from which dispatch, `/help` and completion are made. A row carries its function.

#![expect(clippy::unnecessary_wraps, reason = "every function of the table has one signature")]

mod context;
mod conversation;
mod mode;
mod models;
mod prompts;
mod skills;

use std::fmt::Write;

use futures_util::future::BoxFuture;

use super::chat::Chat;
use crate::text;

/// A row of the table.
pub struct Command {
    /// Names without the slash. The first one is shown.
    pub names: &'static [&'static str],
    /// The argument as `/help` shows it, `[NAME]`; empty for a command that takes none.
    pub argument: &'static str,
    pub about: &'static str,
    pub completes: Completes,
    pub run: Run,
}

/// The function of a command. It takes the argument.
pub enum Run {
    Now(fn(&mut Chat, &str) -> Answer),
    /// Ctrl-C drops the future.
    Later(for<'c> fn(&'c mut Chat, &'c str) -> BoxFuture<'c, Answer>),
}

/// The outcome, or the error to tell the person.
pub type Answer = Result<Outcome, String>;

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Text for the person.
    Tell(String),
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
    Modes,
    Skills,
}

/// The commands in the order in which `/help` shows them.
pub const COMMANDS: &[Command] = &[
    Command {
        names: &["help"],
        argument: "[COMMAND]",
        about: "list the commands, or explain one",
        completes: Completes::Commands,
        run: Run::Now(|_, name| Ok(Outcome::Tell(help(name)))),
    },
    Command {
        names: &["model"],
        argument: "[NAME]",
        about: "list the models, or use another",
        completes: Completes::Models,
        run: Run::Now(models::model),
    },
    Command {
        names: &["mode"],
        argument: "[NAME]",
        about: "list the modes, or carry out what follows in another",
        completes: Completes::Modes,
        run: Run::Now(mode::mode),
    },
    Command {
        names: &["plan"],
        argument: "[drop]",
        about: "show the plan and how far it has come, or give it up",
        completes: Completes::Nothing,
        run: Run::Now(mode::plan),
    },
    Command {
        names: &["prompt"],
        argument: "[NAME[@VERSION]]",
        about: "list the prompts, or use another as the system prompt",
        completes: Completes::Nothing,
        run: Run::Now(prompts::prompt),
    },
    Command {
        names: &["tools"],
        argument: "",
        about: "list the tools that the model may call",
        completes: Completes::Nothing,
        run: Run::Now(models::tools),
    },
    Command {
        names: &["skill"],
        argument: "NAME [TASK]",
        about: "load a skill, for the task or the next message",
        completes: Completes::Skills,
        run: Run::Now(skills::skill),
    },
    Command {
        names: &["unload"],
        argument: "SKILL",
        about: "take a skill out of what is sent",
        completes: Completes::Skills,
        run: Run::Now(skills::unload),
    },
    Command {
        names: &["skills"],
        argument: "",
        about: "list the skills, and which are loaded",
        completes: Completes::Nothing,
        run: Run::Now(skills::skills),
    },
    Command {
        names: &["context"],
        argument: "",
        about: "show what the next request holds",
        completes: Completes::Nothing,
        run: Run::Now(context::context),
    },
    Command {
        names: &["compact"],
        argument: "[--dry-run | FOCUS]",
        about: "make room in the context; FOCUS is kept above all",
        completes: Completes::Nothing,
        run: Run::Later(context::compact),
    },
    Command {
        names: &["uncompact"],
        argument: "",
        about: "send everything again as it was said",
        completes: Completes::Nothing,
        run: Run::Now(context::uncompact),
    },
    Command {
        names: &["pin"],
        argument: "[TEXT]",
        about: "keep the last exchange, or messages that contain TEXT, out of every compression",
        completes: Completes::Nothing,
        run: Run::Now(context::pin),
    },
    Command {
        names: &["stats"],
        argument: "",
        about: "show the cost of this conversation",
        completes: Completes::Nothing,
        run: Run::Now(conversation::stats),
    },
    Command {
        names: &["clear"],
        argument: "",
        about: "begin a new conversation",
        completes: Completes::Nothing,
        run: Run::Now(conversation::clear),
    },
    Command {
        names: &["exit", "quit"],
        argument: "",
        about: "leave (Ctrl-D does too)",
        completes: Completes::Nothing,
        run: Run::Now(conversation::exit),
    },
];

/// A line, read.
pub enum Input {
    Empty,
    /// For the model.
    Message(String),
    /// A command with its argument.
    Command(&'static Command, String),
    /// Looks like a command and is none. The text says why.
    Mistake(String),
}

/// Reads a line. `//` at its start stands for one slash; a path (`/etc/hosts …`) is no command.
#[must_use]
pub fn parse(line: &str) -> Input {
    let line = line.trim();
    if line.is_empty() {
        return Input::Empty;
    }
    let Some(rest) = line.strip_prefix('/') else {
        return Input::Message(line.to_owned());
    };
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if let Some(literal) = rest.strip_prefix('/') {
        return Input::Message(format!("/{literal}"));
    }
    if name.contains('/') {
        return Input::Message(line.to_owned());
    }
    let argument = argument.trim();
    match find(name) {
        None => Input::Mistake(unknown(name)),
        Some(command) if command.argument.is_empty() && !argument.is_empty() => {
            Input::Mistake(format!("/{name} takes no argument"))
        }
        Some(command) => Input::Command(command, argument.to_owned()),
    }
}

/// Finds a command by its name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.names.contains(&name))
}

/// Renders `/help`: all commands, or one.
#[must_use]
pub fn help(name: &str) -> String {
    let name = name.trim_start_matches('/');
    if !name.is_empty() {
        return find(name).map_or_else(|| unknown(name) + "\n", |command| row(command, 0));
    }
    let width = COMMANDS.iter().map(|command| usage(command).len()).max().unwrap_or(0);
    let mut help: String = COMMANDS.iter().map(|command| row(command, width)).collect();
    help += KEYS;
    help
}

const KEYS: &str = "
@path         attach a file of the workspace (Tab finds it by a few letters)
!command      run a command in your own shell; !!command gives its output to the model too
//text        a message that begins with a slash
\\ at the end  continues the message in the next line; so does Alt-Enter
\"\"\"           begins and ends a message of several lines
Ctrl-C        stops the model, or clears the line
Ctrl-R        searches the history; Right or End take the grey hint from it
Alt-E         goes on in your editor; so does Ctrl-X Ctrl-E
Esc Esc       takes the last message back into the line (not with the keys of vi)
";

fn usage(command: &Command) -> String {
    format!("/{} {}", command.names[0], command.argument).trim_end().to_owned()
}

fn row(command: &Command, width: usize) -> String {
    let mut row = format!("{:width$}  {}", usage(command), command.about);
    for alias in &command.names[1..] {
        let _ = write!(row, "; also /{alias}");
    }
    row + "\n"
}

fn unknown(name: &str) -> String {
    let name_shown = text::one_line(name, 40);
    let near = text::nearest(name, COMMANDS.iter().flat_map(|command| command.names.iter().copied()));
    match near.first() {
        Some(near) => format!("there is no /{name_shown}. Did you mean /{near}?"),
        None => format!("there is no /{name_shown}. /help lists the commands; // sends a slash."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_a_command_or_a_mistake() {
        for (line, expected) in [
            ("", "empty"),
            (" \n", "empty"),
            (" hello\nworld ", "message: hello\nworld"),
            ("/model", "command: model "),
            (" /model  fast ", "command: model fast"),
            ("/quit", "command: exit "),
            ("//model", "message: /model"),
            ("/etc/hosts is odd", "message: /etc/hosts is odd"),
            ("/tools x", "mistake: /tools takes no argument"),
            ("/hlep", "mistake: there is no /hlep. Did you mean /help?"),
            ("/日本", "mistake: there is no /日本. /help lists the commands; // sends a slash."),
            ("/", "mistake: there is no /. /help lists the commands; // sends a slash."),
        ] {
            let read = match parse(line) {
                Input::Empty => "empty".to_owned(),
                Input::Message(text) => format!("message: {text}"),
                Input::Command(command, argument) => format!("command: {} {argument}", command.names[0]),
                Input::Mistake(why) => format!("mistake: {why}"),
            };
            assert_eq!(read, expected, "{line:?}");
        }
    }

    #[test]
    fn help_shows_every_command_once() {
        let help = help("");
        for command in COMMANDS {
            for name in command.names {
                let shown = help
                    .split(|c: char| !c.is_alphanumeric() && c != '/')
                    .filter(|word| word[..].strip_prefix('/') == Some(name));
                assert_eq!(shown.count(), 1, "{name}");
            }
        }
        assert_eq!(super::help("/exit"), "/exit  leave (Ctrl-D does too); also /quit\n");
    }
}
