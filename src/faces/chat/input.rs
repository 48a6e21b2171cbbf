//! The line editor on a terminal, with completion, history and hints. The only user of the line-editing crate.
//!
//! Enter ends a line, and also the message unless it continues (see `multiline`). `strokes` decides what keys do.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustyline::completion::{Completer, Pair};
use rustyline::config::{Behavior, BellStyle};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::history::{History, MemHistory, SearchDirection};
use rustyline::line_buffer::LineBuffer;
use rustyline::validate::Validator;
use rustyline::{
    Changeset, CharSearch, Cmd, ConditionalEventHandler, Config, Context, Event, EventContext, EventHandler,
    Helper, InputMode, KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
};

use super::complete::{Vocabulary, mention, offers};
use super::history::{MOST_ENTRIES, Shared};
use super::lines::{Line, Setup};
use super::multiline::Joined;
use super::offered::{Offer, Offered, fitting};
use super::pastes::Pastes;
use super::reflow::{self, Width};
use super::strokes::{Effect, Key, Seen, Strokes};
use super::typing::Typed;
use super::{commands, shell};
use crate::base::text;
use crate::config::EditMode;
use crate::screen::PROMPT;
use crate::screen::ink::{Ink, Style};
use crate::screen::terminal;

/// The prompt of the second and later lines of a message.
const MORE: &str = ". ";
/// The columns and rows to assume for a screen of unknown size.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// Reads lines from a person.
pub struct Editor {
    /// The editor, or the reason that there is none.
    terminal: Result<Terminal, String>,
    history: Shared,
    keys: Arc<Keys>,
}

type Terminal = rustyline::Editor<Screen, MemHistory>;

/// The state that key handlers share with the editor.
#[derive(Default)]
struct Keys {
    strokes: Mutex<Strokes>,
    /// The line as last drawn, and the position of its cursor.
    drawn: Mutex<(String, usize)>,
    width: Width,
}

impl Keys {
    fn strokes(&self) -> MutexGuard<'_, Strokes> {
        self.strokes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drawn(&self) -> MutexGuard<'_, (String, usize)> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Editor {
    pub fn new(setup: Setup, pastes: Pastes) -> Self {
        let strokes = Mutex::new(Strokes::with(pastes));
        let keys = Arc::new(Keys { strokes, ..Keys::default() });
        let terminal = open(&setup, &keys).map_err(|error| error.to_string());
        let mut editor = Self { terminal, history: Shared::open(setup.history), keys };
        editor.learn();
        editor
    }

    /// Reads lines until a message is complete. `joined` holds its lines so far, `begun` is the start of the next one.
    pub fn read_message(&mut self, mut joined: Joined, begun: &Typed) -> Line {
        if self.history.refresh() {
            self.learn();
        }
        let mut pasted = begun.is_pasted();
        let mut begun = begun.text.clone();
        loop {
            let editor = match &mut self.terminal {
                Ok(editor) => editor,
                Err(error) => return Line::Failed(error.clone()),
            };
            let is_first = joined.is_empty();
            let line = read(editor, &self.keys, if is_first { PROMPT } else { MORE }, &begun, pasted);
            match line {
                Line::Text(text) => {
                    let is_pasted = is_first && self.keys.strokes().is_pasted(&text);
                    if let Some(message) = joined.add(&text) {
                        return self.whole(&message, is_pasted);
                    }
                }
                Line::Elsewhere(line) => {
                    return Line::Elsewhere(line.after(joined).expanded(&self.keys.strokes().pastes));
                }
                Line::Looking(line) => return Line::Looking(line.after(joined)),
                // Ctrl-C discards the earlier lines too; Ctrl-D sends them.
                Line::Interrupted if !joined.is_empty() => return Line::Cleared,
                Line::Eof => return joined.rest().map_or(Line::Eof, |rest| self.whole(&rest, false)),
                line => return line,
            }
            begun.clear();
            pasted = false;
        }
    }

    /// Expands the pastes of a message, and adds it to the history.
    fn whole(&mut self, message: &str, is_pasted: bool) -> Line {
        let mut strokes = self.keys.strokes();
        let whole = strokes.pastes.expand(message);
        if is_pasted || !is_command(message) {
            strokes.keep_last(message);
        }
        drop(strokes);
        self.remember(&whole);
        if is_pasted { Line::Pasted(whole) } else { Line::Text(whole) }
    }

    /// Adds a message to the history.
    pub fn remember(&mut self, message: &str) {
        self.history.add(message);
        self.learn();
    }

    /// Gives the editor the entries of the history; long ones are shown by their size.
    fn learn(&mut self) {
        let Ok(editor) = &mut self.terminal else { return };
        let strokes = self.keys.strokes();
        let history = editor.history_mut();
        // Neither fails in memory.
        let _ = history.clear();
        for entry in self.history.entries() {
            let _ = history.add_owned(strokes.pastes.shown(entry.clone()));
        }
    }
}

