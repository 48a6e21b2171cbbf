//! The source of messages: the line editor on a terminal, plain lines elsewhere.
//!
//! On a terminal that can be drawn on, the [`Console`] owns the input: it lends the terminal to the line editor between
//! turns, and reads keys itself while a turn runs. On a plain one (`TERM=dumb`) the terminal edits the line. Text typed
//! before a question appeared never answers it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as requests;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc};

pub(super) use super::by_line::LineInput;
use super::by_line::{prompt_person, read_line, read_piped, read_plain};
use super::complete::{ArgumentNames, complete_line};
use super::input::LineEditor;
use super::interrupts::Interrupter;
use crate::base::text;
use crate::config::EditMode;
use crate::screen::ink::{Ink, Inks, Line as InkLine, Style};
use crate::screen::line::{
    InputLine, Joined, LineKeys, LineSettings, MARK_NO_PASTE, MARK_PASTE, NextInput, Pastes, TypedText,
};
use crate::screen::terminal::{self, Console};
use crate::screen::{AskLine, Loan, Outlets, PROMPT};

/// The settings of the line editor.
pub struct EditorSetup {
    /// The file of the history; `None` keeps none.
    pub history: Option<PathBuf>,
    /// The words to complete. They may be set while the editor runs.
    pub vocabulary: Arc<OnceLock<ArgumentNames>>,
    pub style: Style,
    pub edit_mode: EditMode,
    /// True if the terminal rewraps lines when its width changes.
    pub reflows: bool,
    /// stdout is a terminal too; otherwise the editor draws on the controlling terminal.
    pub stdout_terminal: bool,
    /// If true, the terminal is asked for its background colour after the first message.
    pub asks_theme: bool,
    /// The outlets, which are emptied before the editor draws.
    pub outlets: Outlets,
}

/// A source of messages.
pub struct MessageLines {
    source: LineSource,
    replies: Mutex<mpsc::Receiver<LineInput>>,
    /// True while a requested line has not arrived. The next caller gets it.
    waiting: AtomicBool,
    interrupter: Interrupter,
    interactive: bool,
}

enum LineSource {
    /// A console that lends the terminal to the editor.
    Keys(KeyTerminal),
    /// A thread that reads lines from stdin.
    Lines(requests::Sender<LineRequest>),
}

/// The terminal and its editor.
#[derive(Clone)]
struct KeyTerminal {
    console: Arc<Console>,
    typing: InputLine,
    editor: Arc<std::sync::Mutex<LineEditor>>,
    pastes: Pastes,
    replies: mpsc::Sender<LineInput>,
    outlets: Outlets,
    asks_theme: Arc<AtomicBool>,
}

/// The prompt of a question that the line answers; `None` for a message.
type LineRequest = Option<String>;

/// Asks for the background colour (xterm's OSC 11), then for attributes (DA1), which every terminal answers.
const ASK_BACKGROUND: &str = "\x1b]11;?\x1b\\\x1b[c";

