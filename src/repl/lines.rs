//! Where lines come from: the line editor on a terminal, plain stdin elsewhere.
//!
//! One thread owns the source and reads only when asked, so nothing else touches the terminal meanwhile. What is
//! typed while nobody asks is kept by the terminal, unseen, until the next message is read. It never answers a
//! question that was not on the screen yet: a question takes it out of the terminal first.

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as requests;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc};

use super::complete::Vocabulary;
use super::input::Editor;
use super::multiline::Joined;
use super::{Interrupter, Line, LineSource};
use crate::sink::{AskLine, Style};
use crate::terminal::{self, Modes};

/// What the line editor starts with.
pub struct Setup {
    /// Where what was typed is kept; `None`: not at all.
    pub history: Option<PathBuf>,
    pub vocabulary: Vocabulary,
    pub style: Style,
    /// stdout is a terminal too; else the editor draws on the controlling terminal.
    pub stdout_terminal: bool,
}

/// A source of lines. Messages and answers to questions come from the same one.
pub struct Lines {
    requests: requests::Sender<Request>,
    replies: Mutex<mpsc::Receiver<Line>>,
    /// A line was asked for and has not come: whoever waits next gets it.
    waiting: AtomicBool,
    interrupter: Interrupter,
    terminal: Option<Modes>,
    interactive: bool,
}

pub(super) enum Request {
    Message,
    /// With its prompt.
    Question(String),
}

impl Lines {
    /// The line editor. Ctrl-C at a question goes to `interrupter`, as it stops the turn that asks.
    #[must_use]
    pub fn editor(setup: Setup, interrupter: Interrupter) -> Self {
        let terminal = Modes::save();
        hold(terminal.as_ref());
        Self::spawn(interrupter, terminal, true, move || {
            let mut editor = Editor::new(setup);
            let mut ahead = TypedAhead::default();
            move |request| {
                let line = match request {
                    Request::Message => ahead.message(&mut editor),
                    Request::Question(prompt) => {
                        ahead.take();
                        editor.read_answer(&prompt)
                    }
                };
                hold(terminal.as_ref());
                line
            }
        })
    }

    /// Plain stdin: each line (or block of lines) a message, without prompts.
    #[must_use]
    pub fn piped(interrupter: Interrupter) -> Self {
        Self::spawn(interrupter, None, false, || {
            let mut joined = Joined::default();
            move |_| read_piped(&mut io::stdin().lock(), &mut joined)
        })
    }

    fn spawn<R>(
        interrupter: Interrupter,
        terminal: Option<Modes>,
        interactive: bool,
        start: impl FnOnce() -> R + Send + 'static,
    ) -> Self
    where
        R: FnMut(Request) -> Line,
    {
        let (sender, wanted) = requests::channel();
        let (replies, receiver) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut read = start();
            for request in wanted {
                if replies.blocking_send(read(request)).is_err() {
                    return;
                }
            }
        });
        Self {
            requests: sender,
            replies: Mutex::new(receiver),
            waiting: AtomicBool::new(false),
            interrupter,
            terminal,
            interactive,
        }
    }

    async fn next(&self, request: Request) -> Line {
        let mut replies = self.replies.lock().await;
        if !self.waiting.swap(true, Ordering::Relaxed) && self.requests.send(request).is_err() {
            return Line::Eof;
        }
        let line = replies.recv().await.unwrap_or(Line::Eof);
        self.waiting.store(false, Ordering::Relaxed);
        line
    }
}

impl LineSource for Lines {
    fn interactive(&self) -> bool {
        self.interactive
    }

    fn read(&self) -> BoxFuture<'_, Line> {
        self.next(Request::Message).boxed()
    }
}

impl AskLine for Lines {
    fn ask<'a>(&'a self, prompt: &'a str) -> BoxFuture<'a, Option<String>> {
        async move {
            match self.next(Request::Question(prompt.to_owned())).await {
                Line::Text(text) => Some(text),
                Line::Interrupted | Line::Cleared => {
                    // The turn that asks is dropped for it; an answer would let it go on for a moment.
                    self.interrupter.interrupt();
                    std::future::pending().await
                }
                Line::Eof | Line::Failed(_) => None,
            }
        }
        .boxed()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let Some(terminal) = &self.terminal else {
            return;
        };
        // The editor may still be reading: it is left where it is, the terminal is not.
        let line_end = if self.waiting.load(Ordering::Relaxed) { "\r\n" } else { "" };
        let mut stderr = io::stderr();
        let _ = write!(stderr, "{MARK_NO_PASTE}{line_end}").and_then(|()| stderr.flush());
        terminal.restore();
    }
}

