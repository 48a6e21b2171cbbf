//! Parses a typed line: a message, a built-in command, a custom command, or a mistake.

use super::SlashCommand;
use super::help::refuse_unknown;
use super::table::{GROUPS, OF_SERVER, find_command};
use crate::config::OwnCommand;

/// A parsed line.
pub enum ParsedInput {
    Empty,
    /// A message for the model.
    Message(String),
    /// A built-in command with its argument.
    Command(&'static SlashCommand, String),
    /// A custom command with its arguments.
    Own(OwnCommand, String),
    /// Text that looks like a command but is not one, with an explanation.
    Mistake(String),
}

/// Parses a line. `//` at its start means a single slash; a path (`/etc/hosts …`) is not a command.
pub fn parse_input(line: &str, own: &[OwnCommand]) -> ParsedInput {
    let line = line.trim();
    if line.is_empty() {
        return ParsedInput::Empty;
    }
    let Some(rest) = line.strip_prefix('/') else {
        return ParsedInput::Message(line.to_owned());
    };
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if let Some(literal) = rest.strip_prefix('/') {
        return ParsedInput::Message(format!("/{literal}"));
    }
    if name.contains('/') {
        return ParsedInput::Message(line.to_owned());
    }
    let argument = argument.trim();
    match (find_command(name), own.iter().find(|own| own.name == name)) {
        (Some(command), _) if command.argument.is_empty() && !argument.is_empty() => {
            ParsedInput::Mistake(format!("/{name} takes no argument"))
        }
        (Some(command), _) => ParsedInput::Command(command, argument.to_owned()),
        (None, Some(own)) => ParsedInput::Own(own.clone(), argument.to_owned()),
        (None, None) if name.split_once(':').is_some_and(|(server, _)| !server.is_empty()) => {
            ParsedInput::Command(&OF_SERVER, rest.to_owned())
        }
        (None, None) => ParsedInput::Mistake(refuse_unknown(name, GROUPS, own)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_a_command_or_a_mistake() {
        let own = |name: &str| OwnCommand { name: name.to_owned(), ..OwnCommand::default() };
        let own = [own("ship"), own("review-all")];
        for (line, expected) in [
            ("", "empty"),
            (" \n", "empty"),
            (" hello\nworld ", "message: hello\nworld"),
            ("/model", "command: model "),
            (" /model  fast ", "command: model fast"),
            ("/quit", "command: exit "),
            ("/ship", "own: ship "),
            ("/ship  it  now ", "own: ship it  now"),
            ("//model", "message: /model"),
            ("/etc/hosts is odd", "message: /etc/hosts is odd"),
            ("/tools x", "mistake: /tools takes no argument"),
            ("/hlep", "mistake: /hlep: did you mean /help?"),
            ("/modle", "mistake: /modle: did you mean /model?"),
            ("/Model fast", "mistake: /Model: did you mean /model?"),
            ("/review", "mistake: /review: did you mean /review-all?"),
            ("/shpi it", "mistake: /shpi: did you mean /ship?"),
            ("/files:tidy  a b ", "command: SERVER:PROMPT files:tidy  a b"),
            ("/:x", "mistake: /:x: there is no such command. /help lists them; // sends a slash."),
            ("/日本", "mistake: /日本: there is no such command. /help lists them; // sends a slash."),
            ("/", "mistake: /: there is no such command. /help lists them; // sends a slash."),
        ] {
            let read = match parse_input(line, &own) {
                ParsedInput::Empty => "empty".to_owned(),
                ParsedInput::Message(text) => format!("message: {text}"),
                ParsedInput::Command(command, argument) => format!("command: {} {argument}", command.name),
                ParsedInput::Own(command, arguments) => format!("own: {} {arguments}", command.name),
                ParsedInput::Mistake(why) => format!("mistake: {why}"),
            };
            assert_eq!(read, expected, "{line:?}");
        }
    }
}
