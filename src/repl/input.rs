//! The line editor on a terminal: keys, completion, history. The only user of the editing crate.
//!
//! Enter ends a line, and with it the message unless it continues (see `multiline`). A paste is one line, whatever it
//! holds.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use rustyline::completion::{Completer, Pair};
use rustyline::config::{Behavior, BellStyle};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{FileHistory, History, SearchDirection};
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ConditionalEventHandler, Config, Context, Event, EventContext, EventHandler, Helper, KeyCode, KeyEvent,
    Modifiers, RepeatCount,
};

use super::complete::{Vocabulary, offers};
use super::lines::{Line, Setup};
use super::multiline::Joined;
use crate::ink::{Ink, Style};

const PROMPT: &str = "> ";
/// Before the further lines of a message.
const MORE: &str = ". ";
const MOST_ENTRIES: usize = 1000;

/// Reads lines from a person.
pub struct Editor {
    /// `Err` says why there is no editor.
    terminal: Result<Terminal, String>,
    history: Option<PathBuf>,
    keys: Arc<Shared>,
}

type Terminal = rustyline::Editor<Keys, FileHistory>;

/// State that key handlers share with the editor.
#[derive(Default)]
struct Shared {
    /// How the line was ended, if not by Enter.
    ended: Mutex<Option<Line>>,
}

impl Shared {
    fn take_end(&self) -> Option<Line> {
        self.ended.lock().expect("no key handler panics").take()
    }
}

impl Editor {
    pub fn new(setup: Setup) -> Self {
        let keys = Arc::new(Shared::default());
        let history = setup.history.filter(|path| prepare(path).is_ok());
        let helper = Keys { vocabulary: setup.vocabulary, style: setup.style };
        let terminal = open(helper, setup.stdout_terminal, &keys).map(|mut editor| {
            if let Some(path) = &history {
                // A history that cannot be read begins anew.
                let _ = load(editor.history_mut(), path);
            }
            editor
        });
        Self { terminal: terminal.map_err(|error| error.to_string()), history, keys }
    }

    /// Reads lines until a message is whole. `joined` holds its lines so far, `begun` is the start of the next one.
    pub fn read_message(&mut self, mut joined: Joined, mut begun: &str) -> Line {
        let editor = match &mut self.terminal {
            Ok(editor) => editor,
            Err(error) => return Line::Failed(error.clone()),
        };
        loop {
            let prompt = if joined.is_empty() { PROMPT } else { MORE };
            match read(editor, &self.keys, prompt, begun) {
                Line::Text(text) => {
                    if let Some(message) = joined.add(&text) {
                        self.remember(&message);
                        return Line::Text(message);
                    }
                }
                // Ctrl-C threw away the lines before as well; Ctrl-D sends them.
                Line::Interrupted if !joined.is_empty() => return Line::Cleared,
                Line::Eof => return joined.rest().map_or(Line::Eof, Line::Text),
                line => return line,
            }
            begun = "";
        }
    }

    /// Adds a message to the history.
    pub fn remember(&mut self, message: &str) {
        let Ok(editor) = &mut self.terminal else {
            return;
        };
        let added = !message.trim().is_empty() && editor.add_history_entry(message).unwrap_or(false);
        if let Some(path) = self.history.as_ref().filter(|_| added) {
            // A history that cannot be written is no reason to stop talking.
            let _ = editor.append_history(path);
        }
    }
}

/// Reads one line. Whatever ends it, the keys after it are kept.
fn read(editor: &mut Terminal, keys: &Shared, prompt: &str, begun: &str) -> Line {
    match editor.readline_with_initial(prompt, (begun, "")) {
        Ok(text) => keys.take_end().unwrap_or(Line::Text(text)),
        // Ctrl-C that the editor handled itself.
        Err(ReadlineError::Interrupted) => Line::Cleared,
        Err(ReadlineError::Eof) => Line::Eof,
        Err(error) => Line::Failed(error.to_string()),
    }
}

fn open(helper: Keys, stdout_terminal: bool, keys: &Arc<Shared>) -> rustyline::Result<Terminal> {
    let behavior = if stdout_terminal { Behavior::Stdio } else { Behavior::PreferTerm };
    let config = Config::builder()
        .max_history_size(MOST_ENTRIES)?
        .history_ignore_dups(true)?
        .completion_type(rustyline::CompletionType::List)
        .bell_style(BellStyle::None)
        .behavior(behavior)
        .build();
    let mut editor = rustyline::Editor::with_config(config)?;
    editor.set_helper(Some(helper));
    for key in ['C', 'D'] {
        let end = Box::new(EndLine { interrupts: key == 'C', shared: Arc::clone(keys) });
        editor.bind_sequence(KeyEvent::ctrl(key), EventHandler::Conditional(end));
    }
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    Ok(editor)
}

/// Makes the directory of the history, for its owner alone. The file itself gets its mode from the editor.
fn prepare(path: &Path) -> io::Result<()> {
    let Some(dir) = path.parent() else {
        return Ok(());
    };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Reads the history, and drops all but the last of equal entries.
fn load(history: &mut FileHistory, path: &Path) -> rustyline::Result<()> {
    history.load(path)?;
    let mut entries = Vec::with_capacity(history.len());
    for index in 0..history.len() {
        entries.extend(history.get(index, SearchDirection::Forward)?.map(|found| found.entry.into_owned()));
    }
    let mut seen = HashSet::new();
    let mut kept: Vec<&String> = entries.iter().rev().filter(|entry| seen.insert(entry.as_str())).collect();
    if kept.len() == entries.len() {
        return Ok(());
    }
    kept.reverse();
    history.clear()?;
    for entry in kept {
        history.add(entry)?;
    }
    history.save(path)
}

/// Completion and colours.
struct Keys {
    /// The words that complete. Empty for the answer to a question.
    vocabulary: Arc<OnceLock<Vocabulary>>,
    style: Style,
}

impl Helper for Keys {}

impl Hinter for Keys {
    type Hint = String;
}

/// Whether a message is whole is decided after Enter.
impl Validator for Keys {}

impl Completer for Keys {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Some(vocabulary) = self.vocabulary.get() else {
            return Ok((pos, Vec::new()));
        };
        let (start, offers) = offers(line, pos, vocabulary);
        let pairs = offers.into_iter().map(|offer| Pair { display: offer.shown, replacement: offer.inserted });
        Ok((start, pairs.collect()))
    }
}

impl Highlighter for Keys {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        self.style.paint(Ink::Cyan, prompt)
    }
}

/// Ends the line at Ctrl-C, and at Ctrl-D on an empty line, as Enter does: the editor's own way out of a line loses
/// the keys that came after it.
struct EndLine {
    /// Ctrl-C.
    interrupts: bool,
    shared: Arc<Shared>,
}

impl ConditionalEventHandler for EndLine {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let end = match (self.interrupts, context.line().is_empty()) {
            (true, true) => Line::Interrupted,
            (true, false) => Line::Cleared,
            (false, true) => Line::Eof,
            // Ctrl-D in a line deletes a character.
            (false, false) => return None,
        };
        *self.shared.ended.lock().expect("no key handler panics") = Some(end);
        Some(Cmd::AcceptLine)
    }
}
