//! `!command` and `!!command`: a command that the person runs as in their shell, outside the sandbox. With the first form
//! the model gets the output too; the second is for the person alone, with the terminal to itself.

use std::io::{self, Write};

use super::chat_session::Chat;
use crate::safety::process::{Exit, PersonsLine};
use crate::screen::terminal;
use crate::tools::{BoundedInput, PlainState};

/// The most bytes of output that the model gets.
const MOST_BYTES: usize = 32 * 1024;
/// The percentage of them taken from the start of a longer output.
const HEAD_PERCENT: usize = 30;

/// A shell command of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellEscape<'a> {
    pub line: &'a str,
    /// True for `!`: the model gets the output.
    pub is_told: bool,
}

/// Parses a line that begins with `!`; `None` for any other.
pub fn parse_escape(line: &str) -> Option<ShellEscape<'_>> {
    let rest = line.trim().strip_prefix('!')?;
    let alone = rest.strip_prefix('!');
    Some(ShellEscape { line: alone.unwrap_or(rest).trim(), is_told: alone.is_none() })
}

/// Runs the command in the foreground of the terminal. Returns a message for the person.
pub(super) async fn run_escape(chat: &mut Chat, escape: ShellEscape<'_>) -> String {
    let ShellEscape { line, is_told } = escape;
    if line.is_empty() {
        return "Name a command: !ls runs it and tells the model, !!ls runs it for you alone.".to_owned();
    }
    let shell = chat.at_hand.shell.clone();
    let dir = chat.workspace.root().to_path_buf();
    let line = PersonsLine { shell: shell.as_deref(), line, dir: &dir };
    if !is_told {
        let exit = line.run().await;
        begin_line();
        return match exit {
            Ok(Exit::Code(0)) => String::new(),
            Ok(exit) => format!("{}.", capitalise(&describe_status(&exit))),
            Err(error) => not_started(&line, &error),
        };
    }
    let kept = BoundedInput::new(MOST_BYTES, None);
    let mut output = Overheard { plain: PlainState::default(), kept };
    let exit = line.overhear(|bytes| output.take(bytes)).await;
    begin_line();
    let status = match exit {
        Ok(exit) => describe_status(&exit),
        Err(error) => return not_started(&line, &error),
    };
    chat.attach(format!("output of `{}`, {status}", escape.line), &output.finish());
    format!("{}. The output goes with your next message.", capitalise(&status))
}

/// Starts a new line unless the cursor is at the start of one: a full row of spaces wraps if the row is not empty.
fn begin_line() {
    let Some(width) = terminal::measure_width() else { return };
    let mut stderr = io::stderr();
    let _ = write!(stderr, "{:width$}\r", "").and_then(|()| stderr.flush());
}

fn not_started(line: &PersonsLine<'_>, error: &io::Error) -> String {
    let shell = line.shell.unwrap_or("the shell");
    format!("error: {shell} cannot be started: {error} (SHELL names the shell for `!`)")
}

fn describe_status(exit: &Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit status {code}"),
        Exit::Signal(name) => format!("ended by {name}"),
    }
}

fn capitalise(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Shows output on the screen, and keeps part of it for the model.
struct Overheard {
    plain: PlainState,
    kept: BoundedInput<'static>,
}

impl Overheard {
    fn take(&mut self, bytes: &[u8]) {
        let mut stderr = io::stderr();
        // A closed stderr does not stop the command.
        let _ = stderr.write_all(bytes).and_then(|()| stderr.flush());
        let mut text = String::new();
        self.plain.push(bytes, &mut text);
        self.kept.push(&text);
    }

    fn finish(mut self) -> String {
        let mut rest = String::new();
        self.plain.finish(&mut rest);
        self.kept.push(&rest);
        self.kept.show(HEAD_PERCENT).text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_with_an_exclamation_mark_is_a_command_line() {
        for (line, expected) in [
            ("!ls -l", Some(("ls -l", true))),
            (" !! make ", Some(("make", false))),
            ("!", Some(("", true))),
            ("!!", Some(("", false))),
            ("wait!", None),
            ("", None),
        ] {
            let parsed = parse_escape(line).map(|escape| (escape.line, escape.is_told));
            assert_eq!(parsed, expected, "{line:?}");
        }
    }

    #[test]
    fn long_output_is_bounded_for_the_model_and_says_what_is_left_out() {
        let mut output = Overheard { plain: PlainState::default(), kept: BoundedInput::new(40, None) };
        for number in 0..100 {
            let mut text = String::new();
            output.plain.push(format!("\x1b[31m{number:03}\x1b[0m\n").as_bytes(), &mut text);
            output.kept.push(&text);
        }
        let text = output.finish();
        assert!(text.starts_with("000\n001\n002\n[… 91 lines, 364 bytes left out …]\n"), "{text}");
        assert!(text.ends_with("098\n099\n"), "{text}");
    }
}