/// The terminal puts marks around what is pasted, so that a paste of many lines is one message.
const MARK_PASTE: &str = "\x1b[?2004h";
const MARK_NO_PASTE: &str = "\x1b[?2004l";
const PASTE_BEGINS: &str = "\x1b[200~";
const PASTE_ENDS: &str = "\x1b[201~";

/// Nobody reads for a while. The editor takes the marks off when it has a line.
fn hold(terminal: Option<&Modes>) {
    if let Some(modes) = terminal {
        modes.hold_keys();
        let mut stderr = io::stderr();
        let _ = write!(stderr, "{MARK_PASTE}").and_then(|()| stderr.flush());
    }
}

/// What was typed before a question was asked, kept for the messages after it.
#[derive(Default)]
struct TypedAhead {
    /// Enter is a carriage return, a line feed belongs to a paste.
    typed: String,
    bytes: Vec<u8>,
}

impl TypedAhead {
    fn take(&mut self) {
        self.bytes.extend(terminal::typed_ahead());
        self.typed += &decode(&mut self.bytes);
    }

    /// The first whole message of it; else what the editor reads, begun with the rest of it.
    fn message(&mut self, editor: &mut Editor) -> Line {
        let mut joined = Joined::default();
        let mut from = 0;
        while let Some(end) = self.typed[from..].find('\r').map(|at| from + at) {
            if let Some(message) = joined.add(&self.typed[from..end]) {
                self.typed.drain(..=end);
                editor.accepted(&message);
                return Line::Text(message);
            }
            from = end + 1;
        }
        let begun = std::mem::take(&mut self.typed);
        editor.read_message(joined, &begun[from..])
    }
}

/// Takes the characters out of `bytes`, without the keys that are none (arrows, function keys); an incomplete
/// character at the end stays.
fn decode(bytes: &mut Vec<u8>) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let bytes: Vec<u8> = bytes.drain(..whole).collect();
    let keys = String::from_utf8_lossy(&bytes);
    let mut rest = &*keys;
    let mut text = String::new();
    while let Some(key) = rest.chars().next() {
        if let Some(pasted) = rest.strip_prefix(PASTE_BEGINS) {
            let (pasted, after) = pasted.split_once(PASTE_ENDS).unwrap_or((pasted, ""));
            text += &pasted.replace("\r\n", "\n").replace('\r', "\n");
            rest = after;
            continue;
        }
        rest = &rest[key.len_utf8()..];
        match key {
            '\x1b' => rest = after_escape(rest),
            '\x7f' | '\x08' if text.ends_with('\r') => {}
            '\x7f' | '\x08' => {
                text.pop();
            }
            '\n' | '\r' => text.push('\r'),
            '\t' => text.push(key),
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
    text
}

/// What follows a key that an escape began: CSI and SS3 go up to the letter or tilde that ends them.
fn after_escape(keys: &str) -> &str {
    let Some(rest) = keys.strip_prefix(['[', 'O']) else {
        return keys;
    };
    let mut rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | '?')).chars();
    rest.next();
    rest.as_str()
}

fn read_piped(stdin: &mut impl BufRead, joined: &mut Joined) -> Line {
    const LONGEST: u64 = 16 * 1024 * 1024;
    loop {
        let mut line = Vec::new();
        match stdin.by_ref().take(LONGEST + 1).read_until(b'\n', &mut line) {
            Err(error) => return Line::Failed(error.to_string()),
            Ok(0) => return joined.rest().map_or(Line::Eof, Line::Text),
            Ok(count) if count as u64 > LONGEST => {
                return Line::Failed("a line of stdin has more than 16 MiB".to_owned());
            }
            Ok(_) => {
                let line = String::from_utf8_lossy(&line);
                let line = line.strip_suffix('\n').unwrap_or(&line);
                if let Some(message) = joined.add(line.strip_suffix('\r').unwrap_or(line)) {
                    return Line::Text(message);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_typed_ahead_become_text() {
        let mut bytes = "helo\x7flo\x1b[A\x1bOB\x1b[3~ 日本\r\x1b[200~a\rb\x1b[201~\x04".as_bytes().to_vec();
        bytes.extend(&"語".as_bytes()[..2]);
        assert_eq!(decode(&mut bytes), "hello 日本\ra\nb");
        bytes.push("語".as_bytes()[2]);
        assert_eq!((decode(&mut bytes).as_str(), bytes.len()), ("語", 0));
    }

    #[test]
    fn each_line_of_a_pipe_is_a_message() {
        let mut stdin = "one\r\n\"\"\"\ntwo\n\nthree\"\"\"\nfour".as_bytes();
        let mut joined = Joined::default();
        let mut next = || read_piped(&mut stdin, &mut joined);
        for expected in ["one", "\"\"\"\ntwo\n\nthree\"\"\"", "four"] {
            assert_eq!(next(), Line::Text(expected.to_owned()));
        }
        assert_eq!(next(), Line::Eof);
    }
}
