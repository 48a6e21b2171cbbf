//! The source of messages: the line editor on a terminal, plain lines elsewhere.
//!
//! On a terminal that can be drawn on, the [`Console`] owns the input and passes each key to the [`InputLine`], between turns
//! and during them. On a plain one (`TERM=dumb`) the terminal edits the line. Text typed before a question appeared never
//! answers it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as requests;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc};

pub(super) use super::by_line::LineInput;
use super::by_line::{prompt_person, read_line, read_piped, read_plain};
use super::complete::{ArgumentNames, complete_line, find_mention};
use super::history::SharedHistory;
use super::interrupts::Interrupter;
use super::{commands, shell};
use crate::config::EditMode;
use crate::screen::line::{
    InputLine, Joined, LineEnd, LineKeys, LineSettings, MARK_NO_PASTE, MARK_PASTE, Pastes, TypedText,
};
use crate::screen::terminal::{self, Console, KeyReports};
use crate::screen::{AskLine, Loan, Outlets, PROMPT};

/// The settings of the line editor.
pub struct EditorSetup {
    /// The file of the history; `None` keeps none.
    pub history: Option<PathBuf>,
    pub edit_mode: EditMode,
    /// The terminal shows colours: hints are told from what was typed.
    pub colours: bool,
    /// The terminal is asked for its background colour.
    pub asks_theme: bool,
    /// The terminal reports modified keys as xterm does, if it is asked to.
    pub modifies_keys: bool,
    pub outlets: Outlets,
}

/// A source of messages.
pub struct MessageLines {
    source: LineSource,
    interrupter: Interrupter,
    interactive: bool,
}

enum LineSource {
    /// Keys, and the line that they edit.
    Keys(KeyTerminal),
    /// A thread that reads lines from stdin.
    Lines(LineThread),
}

/// The terminal and its editor.
struct KeyTerminal {
    console: Arc<Console>,
    typing: InputLine,
    /// What completes; `None` until the chat is there.
    words: Arc<RwLock<Option<ArgumentNames>>>,
    history: std::sync::Mutex<SharedHistory>,
    pastes: Pastes,
    outlets: Outlets,
    /// What the terminal is asked when the prompt is first shown.
    asks: std::sync::Mutex<Option<String>>,
}

/// A thread that reads lines when it is asked to.
struct LineThread {
    requests: requests::Sender<LineRequest>,
    replies: Mutex<mpsc::Receiver<LineInput>>,
    /// True while a requested line has not arrived. The next caller gets it.
    waiting: AtomicBool,
}

/// The prompt of a question that the line answers; `None` for a message.
type LineRequest = Option<String>;

/// Asks for the background colour (xterm's OSC 11).
const ASK_BACKGROUND: &str = "\x1b]11;?\x1b\\";
/// Asks whether keys can be reported with all their modifiers (kitty keyboard protocol).
const ASK_KEYS: &str = "\x1b[?u";
/// Asks for attributes (DA1), which every terminal answers, and last.
const ASK_ATTRIBUTES: &str = "\x1b[c";

impl MessageLines {
    /// Opens the line editor on a terminal that can be drawn on. `None` if keys cannot be read.
    pub fn editor(setup: EditorSetup, interrupter: Interrupter) -> Option<Self> {
        let (outlets, pastes) = (setup.outlets, Pastes::default());
        let words = Arc::<RwLock<Option<ArgumentNames>>>::default();
        let (known, foreseen) = (Arc::clone(&words), Arc::clone(&words));
        let settings = LineSettings {
            edit_mode: setup.edit_mode,
            pastes: pastes.clone(),
            complete: Some(Arc::new(move |line, cursor, patience| {
                let known = known.read().unwrap_or_else(PoisonError::into_inner);
                known.as_ref().map(|words| complete_line(line, cursor, words, patience))
            })),
            takes_messages: true,
            hints: setup.colours,
            foresee: Some(Box::new(move |before| {
                let known = foreseen.read().unwrap_or_else(PoisonError::into_inner);
                if let Some(words) = known.as_ref().filter(|_| find_mention(before).is_some()) {
                    words.files.prepare();
                }
            })),
        };
        let typing = InputLine::new(outlets.display.clone(), settings);
        let keys = LineKeys::new(typing.clone(), outlets.clone());
        let console = Arc::new(Console::open(Box::new(keys), true)?);
        let history = SharedHistory::open(setup.history);
        typing.learn(history.entries());
        let background = if setup.asks_theme { ASK_BACKGROUND } else { "" };
        let keys_asked = if setup.modifies_keys { KeyReports::Modified.begin() } else { ASK_KEYS };
        let keys = KeyTerminal {
            console,
            typing,
            words,
            history: std::sync::Mutex::new(history),
            pastes,
            outlets,
            asks: Some(format!("{background}{keys_asked}{ASK_ATTRIBUTES}")).into(),
        };
        Some(Self { source: LineSource::Keys(keys), interrupter, interactive: true })
    }

