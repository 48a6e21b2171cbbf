//! The slash commands: one table, from which dispatch, `/help` and completion are made.

use std::fmt::Write;

use crate::text;

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// Without the slash. The first name is the one that is shown.
    pub names: &'static [&'static str],
    /// `[NAME]`; empty when it takes none.
    pub argument: &'static str,
    pub help: &'static str,
    pub completes: Completes,
    pub action: Action,
}

/// What Tab offers as the argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completes {
    Nothing,
    Commands,
    Models,
    Skills,
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Help,
    Model,
    Tools,
    Skill,
    Unload,
    Skills,
    Context,
    Compact,
    Uncompact,
    Pin,
    Stats,
    Clear,
    Exit,
}

/// All of them, in the order in which they are shown.
pub const COMMANDS: &[Command] = &[
    command(&["help"], "[COMMAND]", "what can be typed here", Completes::Commands, Action::Help),
    command(&["model"], "[NAME]", "show the models, or use another", Completes::Models, Action::Model),
    command(&["tools"], "", "what the model may call", Completes::Nothing, Action::Tools),
    command(
        &["skill"],
        "NAME [TASK]",
        "load a skill, for the task or the next message",
        Completes::Skills,
        Action::Skill,
    ),
    command(&["unload"], "SKILL", "take a skill out of what is sent", Completes::Skills, Action::Unload),
    command(&["skills"], "", "the skills, and which are loaded", Completes::Nothing, Action::Skills),
    command(&["context"], "", "what the next request holds", Completes::Nothing, Action::Context),
    command(
        &["compact"],
        "[--dry-run | FOCUS]",
        "make room in the context; FOCUS is what to keep above all",
        Completes::Nothing,
        Action::Compact,
    ),
    command(&["uncompact"], "", "send everything again as it was said", Completes::Nothing, Action::Uncompact),
    command(
        &["pin"],
        "[TEXT]",
        "keep the last exchange, or what contains TEXT, out of every compression",
        Completes::Nothing,
        Action::Pin,
    ),
    command(&["stats"], "", "what this conversation has cost", Completes::Nothing, Action::Stats),
    command(&["clear"], "", "begin a new conversation", Completes::Nothing, Action::Clear),
    command(&["exit", "quit"], "", "leave (Ctrl-D does too)", Completes::Nothing, Action::Exit),
];

const fn command(
    names: &'static [&'static str],
    argument: &'static str,
    help: &'static str,
    completes: Completes,
    action: Action,
) -> Command {
    Command { names, argument, help, completes, action }
}

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    Empty,
    /// For the model.
    Message(String),
    Command {
        action: Action,
        argument: String,
    },
    /// Looks like a command and is none: what to tell the person.
    Mistake(String),
}

/// Reads a line. `//` at its start stands for a slash that is meant; a path (`/etc/hosts …`) is no command.
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
        Some(command) => Input::Command { action: command.action, argument: argument.to_owned() },
    }
}

/// The command of that name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.names.contains(&name))
}

/// What `/help` shows: everything, or one command.
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
@path         attach a file of the workspace (Tab completes)
//text        a message that begins with a slash
\\ at the end  goes on in the next line; so does Alt-Enter
\"\"\"           begins and ends a message of many lines
Ctrl-C        stops the model, or clears the line
";

fn usage(command: &Command) -> String {
    format!("/{} {}", command.names[0], command.argument).trim_end().to_owned()
}

fn row(command: &Command, width: usize) -> String {
    let mut row = format!("{:width$}  {}", usage(command), command.help);
    for alias in &command.names[1..] {
        let _ = write!(row, "; also /{alias}");
    }
    row + "\n"
}

fn unknown(name: &str) -> String {
    let name_shown = text::one_line(name, 40);
    let near = text::nearest(name, COMMANDS.iter().flat_map(|command| command.names.iter().copied()));
    match near.first() {
        Some(near) => format!("there is no /{name_shown}; did you mean /{near}?"),
        None => format!("there is no /{name_shown}: /help shows what there is, // sends a slash"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_a_command_or_a_mistake() {
        let message = |text: &str| Input::Message(text.to_owned());
        let command = |action, argument: &str| Input::Command { action, argument: argument.to_owned() };
        let mistake = |text: &str| Input::Mistake(text.to_owned());
        for (line, expected) in [
            ("", Input::Empty),
            (" \n", Input::Empty),
            (" hello\nworld ", message("hello\nworld")),
            ("/model", command(Action::Model, "")),
            (" /model  fast ", command(Action::Model, "fast")),
            ("/quit", command(Action::Exit, "")),
            ("//model", message("/model")),
            ("/etc/hosts is odd", message("/etc/hosts is odd")),
            ("/tools x", mistake("/tools takes no argument")),
            ("/hlep", mistake("there is no /hlep; did you mean /help?")),
            ("/日本", mistake("there is no /日本: /help shows what there is, // sends a slash")),
            ("/", mistake("there is no /: /help shows what there is, // sends a slash")),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
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
