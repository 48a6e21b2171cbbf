//! The line editor on a terminal: keys, completion, history. The only user of the editing crate.
//!
//! Enter ends a line, and a message unless it goes on (see `multiline`); a paste is one line, whatever it holds.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

use super::Line;
use super::complete::{Vocabulary, offers};
use super::lines::Setup;
use super::multiline::Joined;
use crate::sink::{Ink, Style};

const PROMPT: &str = "> ";
/// Before the further lines of a message.
const MORE: &str = ". ";
const MOST_ENTRIES: usize = 1000;

/// Reads lines from a person; `Err` is why there is no editor.
pub struct Editor {
    terminal: Result<rustyline::Editor<Keys, FileHistory>, String>,
    history: Option<PathBuf>,
    keys: Arc<Shared>,
    style: Style,
}

/// What key handlers and the editor tell each other.
#[derive(Default)]
struct Shared {
    /// The line was empty when Ctrl-C was pressed.
    empty: AtomicBool,
    /// A message is typed, not the answer to a question.
    message: AtomicBool,
}

impl Editor {
    pub fn new(setup: Setup) -> Self {
        let keys = Arc::new(Shared::default());
        let style = setup.style;
        let history = setup.history.filter(|path| prepare(path).is_ok());
        let terminal = open(setup.vocabulary, style, setup.stdout_terminal, &keys, history.as_deref());
        Self { terminal: terminal.map_err(|error| error.to_string()), history, keys, style }
    }

    /// Reads a message: lines until it is whole. `joined` holds the lines of it that came already, `begun` is the
    /// start of the next one.
    pub fn read_message(&mut self, mut joined: Joined, mut begun: &str) -> Line {
        loop {
            let prompt = if joined.is_empty() { PROMPT } else { MORE };
            self.keys.message.store(true, Ordering::Relaxed);
            let line = self.read(prompt, begun);
            self.keys.message.store(false, Ordering::Relaxed);
            begun = "";
            match line {
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
        }
    }

    /// Reads one line, which no history keeps.
    pub fn read(&mut self, prompt: &str, begun: &str) -> Line {
        let editor = match &mut self.terminal {
            Ok(editor) => editor,
            Err(error) => return Line::Failed(error.clone()),
        };
        match editor.readline_with_initial(prompt, (begun, "")) {
            Ok(text) => Line::Text(text),
            Err(ReadlineError::Interrupted) if self.keys.empty.load(Ordering::Relaxed) => Line::Interrupted,
            Err(ReadlineError::Interrupted) => Line::Cleared,
            Err(ReadlineError::Eof) => Line::Eof,
            Err(error) => Line::Failed(error.to_string()),
        }
    }

    /// A message that came without the editor is shown as if it had been typed here.
    pub fn accepted(&mut self, message: &str) {
        use io::Write;

        let mut stderr = io::stderr();
        let prompt = self.style.paint(Ink::Cyan, PROMPT);
        let _ = writeln!(stderr, "{prompt}{}", crate::text::visible(message));
        self.remember(message);
    }

    fn remember(&mut self, message: &str) {
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

fn open(
    vocabulary: Vocabulary,
    style: Style,
    stdout_terminal: bool,
    keys: &Arc<Shared>,
    history: Option<&Path>,
) -> rustyline::Result<rustyline::Editor<Keys, FileHistory>> {
    let behavior = if stdout_terminal { Behavior::Stdio } else { Behavior::PreferTerm };
    let config = Config::builder()
        .max_history_size(MOST_ENTRIES)?
        .history_ignore_dups(true)?
        .completion_type(rustyline::CompletionType::List)
        .bell_style(BellStyle::None)
        .behavior(behavior)
        .build();
    let mut editor = rustyline::Editor::with_config(config)?;
    editor.set_helper(Some(Keys { vocabulary, style, shared: Arc::clone(keys) }));
    let ctrl_c = Box::new(CtrlC { shared: Arc::clone(keys) });
    editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(ctrl_c));
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    if let Some(path) = history {
        // A history that cannot be read is begun anew.
        let _ = forget_repeats(path);
        let _ = editor.load_history(path);
    }
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

/// Drops all but the last of equal entries.
fn forget_repeats(path: &Path) -> rustyline::Result<()> {
    let config = Config::builder().max_history_size(MOST_ENTRIES)?.build();
    let mut history = FileHistory::with_config(&config);
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
    let mut history = FileHistory::with_config(&config);
    for entry in kept {
        history.add(entry)?;
    }
    history.save(path)
}

/// Completion and colours.
struct Keys {
    vocabulary: Vocabulary,
    style: Style,
    shared: Arc<Shared>,
}

impl Helper for Keys {}

impl Hinter for Keys {
    type Hint = String;
}

/// What is whole is decided after Enter.
impl Validator for Keys {}

impl Completer for Keys {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        if !self.shared.message.load(Ordering::Relaxed) {
            return Ok((pos, Vec::new()));
        }
        let (start, offers) = offers(line, pos, &self.vocabulary);
        let pairs = offers.into_iter().map(|offer| Pair { display: offer.shown, replacement: offer.inserted });
        Ok((start, pairs.collect()))
    }
}

impl Highlighter for Keys {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        self.style.paint(Ink::Cyan, prompt)
    }
}

/// Looks on at Ctrl-C.
struct CtrlC {
    shared: Arc<Shared>,
}

impl ConditionalEventHandler for CtrlC {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        self.shared.empty.store(context.line().is_empty(), Ordering::Relaxed);
        None
    }
}