/// Reads one line. The keys after its end are kept.
fn read(editor: &mut Terminal, keys: &Keys, prompt: &str, begun: &str, is_pasted: bool) -> Line {
    if let Some(end) = keys.strokes().begin(is_pasted.then(|| begun.to_owned())) {
        return Line::ended(end, Typed::default());
    }
    *keys.drawn() = (begun.to_owned(), begun.len());
    loop {
        keys.width.forget();
        let (line, at) = keys.drawn().clone();
        let result = editor.readline_with_initial(prompt, line.split_at_checked(at).unwrap_or((&line, "")));
        let end = keys.strokes().take_end();
        match result {
            Ok(_) if keys.strokes().take_stop() => terminal::stop(),
            Ok(text) => {
                let Some(end) = end else { return Line::Text(text) };
                let pasted = keys.strokes().is_pasted(&text).then(|| text.clone());
                return Line::ended(end, Typed { text, pasted });
            }
            // Ctrl-C that the editor handled itself.
            Err(ReadlineError::Interrupted) => return Line::Cleared,
            // Nothing was readable after Enter, or the terminal is gone.
            Err(ReadlineError::Eof) => {
                let Some(entered) = keys.strokes().take_entered() else { return Line::Eof };
                reflow::leave(prompt, &entered, terminal::width().unwrap_or(USUAL_SIZE.0));
                return Line::Text(entered.line);
            }
            // A key that is not UTF-8 is lost; the line is kept.
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(error) => return Line::Failed(error.to_string()),
        }
    }
}

/// True for a line that is not a message: a slash command or a shell command.
fn is_command(line: &str) -> bool {
    shell::parse(line).is_some() || matches!(commands::parse(line, &[]), commands::Input::Command(..))
}

fn open(setup: &Setup, keys: &Arc<Keys>) -> rustyline::Result<Terminal> {
    let edit_mode = match setup.edit_mode {
        EditMode::Emacs => rustyline::EditMode::Emacs,
        EditMode::Vi => rustyline::EditMode::Vi,
    };
    let config = Config::builder()
        .max_history_size(MOST_ENTRIES)?
        .history_ignore_dups(true)?
        .completion_type(rustyline::CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .completion_prompt_limit(usize::MAX)
        .bell_style(BellStyle::None)
        // Also sets how long the editor waits after Esc.
        .edit_mode(edit_mode)
        .behavior(if setup.stdout_terminal { Behavior::Stdio } else { Behavior::PreferTerm })
        .build();
    let history = MemHistory::with_config(&config);
    let mut editor = rustyline::Editor::with_history(config, history)?;
    let keys = Arc::clone(keys);
    editor.set_helper(Some(Screen {
        vocabulary: Arc::clone(&setup.vocabulary),
        style: setup.style,
        reflows: setup.reflows,
        keys: Arc::clone(&keys),
        offered: RefCell::default(),
    }));
    let elsewhere = Event::KeySeq(vec![KeyEvent::ctrl('X'), KeyEvent::ctrl('E')]);
    editor.bind_sequence(elsewhere, EventHandler::Conditional(Box::new(Handler(Arc::clone(&keys)))));
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    editor.bind_sequence(Event::Any, EventHandler::Conditional(Box::new(Handler(keys))));
    Ok(editor)
}

/// The helper of the editor: completion, hints and colours.
struct Screen {
    /// The words to complete.
    vocabulary: Arc<OnceLock<Vocabulary>>,
    style: Style,
    reflows: bool,
    keys: Arc<Keys>,
    offered: RefCell<Offered>,
}

impl Screen {
    /// Returns the offers. Waits for the words, which are known once the agent is assembled.
    fn offers(&self, line: &str, pos: usize) -> (usize, Vec<Offer>) {
        let (start, found) = offers(line, pos, self.vocabulary.wait());
        (start, fitting(found, terminal::size().unwrap_or(USUAL_SIZE)))
    }
}

impl Helper for Screen {}

/// Does nothing: whether a message is complete is decided after Enter.
impl Validator for Screen {}

impl Completer for Screen {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let again = self.offered.borrow_mut().again(line, pos);
        let (start, offers) = match again {
            Some((start, offer)) => (start, vec![offer]),
            None => {
                let (start, offers) = self.offers(line, pos);
                self.offered.borrow_mut().keep(line, pos, start, &offers);
                (start, offers)
            }
        };
        let pairs = offers.into_iter().map(|offer| Pair { display: offer.shown, replacement: offer.inserted });
        Ok((start, pairs.collect()))
    }

    fn update(&self, line: &mut LineBuffer, start: usize, elected: &str, changes: &mut Changeset) {
        let end = line.pos();
        // The common start of several offers may lack letters that were typed.
        let mut offered = self.offered.borrow_mut();
        if elected.starts_with(&line.as_str()[start..end]) || offered.has(elected) {
            line.replace(start..end, elected, changes);
            offered.moved(line.as_str(), line.pos());
        }
    }
}

/// A hint: the rest of an entry of the history.
struct Rest {
    whole: String,
    shown: String,
}

impl Hint for Rest {
    fn display(&self) -> &str {
        &self.shown
    }

    fn completion(&self) -> Option<&str> {
        Some(&self.whole)
    }
}