    /// Reads lines of a plain terminal, each after a prompt. The terminal itself edits them.
    pub fn plain(outlets: Outlets, interrupter: Interrupter) -> Self {
        Self::threaded(interrupter, true, move || {
            let mut joined = Joined::default();
            let mut ahead = Vec::new();
            move |request| {
                outlets.wait();
                match request {
                    None => read_plain(&mut ahead, &mut joined),
                    Some(prompt) => {
                        ahead.extend(terminal::typed_ahead());
                        prompt_person(&prompt);
                        read_line(&mut io::stdin().lock()).map_or_else(|end| end, LineInput::Text)
                    }
                }
            }
        })
    }

    /// Reads plain stdin without prompts. Each line (or block of lines) is a message.
    pub fn piped(interrupter: Interrupter) -> Self {
        Self::threaded(interrupter, false, || {
            let mut joined = Joined::default();
            move |_| read_piped(&mut io::stdin().lock(), &mut joined)
        })
    }

    fn threaded<R>(interrupter: Interrupter, interactive: bool, start: impl FnOnce() -> R + Send + 'static) -> Self
    where
        R: FnMut(LineRequest) -> LineInput,
    {
        let (requests, wanted) = requests::channel();
        let (sender, replies) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut read = start();
            for request in wanted {
                if sender.blocking_send(read(request)).is_err() {
                    return;
                }
            }
        });
        let thread = LineThread { requests, replies: Mutex::new(replies), waiting: AtomicBool::new(false) };
        Self { source: LineSource::Lines(thread), interrupter, interactive }
    }

    /// True if a person types the lines.
    pub fn interactive(&self) -> bool {
        self.interactive
    }

    /// The way to stop running work.
    pub(super) fn interrupter(&self) -> &Interrupter {
        &self.interrupter
    }

    fn keys(&self) -> Option<&KeyTerminal> {
        match &self.source {
            LineSource::Keys(keys) => Some(keys),
            LineSource::Lines(_) => None,
        }
    }

    /// The console, if keys are read one by one.
    pub fn console(&self) -> Option<Arc<Console>> {
        self.keys().map(|keys| Arc::clone(&keys.console))
    }

    /// The line that is typed, and the queue behind it, if keys are read one by one.
    pub fn typing(&self) -> Option<&InputLine> {
        self.keys().map(|keys| &keys.typing)
    }

    /// Completes these words from here on.
    pub(super) fn learn_words(&self, mut words: ArgumentNames) {
        let Some(keys) = self.keys() else { return };
        let mut known = keys.words.write().unwrap_or_else(PoisonError::into_inner);
        // The list of files goes on.
        words.files = known.take().map_or(words.files, |before| before.files);
        *known = Some(words);
        drop(known);
        keys.typing.complete_late();
    }

    /// Shows the prompt early, so the first message can be typed while the chat is assembled.
    pub fn begin(&self) {
        if let Some(keys) = self.keys() {
            keys.await_message();
        }
    }

    /// Reads the next message. Dropping the future loses nothing: the next call returns the line.
    pub(super) async fn read(&self) -> LineInput {
        self.next(None).await
    }

    /// Puts `text` into the next line, for the person to continue.
    pub(super) fn begin_with(&self, text: TypedText) {
        if let Some(typing) = self.typing() {
            typing.begin_with(text);
        }
    }

    /// Lends the terminal to another program until the loan is dropped.
    pub(super) async fn lend(&self, outlets: &Outlets) -> Loan {
        Loan::take(self.console().as_deref(), outlets).await
    }

    /// Handles a Ctrl-C that arrived as a signal while a line was read. A plain terminal has discarded the line.
    pub(super) fn interrupted(&self) {
        match self.keys() {
            Some(keys) => keys.typing.interrupt(),
            None => prompt_person(&format!("\nCtrl-D or /exit leaves.\n{PROMPT}")),
        }
    }

    async fn next(&self, request: LineRequest) -> LineInput {
        match &self.source {
            LineSource::Keys(keys) => keys.read().await,
            LineSource::Lines(thread) => thread.read(request).await,
        }
    }
}

