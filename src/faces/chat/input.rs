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

use super::complete::{ArgumentNames, complete_line, find_mention};
use super::history::{self, MOST_ENTRIES, SharedHistory};
use super::lines::{EditorSetup, LineInput};
use super::reflow::{self, Width};
use super::strokes::{LineAtKey, LineEnd, Stroke, StrokeEffect, Strokes};
use super::{commands, shell};
use crate::base::text;
use crate::config::EditMode;
use crate::screen::PROMPT;
use crate::screen::ink::{Ink, Style};
use crate::screen::line::{Joined, Offer, Offered, Pastes, TypedText, fit_offers};
use crate::screen::terminal;

/// The prompt of the second and later lines of a message.
const MORE: &str = ". ";
/// The columns and rows to assume for a screen of unknown size.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// Reads lines from a person.
pub struct LineEditor {
    /// The editor, or the reason that there is none.
    terminal: Result<Terminal, String>,
    history: SharedHistory,
    keys: Arc<KeyState>,
}

type Terminal = rustyline::Editor<EditorHelper, MemHistory>;

/// The state that key handlers share with the editor.
#[derive(Default)]
struct KeyState {
    strokes: Mutex<Strokes>,
    /// The line as last drawn, and the position of its cursor.
    drawn: Mutex<(String, usize)>,
    width: Width,
}

impl KeyState {
    fn strokes(&self) -> MutexGuard<'_, Strokes> {
        self.strokes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_drawn(&self) -> MutexGuard<'_, (String, usize)> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineEditor {
    pub fn new(setup: EditorSetup, pastes: Pastes) -> Self {
        let strokes = Mutex::new(Strokes::new(pastes));
        let keys = Arc::new(KeyState { strokes, ..KeyState::default() });
        let terminal = open_editor(&setup, &keys).map_err(|error| error.to_string());
        let mut editor = Self { terminal, history: SharedHistory::open(setup.history), keys };
        editor.learn();
        editor
    }

    /// Reads lines until a message is complete. `joined` holds its lines so far, `begun` is the start of the next one.
    pub fn read_message(&mut self, mut joined: Joined, begun: &TypedText) -> LineInput {
        if self.history.refresh() {
            self.learn();
        }
        let mut pasted = begun.is_pasted();
        let mut begun = begun.text.clone();
        loop {
            let editor = match &mut self.terminal {
                Ok(editor) => editor,
                Err(error) => return LineInput::Failed(error.clone()),
            };
            let is_first = joined.is_empty();
            let line = read_line(editor, &self.keys, if is_first { PROMPT } else { MORE }, &begun, pasted);
            match line {
                LineInput::Text(text) => {
                    let is_pasted = is_first && self.keys.strokes().is_pasted(&text);
                    if let Some(message) = joined.add(&text) {
                        return self.whole(&message, is_pasted);
                    }
                }
                LineInput::Elsewhere(line) => {
                    return LineInput::Elsewhere(line.join_after(joined).expand(&self.keys.strokes().pastes));
                }
                LineInput::Looking(line) => return LineInput::Looking(line.join_after(joined)),
                // Ctrl-C discards the earlier lines too; Ctrl-D sends them.
                LineInput::Interrupted if !joined.is_empty() => return LineInput::Cleared,
                LineInput::Eof => return joined.rest().map_or(LineInput::Eof, |rest| self.whole(&rest, false)),
                line => return line,
            }
            begun.clear();
            pasted = false;
        }
    }

    /// Expands the pastes of a message, and adds it to the history.
    fn whole(&mut self, message: &str, is_pasted: bool) -> LineInput {
        let mut strokes = self.keys.strokes();
        let whole = strokes.pastes.expand(message);
        if is_pasted || !is_command(message) {
            strokes.keep_last(message);
        }
        drop(strokes);
        self.remember(&whole);
        if is_pasted { LineInput::Pasted(whole) } else { LineInput::Text(whole) }
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
            let _ = history.add_owned(strokes.pastes.shorten(entry.clone()));
        }
    }
}

/// Reads one line. The keys after its end are kept.
fn read_line(editor: &mut Terminal, keys: &KeyState, prompt: &str, begun: &str, is_pasted: bool) -> LineInput {
    if let Some(end) = keys.strokes().begin(is_pasted.then(|| begun.to_owned())) {
        return LineInput::from_end(end, TypedText::default());
    }
    *keys.lock_drawn() = (begun.to_owned(), begun.len());
    loop {
        keys.width.forget();
        let (line, at) = keys.lock_drawn().clone();
        let result = editor.readline_with_initial(prompt, line.split_at_checked(at).unwrap_or((&line, "")));
        let end = keys.strokes().take_end();
        match result {
            Ok(_) if keys.strokes().take_stop() => terminal::stop_program(),
            Ok(text) => {
                let Some(end) = end else { return LineInput::Text(text) };
                if end == LineEnd::Cleared {
                    history::bring_to_end(editor.history_mut(), &text);
                }
                let pasted = keys.strokes().is_pasted(&text).then(|| text.clone());
                return LineInput::from_end(end, TypedText { text, pasted });
            }
            // Ctrl-C that the editor handled itself.
            Err(ReadlineError::Interrupted) => return LineInput::Cleared,
            // Nothing was readable after Enter, or the terminal is gone.
            Err(ReadlineError::Eof) => {
                let Some(entered) = keys.strokes().take_entered() else { return LineInput::Eof };
                reflow::leave_line(prompt, &entered, terminal::measure_width().unwrap_or(USUAL_SIZE.0));
                return LineInput::Text(entered.line);
            }
            // A key that is not UTF-8 is lost; the line is kept.
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(error) => return LineInput::Failed(error.to_string()),
        }
    }
}

