//! The source of lines: the line editor on a terminal, plain stdin elsewhere.
//!
//! One thread owns the source and reads only on request, so nothing else touches the terminal meanwhile. The terminal
//! keeps keys that are typed in between, unseen, until the next message is read. They never answer a question that was
//! not on the screen yet: a question takes them out of the terminal first.

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as requests;
use std::sync::{Arc, OnceLock, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc};

use super::complete::Vocabulary;
use super::input::Editor;
use super::interrupts::Interrupter;
use super::multiline::Joined;
use crate::config::EditMode;
use crate::ink::Style;
use crate::sink::{AskLine, Outlets};
use crate::terminal::{self, Modes};

/// One line, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// May hold line feeds.
    Text(String),
    /// The same, pasted at its start: it is no command, whatever it looks like.
    Pasted(String),
    /// The person wants to go on with this text in their own editor.
    Elsewhere(String),
    /// Ctrl-C on an empty line.
    Interrupted,
    /// Ctrl-C threw away what was typed.
    Cleared,
    Eof,
    Failed(String),
}

/// The settings of the line editor.
pub struct Setup {
    /// The file of the history; `None` keeps none.
    pub history: Option<PathBuf>,
    /// The words that complete. They may be set while the editor runs.
    pub vocabulary: Arc<OnceLock<Vocabulary>>,
    pub style: Style,
    pub edit_mode: EditMode,
    /// stdout is a terminal too; otherwise the editor draws on the controlling terminal.
    pub stdout_terminal: bool,
    /// Written to the end before the editor draws.
    pub outlets: Outlets,
}

/// A source of lines. Messages and answers to questions come from the same one.
pub struct Lines {
    requests: requests::Sender<Request>,
    replies: Mutex<mpsc::Receiver<Line>>,
    /// A line was requested and has not come. The next caller gets it.
    waiting: AtomicBool,
    interrupter: Interrupter,
    terminal: Option<Modes>,
    interactive: bool,
    /// Stands in the next line when it begins.
    begun: std::sync::Mutex<String>,
}

pub(super) enum Request {
    /// With the start of its line.
    Message(String),
    /// With its prompt.
    Question(String),
}

impl Lines {
    /// Starts the line editor. Ctrl-C at a question goes to `interrupter`, as it stops the turn that asks.
    #[must_use]
    pub fn editor(setup: Setup, interrupter: Interrupter) -> Self {
        let terminal = Modes::save();
        hold(terminal.as_ref());
        Self::spawn(interrupter, terminal, true, move || {
            let outlets = setup.outlets.clone();
            let mut editor = Editor::new(setup);
            let mut ahead = TypedAhead::default();
            move |request| {
                outlets.wait();
                let line = match request {
                    Request::Message(begun) => ahead.message(&mut editor, begun),
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

    /// Reads plain stdin without prompts. Each line (or block of lines) is a message.
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
            begun: std::sync::Mutex::default(),
        }
    }

    /// Puts `text` into the next line, for the person to go on with.
    pub(super) fn begin_with(&self, text: String) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Lends the terminal to a program, as it was found. Nobody may read lines meanwhile.
    pub(super) fn lend(&self) -> Lent {
        if let Some(terminal) = &self.terminal {
            let mut stderr = io::stderr();
            let _ = write!(stderr, "{MARK_NO_PASTE}").and_then(|()| stderr.flush());
            terminal.restore();
        }
        Lent(self.terminal)
    }

    /// True if a person types the lines.
    pub(super) fn interactive(&self) -> bool {
        self.interactive
    }

    /// Reads the next message. Dropping the future loses nothing: the line comes with the next call.
    pub(super) async fn read(&self) -> Line {
        let begun = std::mem::take(&mut *self.begun.lock().unwrap_or_else(PoisonError::into_inner));
        self.next(Request::Message(begun)).await
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

/// The terminal while another program has it. It comes back when this is dropped.
pub(super) struct Lent(Option<Modes>);

impl Drop for Lent {
    fn drop(&mut self) {
        hold(self.0.as_ref());
    }
}

impl AskLine for Lines {
    fn ask<'a>(&'a self, prompt: &'a str) -> BoxFuture<'a, Option<String>> {
        async move {
            match self.next(Request::Question(prompt.to_owned())).await {
                Line::Text(text) | Line::Pasted(text) | Line::Elsewhere(text) => Some(text),
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
        // The editor may still be reading. It is left alone; the terminal gets its modes back.
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

/// Holds the keys while nobody reads. The editor stops the marking when it has a line.
fn hold(terminal: Option<&Modes>) {
    if let Some(modes) = terminal {
        modes.hold_keys();
        let mut stderr = io::stderr();
        let _ = write!(stderr, "{MARK_PASTE}").and_then(|()| stderr.flush());
    }
}

/// Keys typed before a question was asked, kept for the messages after it.
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

    /// Returns the first whole message. Without one, lets the editor read, beginning with what was typed.
    fn message(&mut self, editor: &mut Editor, begun: String) -> Line {
        self.typed.insert_str(0, &begun);
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

/// Takes the text out of `bytes`, without arrows and function keys. An incomplete character at the end stays.
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

/// Skips the rest of a key that began with an escape: CSI and SS3 end with a letter or a tilde.
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
                return Line::Failed("a line of stdin is longer than 16 MiB".to_owned());
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