impl Hinter for Screen {
    type Hint = Rest;

    fn hint(&self, line: &str, pos: usize, context: &Context<'_>) -> Option<Rest> {
        *self.keys.drawn() = (line.to_owned(), pos);
        if line[..pos].ends_with('@')
            && mention(&line[..pos]).is_some()
            && let Some(vocabulary) = self.vocabulary.get()
        {
            vocabulary.files.prepare();
        }
        // Without colours a hint looks like text.
        let is_wanted = self.style.colours && pos == line.len() && !line.trim().is_empty();
        if !is_wanted || self.keys.strokes().is_entered() {
            return None;
        }
        let newest = context.history().len().checked_sub(1)?;
        let found = context.history().starts_with(line, newest, SearchDirection::Reverse).ok()??;
        let rest = found.entry.get(line.len()..).filter(|rest| !rest.is_empty())?;
        // The hint ends on the row of the cursor, so the screen does not scroll.
        let width = terminal::width().unwrap_or(USUAL_SIZE.0);
        let last = line.rsplit('\n').next().unwrap_or_default();
        let used = (text::columns(last) + PROMPT.len()) % width.max(1);
        let first = rest.lines().next().unwrap_or_default();
        let more = if first.len() < rest.len() { " …" } else { "" };
        let shown =
            text::cut(&text::visible(&format!("{first}{more}")), (width - used).saturating_sub(1)).into_owned();
        (!shown.trim().is_empty()).then(|| Rest { whole: rest.to_owned(), shown })
    }
}

impl Highlighter for Screen {
    /// True after a change of the width: then the whole line is drawn.
    fn highlight_char(&self, line: &str, pos: usize, _: CmdKind) -> bool {
        let now = terminal::width().unwrap_or(USUAL_SIZE.0);
        self.keys.width.follow(now, self.reflows, &format!("{PROMPT}{line}"), PROMPT.len() + pos)
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        self.style.paint(Ink::Cyan, prompt)
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        self.style.paint(Ink::Dim, hint)
    }
}

/// Handles every key before the editor. Keys that it does not change have their usual effect.
struct Handler(Arc<Keys>);

impl ConditionalEventHandler for Handler {
    fn handle(&self, event: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let key = key(event, context.mode());
        let is_enter = matches!(key, Key::Return | Key::Feed);
        let seen = Seen {
            line: context.line(),
            pos: context.pos(),
            is_hinted: context.has_hint() && context.pos() == context.line().len(),
            inserts: context.mode() == rustyline::EditMode::Emacs || context.input_mode() != InputMode::Command,
            is_command: is_enter && is_command(context.line()),
        };
        let mut strokes = self.0.strokes();
        let was_entered = strokes.is_entered();
        let effect = strokes.press(key, seen);
        if was_entered != strokes.is_entered() {
            terminal::wait_for_keys(was_entered);
        }
        drop(strokes);
        match effect {
            Effect::Usual => None,
            Effect::Nothing => Some(Cmd::Noop),
            Effect::Redraw => Some(Cmd::Repaint),
            Effect::Insert(text) => Some(Cmd::Insert(1, text)),
            Effect::Accept => Some(Cmd::AcceptLine),
            Effect::TakeHint => Some(Cmd::CompleteHint),
            Effect::KillBracket => Some(Cmd::Kill(Movement::ViCharSearch(1, CharSearch::Backward('[')))),
        }
    }
}

fn key(event: &Event, mode: rustyline::EditMode) -> Key {
    let Event::KeySeq(keys) = event else { return Key::Other };
    let [KeyEvent(code, modifiers)] = keys[..] else { return Key::Elsewhere };
    match (code, modifiers) {
        (KeyCode::Char(c), Modifiers::NONE) => Key::Text(c),
        (KeyCode::Tab, Modifiers::NONE) => Key::Tab,
        (KeyCode::Enter, Modifiers::NONE) | (KeyCode::Char('M'), Modifiers::CTRL) => Key::Return,
        (KeyCode::Char('J'), Modifiers::CTRL) => Key::Feed,
        (KeyCode::BracketedPasteStart, _) => Key::PasteBegins,
        (KeyCode::BracketedPasteEnd, _) => Key::PasteEnds,
        (KeyCode::Char('C'), Modifiers::CTRL) => Key::Interrupt,
        (KeyCode::Char('D'), Modifiers::CTRL) => Key::Eof,
        (KeyCode::Char('Z'), Modifiers::CTRL) => Key::Stop,
        (KeyCode::Char('O'), Modifiers::CTRL) => Key::Look,
        (KeyCode::Char('e' | 'E'), Modifiers::ALT) => Key::Elsewhere,
        // In vi mode, Esc has another meaning.
        (KeyCode::Esc, Modifiers::NONE) if mode == rustyline::EditMode::Emacs => Key::Cancel,
        (KeyCode::Backspace, Modifiers::NONE) => Key::Backspace,
        (KeyCode::End, Modifiers::NONE) | (KeyCode::Char('E'), Modifiers::CTRL) => Key::LineEnd,
        _ => Key::Other,
    }
}