/// True for a line that is not a message: a slash command or a shell command.
fn is_command(line: &str) -> bool {
    shell::parse_escape(line).is_some()
        || matches!(commands::parse_input(line, &[]), commands::ParsedInput::Command(..))
}

fn open_editor(setup: &EditorSetup, keys: &Arc<KeyState>) -> rustyline::Result<Terminal> {
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
    editor.set_helper(Some(EditorHelper {
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
struct EditorHelper {
    /// The words to complete.
    vocabulary: Arc<OnceLock<ArgumentNames>>,
    style: Style,
    reflows: bool,
    keys: Arc<KeyState>,
    offered: RefCell<Offered>,
}

impl EditorHelper {
    /// Returns the offers. Waits for the words, which are known once the agent is assembled.
    fn offers(&self, line: &str, pos: usize) -> (usize, Vec<Offer>) {
        let (start, found) = complete_line(line, pos, self.vocabulary.wait());
        let (width, height) = terminal::measure_size().unwrap_or(USUAL_SIZE);
        (start, fit_offers(found, width, height))
    }
}

impl Helper for EditorHelper {}

/// Does nothing: whether a message is complete is decided after Enter.
impl Validator for EditorHelper {}

impl Completer for EditorHelper {
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
            offered.move_to(line.as_str(), line.pos());
        }
    }
}

/// A hint: the rest of an entry of the history.
struct HistoryHint {
    whole: String,
    shown: String,
}

impl Hint for HistoryHint {
    fn display(&self) -> &str {
        &self.shown
    }

    fn completion(&self) -> Option<&str> {
        Some(&self.whole)
    }
}

impl Hinter for EditorHelper {
    type Hint = HistoryHint;

    fn hint(&self, line: &str, pos: usize, context: &Context<'_>) -> Option<HistoryHint> {
        *self.keys.lock_drawn() = (line.to_owned(), pos);
        if line[..pos].ends_with('@')
            && find_mention(&line[..pos]).is_some()
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
        let width = terminal::measure_width().unwrap_or(USUAL_SIZE.0);
        let last = line.rsplit('\n').next().unwrap_or_default();
        let used = (text::count_columns(last) + PROMPT.len()) % width.max(1);
        let first = rest.lines().next().unwrap_or_default();
        let more = if first.len() < rest.len() { " …" } else { "" };
        let shown =
            text::cut_to_width(&text::make_visible(&format!("{first}{more}")), (width - used).saturating_sub(1))
                .into_owned();
        (!shown.trim().is_empty()).then(|| HistoryHint { whole: rest.to_owned(), shown })
    }
}

impl Highlighter for EditorHelper {
    /// True after a change of the width: then the whole line is drawn.
    fn highlight_char(&self, line: &str, pos: usize, _: CmdKind) -> bool {
        let now = terminal::measure_width().unwrap_or(USUAL_SIZE.0);
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
struct Handler(Arc<KeyState>);

impl ConditionalEventHandler for Handler {
    fn handle(&self, event: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let key = read_key(event, context.mode());
        let is_enter = matches!(key, Stroke::Return | Stroke::Feed);
        let seen = LineAtKey {
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
            StrokeEffect::Usual => None,
            StrokeEffect::Nothing => Some(Cmd::Noop),
            StrokeEffect::Redraw => Some(Cmd::Repaint),
            StrokeEffect::Insert(text) => Some(Cmd::Insert(1, text)),
            StrokeEffect::Accept => Some(Cmd::AcceptLine),
            StrokeEffect::TakeHint => Some(Cmd::CompleteHint),
            StrokeEffect::KillBracket => Some(Cmd::Kill(Movement::ViCharSearch(1, CharSearch::Backward('[')))),
        }
    }
}

fn read_key(event: &Event, mode: rustyline::EditMode) -> Stroke {
    let Event::KeySeq(keys) = event else { return Stroke::Other };
    let [KeyEvent(code, modifiers)] = keys[..] else { return Stroke::Elsewhere };
    match (code, modifiers) {
        (KeyCode::Char(c), Modifiers::NONE) => Stroke::Text(c),
        (KeyCode::Tab, Modifiers::NONE) => Stroke::Tab,
        (KeyCode::Enter, Modifiers::NONE) | (KeyCode::Char('M'), Modifiers::CTRL) => Stroke::Return,
        (KeyCode::Char('J'), Modifiers::CTRL) => Stroke::Feed,
        (KeyCode::BracketedPasteStart, _) => Stroke::PasteBegins,
        (KeyCode::BracketedPasteEnd, _) => Stroke::PasteEnds,
        (KeyCode::Char('C'), Modifiers::CTRL) => Stroke::Interrupt,
        (KeyCode::Char('D'), Modifiers::CTRL) => Stroke::Eof,
        (KeyCode::Char('Z'), Modifiers::CTRL) => Stroke::Stop,
        (KeyCode::Char('O'), Modifiers::CTRL) => Stroke::Look,
        (KeyCode::Char('e' | 'E'), Modifiers::ALT) => Stroke::Elsewhere,
        // In vi mode, Esc has another meaning.
        (KeyCode::Esc, Modifiers::NONE) if mode == rustyline::EditMode::Emacs => Stroke::Cancel,
        (KeyCode::Backspace, Modifiers::NONE) => Stroke::Backspace,
        (KeyCode::End, Modifiers::NONE) | (KeyCode::Char('E'), Modifiers::CTRL) => Stroke::LineEnd,
        _ => Stroke::Other,
    }
}
