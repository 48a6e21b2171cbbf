//! Reads lines: from a plain terminal after a prompt, or from a pipe.

use std::io::{self, BufRead, Read, Write};

use crate::screen::PROMPT;
use crate::screen::line::{Joined, TypedText};

/// One line, or the reason that there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineInput {
    /// Text, which may contain line feeds.
    Text(String),
    /// Text whose start was pasted: it is never a command, whatever it looks like.
    Pasted(String),
    /// Text that the person wants to continue in their own editor.
    Elsewhere(TypedText),
    /// The user wants to see the last output, and then continue with this line.
    Looking(TypedText),
    /// Ctrl-C on an empty line.
    Interrupted,
    Eof,
    Failed(String),
}

/// Reads lines of a plain terminal until a message is complete. `ahead` was typed before a question.
pub(super) fn read_plain(ahead: &mut Vec<u8>, joined: &mut Joined) -> LineInput {
    join_lines(joined, |joined| {
        prompt_person(if joined.is_empty() { PROMPT } else { ". " });
        let Some(end) = ahead.iter().position(|byte| *byte == b'\n') else {
            return read_line(&mut io::stdin().lock());
        };
        read_line(&mut ahead.drain(..=end).collect::<Vec<u8>>().as_slice())
    })
}

/// Reads lines of a pipe until a message is complete.
pub(super) fn read_piped(stdin: &mut impl BufRead, joined: &mut Joined) -> LineInput {
    join_lines(joined, |_| read_line(stdin))
}

fn join_lines(joined: &mut Joined, mut read: impl FnMut(&Joined) -> Result<String, LineInput>) -> LineInput {
    loop {
        match read(joined) {
            Ok(line) => {
                if let Some(message) = joined.add(&line) {
                    return LineInput::Text(message);
                }
            }
            Err(LineInput::Eof) => return joined.rest().map_or(LineInput::Eof, LineInput::Text),
            Err(end) => return end,
        }
    }
}

pub(super) fn prompt_person(prompt: &str) {
    let mut stderr = io::stderr();
    // Reads the line even if the prompt cannot be shown.
    let _ = stderr.write_all(prompt.as_bytes()).and_then(|()| stderr.flush());
}

/// Reads a line without its line ending, or returns the reason that there is none.
pub(super) fn read_line(source: &mut impl BufRead) -> Result<String, LineInput> {
    const LONGEST: u64 = 16 * 1024 * 1024;
    let mut line = Vec::new();
    match source.by_ref().take(LONGEST + 1).read_until(b'\n', &mut line) {
        Err(error) => Err(LineInput::Failed(error.to_string())),
        Ok(0) => Err(LineInput::Eof),
        Ok(count) if count as u64 > LONGEST => {
            Err(LineInput::Failed("a line of stdin is longer than 16 MiB".to_owned()))
        }
        Ok(_) => {
            let line = String::from_utf8_lossy(&line);
            let line = line.strip_suffix('\n').unwrap_or(&line);
            Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_pipe_is_a_message() {
        let mut stdin = "one\r\n\"\"\"\ntwo\n\nthree\"\"\"\nfour".as_bytes();
        let mut joined = Joined::default();
        let mut next = || read_piped(&mut stdin, &mut joined);
        for expected in ["one", "\"\"\"\ntwo\n\nthree\"\"\"", "four"] {
            assert_eq!(next(), LineInput::Text(expected.to_owned()));
        }
        assert_eq!(next(), LineInput::Eof);
    }
}