impl MessageLines {
    /// Opens the line editor on a terminal that can be drawn on. `None` if keys cannot be read.
    pub fn editor(setup: EditorSetup, interrupter: Interrupter) -> Option<Self> {
        let (outlets, pastes) = (setup.outlets.clone(), Pastes::default());
        let vocabulary = Arc::clone(&setup.vocabulary);
        let settings = LineSettings {
            edit_mode: setup.edit_mode,
            pastes: pastes.clone(),
            complete: Some(Arc::new(move |line, cursor| match vocabulary.get() {
                Some(vocabulary) => complete_line(line, cursor, vocabulary),
                None => (cursor, Vec::new()),
            })),
            takes_messages: true,
        };
        let typing = InputLine::new(outlets.display.clone(), settings);
        let keys = LineKeys::new(typing.clone(), outlets.clone());
        let console = Arc::new(Console::open(Box::new(keys), true)?);
        let (sender, replies) = mpsc::channel(1);
        let asks_theme = Arc::new(AtomicBool::new(setup.asks_theme));
        let editor = Arc::new(std::sync::Mutex::new(LineEditor::new(setup, pastes.clone())));
        let keys = KeyTerminal { console, typing, editor, pastes, replies: sender, outlets, asks_theme };
        let (source, replies, waiting) = (LineSource::Keys(keys), Mutex::new(replies), AtomicBool::new(false));
        Some(Self { source, replies, waiting, interrupter, interactive: true })
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
        let (source, replies, waiting) =
            (LineSource::Lines(requests), Mutex::new(replies), AtomicBool::new(false));
        Self { source, replies, waiting, interrupter, interactive }
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

    /// The line that is typed during a turn, and the queue, if keys are read one by one.
    pub fn typing(&self) -> Option<&InputLine> {
        self.keys().map(|keys| &keys.typing)
    }

    /// Shows the prompt early, so the first message can be typed while the chat is assembled.
    pub fn begin(&self) {
        if let Some(keys) = self.keys() {
            self.waiting.store(true, Ordering::Relaxed);
            // A line may have been typed before the program was ready.
            if let Some(line) = keys.request() {
                let _ = keys.replies.try_send(line);
            }
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

    /// Ends a loan with `begun` in the line. The line editor gets the next key: nothing reads the terminal in between.
    pub(super) fn go_on(&self, lent: Loan, begun: TypedText) {
        self.begin_with(begun);
        self.begin();
        drop(lent);
    }

    /// Handles a Ctrl-C that arrived as a signal while a line was read. A plain terminal has discarded the line.
    pub(super) fn interrupted(&self) {
        if self.keys().is_none() {
            prompt_person(&format!("\nCtrl-D or /exit leaves.\n{PROMPT}"));
        }
    }

    /// Takes what is typed from now on, while the agent works. Until then keys belong to the next line: a Ctrl-R right
    /// after a Ctrl-C must not be lost on the way to it.
    pub(super) fn work_begins(&self) {
        if let Some(keys) = self.keys() {
            keys.console.listen();
        }
    }

    /// Asks the terminal for its background at the start of a turn, which is not possible while the editor draws.
    pub(super) fn turn_begins(&self) {
        self.work_begins();
        if let Some(keys) = self.keys()
            && keys.asks_theme.swap(false, Ordering::Relaxed)
        {
            keys.outlets.display.control(ASK_BACKGROUND);
            keys.console.expect_answer();
        }
    }

    async fn next(&self, request: LineRequest) -> LineInput {
        let mut replies = self.replies.lock().await;
        if !self.waiting.swap(true, Ordering::Relaxed) {
            let at_once = match &self.source {
                LineSource::Keys(keys) => keys.request(),
                LineSource::Lines(requests) => requests.send(request).err().map(|_| LineInput::Eof),
            };
            if let Some(line) = at_once {
                self.waiting.store(false, Ordering::Relaxed);
                return line;
            }
        }
        let line = replies.recv().await.unwrap_or(LineInput::Eof);
        self.waiting.store(false, Ordering::Relaxed);
        line
    }
}

impl KeyTerminal {
    /// Returns a message that is already queued. Otherwise lets the editor read one.
    fn request(&self) -> Option<LineInput> {
        if let Some(next) = self.typing.ready() {
            return Some(self.queued(next));
        }
        let away = self.outlets.display.suspend(false);
        let keys = self.clone();
        self.console.lend(move || {
            keys.outlets.wait();
            // Keys that arrived until now belong to the line typed during the turn.
            let line = match keys.typing.next() {
                NextInput::Begun(begun) => {
                    let mut editor = keys.editor.lock().expect("the editor does not panic");
                    editor.read_message(Joined::default(), &begun)
                }
                next => keys.queued(next),
            };
            keys.outlets.display.control(MARK_PASTE);
            drop(away);
            // Fails if the chat is over.
            let _ = keys.replies.blocking_send(line);
        });
        None
    }

    /// Returns a queued message, shown as if it had been typed now.
    fn queued(&self, next: NextInput) -> LineInput {
        let (NextInput::Message(message) | NextInput::Begun(message)) = next else {
            return LineInput::Eof;
        };
        let shown = text::make_visible(&message.text);
        let mut lead = PROMPT;
        let lines = shown
            .lines()
            .map(|line| InkLine::from((Ink::Cyan, std::mem::replace(&mut lead, "  "))).add(Inks::PLAIN, line));
        self.outlets.display.lines(lines.collect());
        let is_pasted = message.is_pasted();
        let whole = message.expand(&self.pastes).text;
        if let Ok(mut editor) = self.editor.lock() {
            editor.remember(&whole);
        }
        if is_pasted { LineInput::Pasted(whole) } else { LineInput::Text(whole) }
    }
}

impl AskLine for MessageLines {
    fn ask<'a>(&'a self, prompt: &'a str) -> BoxFuture<'a, Option<String>> {
        async move {
            match self.next(Some(prompt.to_owned())).await {
                LineInput::Text(text) | LineInput::Pasted(text) => Some(text),
                LineInput::Elsewhere(begun) | LineInput::Looking(begun) => Some(begun.text),
                LineInput::Interrupted | LineInput::Cleared => {
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
        if self.keys().is_none() {
            return;
        }
        // The editor may still be reading. It is left alone; only the modes of the terminal are restored.
        let line_end = if self.waiting.load(Ordering::Relaxed) { "\r\n" } else { "" };
        let mut stderr = io::stderr();
        let _ = write!(stderr, "{line_end}{MARK_NO_PASTE}").and_then(|()| stderr.flush());
        terminal::put_back();
    }
}