impl LineThread {
    async fn read(&self, request: LineRequest) -> LineInput {
        let mut replies = self.replies.lock().await;
        if !self.waiting.swap(true, Ordering::Relaxed) && self.requests.send(request).is_err() {
            return LineInput::Eof;
        }
        let line = replies.recv().await.unwrap_or(LineInput::Eof);
        self.waiting.store(false, Ordering::Relaxed);
        line
    }
}

impl KeyTerminal {
    /// Shows the prompt.
    fn await_message(&self) {
        if let Ok(mut history) = self.history.lock()
            && history.refresh()
        {
            self.typing.learn(history.entries());
        }
        self.outlets.display.control(MARK_PASTE);
        self.typing.await_message();
        if let Some(asks) = self.asks.lock().ok().and_then(|mut asks| asks.take()) {
            self.outlets.display.control(&asks);
            self.console.expect_answer();
        }
    }

    async fn read(&self) -> LineInput {
        self.await_message();
        let mut resizes = terminal::Resizes::open();
        loop {
            tokio::select! {
                biased;
                end = self.typing.read() => return self.hear(end),
                () = resizes.next() => self.outlets.display.resize(),
            }
        }
    }

    /// Keeps a message in the history, with its long pastes in full.
    fn hear(&self, end: LineEnd) -> LineInput {
        let message = match end {
            LineEnd::Message(message) => message,
            LineEnd::Interrupted => return LineInput::Interrupted,
            LineEnd::Closed => return LineInput::Eof,
            LineEnd::Elsewhere(line) => return LineInput::Elsewhere(line),
            LineEnd::Looking(line) => return LineInput::Looking(line),
        };
        let is_pasted = message.is_pasted();
        let whole = self.pastes.expand(&message.text);
        if let Ok(mut history) = self.history.lock() {
            history.add(&whole);
            self.typing.learn(history.entries());
        }
        if is_pasted || !is_command(&message.text) {
            self.typing.keep_last(message.text);
        }
        if is_pasted { LineInput::Pasted(whole) } else { LineInput::Text(whole) }
    }
}

/// True for a line that is not a message: a slash command or a shell command.
fn is_command(line: &str) -> bool {
    shell::parse_escape(line).is_some()
        || matches!(commands::parse_input(line, &[]), commands::ParsedInput::Command(..))
}

impl AskLine for MessageLines {
    fn ask<'a>(&'a self, prompt: &'a str) -> BoxFuture<'a, Option<String>> {
        async move {
            match self.next(Some(prompt.to_owned())).await {
                LineInput::Text(text) | LineInput::Pasted(text) => Some(text),
                LineInput::Elsewhere(begun) | LineInput::Looking(begun) => Some(begun.text),
                LineInput::Interrupted => {
                    // The interrupt drops the turn that asks. An answer would let it continue for a moment.
                    self.interrupter.interrupt();
                    std::future::pending().await
                }
                LineInput::Eof | LineInput::Failed(_) => None,
            }
        }
        .boxed()
    }
}

impl Drop for MessageLines {
    fn drop(&mut self) {
        let Some(keys) = self.keys() else { return };
        // What was typed is left where it is, and the shell begins in the next row.
        let line_end = if keys.typing.is_shown() { "\r\n" } else { "" };
        let mut stderr = io::stderr();
        let _ = write!(stderr, "{line_end}{MARK_NO_PASTE}").and_then(|()| stderr.flush());
        terminal::put_back();
    }
}
