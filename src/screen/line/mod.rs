//! The line that a person types, the queue of messages behind it and the question above it.
//!
//! While the agent works, Enter queues the line, Alt-Up gives it to the running turn, Up takes the last queued message back,
//! Esc stops the turn. Text that is not sent when the turn ends continues in the line editor.

mod multiline;
mod offered;
mod pastes;
mod typed_text;
mod asked;
mod picture;
mod keys;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub use asked::{AskedQuestion, ListedChoice, QuestionAnswer, Takes};
use asked::{OpenQuestion, QuestionStep};
pub use keys::{LineKeys, MARK_NO_PASTE, MARK_PASTE};
pub use multiline::{Joined, strip_fences};
use offered::find_common_start;
pub use offered::{Offer, Offered, fit_offers};
pub use pastes::Pastes;
use picture::draw_picture;
pub use typed_text::{NextInput, TypedText};

use super::display::Display;
use super::surface::FramePart;
use crate::base::text;
use crate::config::EditMode;
use crate::screen::ink::{Ink, Line as InkLine};
use crate::screen::terminal::{Edited, Key, TextField, Vi};

/// A person whose last key is more recent is still typing.
const TYPING: Duration = Duration::from_millis(400);

/// Completes the word at the cursor (a byte of the line). Returns the start of the word and what may replace it.
pub type CompleteLine = Arc<dyn Fn(&str, usize) -> (usize, Vec<Offer>) + Send + Sync>;

/// What a line needs to know of the program that it belongs to.
#[derive(Default)]
pub struct LineSettings {
    pub edit_mode: EditMode,
    pub pastes: Pastes,
    pub complete: Option<CompleteLine>,
    /// Lines are messages. Otherwise they only answer questions.
    pub takes_messages: bool,
}

/// The line, the queue and the question. Clones share them.
#[derive(Clone)]
pub struct InputLine {
    state: Arc<Mutex<LineState>>,
    display: Display,
}

#[derive(Default)]
struct LineState {
    field: TextField,
    /// The start of the line, if it was pasted.
    pasted: Option<String>,
    queue: VecDeque<TypedText>,
    offered: Offered,
    /// The offers of the last Tab, below the line until the next other key.
    listed: Vec<String>,
    /// With the keys of vi.
    vi: Option<Vi>,
    ended: bool,
    settings: LineSettings,
    wishes: Option<LineWishes>,
    question: Option<OpenQuestion>,
    /// The line was begun by a hand after the question was seen.
    is_fresh: bool,
    /// The time of the last character.
    last_key: Option<Instant>,
}

/// The functions by which the user reaches a running turn.
pub struct LineWishes {
    /// A text for its next step.
    pub steer: Box<dyn Fn(String) + Send>,
    /// Shows the full output of its last call.
    pub look: Box<dyn Fn() + Send>,
    /// Stops it.
    pub stop: Box<dyn Fn() + Send>,
}

impl InputLine {
    pub fn new(display: Display, settings: LineSettings) -> Self {
        let vi = (settings.edit_mode == EditMode::Vi).then(Vi::default);
        let state = LineState { vi, settings, ..LineState::default() };
        Self { state: Arc::new(Mutex::new(state)), display }
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().expect("nobody panics while holding the line")
    }

    /// Sets the functions by which the user reaches a running turn.
    pub fn connect(&self, wishes: LineWishes) {
        self.lock().wishes = Some(wishes);
    }

    /// Puts messages at the front of the queue.
    pub fn put_first(&self, messages: Vec<String>) {
        let mut state = self.lock();
        for message in messages.into_iter().rev() {
            let message = state.settings.pastes.shorten(message);
            state.queue.push_front(message.into());
        }
        self.draw(&state);
    }

    /// Puts a text at the start of the line.
    pub fn begin_with(&self, begun: TypedText) {
        let mut state = self.lock();
        let typed = state.field.take();
        let begun = TypedText { text: state.settings.pastes.shorten(begun.text), ..begun };
        state.field = TextField::from_text(&format!("{}{typed}", begun.text));
        (state.pasted, state.is_fresh) = (begun.pasted, false);
    }

    /// Takes a queued message, or the end. `None` if there is only an unfinished line.
    pub fn ready(&self) -> Option<NextInput> {
        let mut state = self.lock();
        let ready = match state.queue.pop_front() {
            Some(message) => Some(NextInput::Message(message)),
            None => std::mem::take(&mut state.ended).then_some(NextInput::End),
        };
        // The editor draws the line that is still being typed.
        if ready.is_some() {
            self.draw(&state);
        }
        ready
    }

    /// Takes the next input.
    pub fn next(&self) -> NextInput {
        self.ready().unwrap_or_else(|| {
            let mut state = self.lock();
            let begun = NextInput::Begun(state.take());
            self.draw(&state);
            begun
        })
    }

    /// Shows a question, and waits for its answer. `None` if no answer will come. Dropping the future takes it away.
    pub async fn ask(&self, asked: AskedQuestion) -> Option<QuestionAnswer> {
        let (open, answered) = OpenQuestion::new(asked);
        self.open_question(open);
        let _shown = ShownQuestion(self);
        answered.await.ok()
    }

    fn open_question(&self, open: OpenQuestion) {
        let (shown, gate) = (open.picture(), open.gate());
        self.display.control(MARK_PASTE);
        let mut state = self.lock();
        (state.question, state.is_fresh) = (Some(open), false);
        self.display.ask(shown, draw_picture(&state), gate);
    }

    /// True if a key was pressed since then.
    pub fn was_pressed_since(&self, then: Instant) -> bool {
        self.lock().last_key.is_some_and(|last| last > then)
    }

    fn press(&self, key: &Key, by_hand: bool) {
        let mut state = self.lock();
        if *key != Key::Tab {
            state.listed.clear();
        }
        if let Some(key) = state.press_question(key, by_hand, &self.display) {
            self.press_line(&mut state, &key, by_hand);
        }
        match key {
            Key::Char(_) | Key::Backspace | Key::Tab => state.last_key = Some(Instant::now()),
            // After Enter the person is no longer typing.
            Key::Enter => state.last_key = None,
            _ => {}
        }
        self.draw(&state);
    }

    fn press_line(&self, state: &mut LineState, key: &Key, by_hand: bool) {
        if !state.settings.takes_messages && !state.has_focus() {
            // Nothing but an answer is wanted.
            return;
        }
        let was_empty = state.edited().is_empty();
        let LineState { vi, .. } = &mut *state;
        let mut vi = vi.take();
        let left = vi.as_mut().map_or_else(|| Some(key.clone()), |vi| vi.press(state.edited(), key));
        state.vi = vi;
        let Some(key) = left else { return };
        let is_answer = state.takes_words();
        match key {
            Key::Enter if is_answer || !state.settings.takes_messages => {}
            Key::Enter => state.enter(),
            Key::AltEnter => state.edited().insert("\n"),
            Key::AltUp if !is_answer => {
                if let Some(said) = state.steer() {
                    let said = format!("for the next step: {}", text::one_line(&said, 200));
                    self.display.lines(vec![InkLine::from((Ink::Dim, said.as_str()))]);
                }
            }
            Key::Ctrl('o') => {
                if let Some(wishes) = &state.wishes {
                    (wishes.look)();
                }
            }
            Key::Escape => {
                if let Some(wishes) = &state.wishes {
                    (wishes.stop)();
                }
            }
            Key::Up if !is_answer => state.take_back(),
            Key::Tab if !is_answer => state.complete(),
            Key::Ctrl('d') if state.field.is_empty() && state.question.is_none() => state.ended = true,
            Key::Paste(text) => state.paste(text),
            Key::Backspace if state.drop_paste() => {}
            key => {
                let typed = matches!(key, Key::Char(_));
                if state.edited().press(&key) == Edited::Changed && typed && was_empty {
                    state.is_fresh = by_hand && state.has_focus();
                }
            }
        }
        state.is_fresh &= by_hand && !state.field.is_empty();
    }

    fn draw(&self, state: &LineState) {
        let is_empty =
            state.field.is_empty() && state.queue.is_empty() && !state.ended && state.question.is_none();
        self.display.set_now(FramePart::Typed, (!is_empty).then(|| draw_picture(state)));
    }
}

/// Takes the question away when it is dropped.
struct ShownQuestion<'l>(&'l InputLine);

impl Drop for ShownQuestion<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.question = None;
        if !state.settings.takes_messages {
            state.take();
            self.0.display.control(MARK_NO_PASTE);
        }
        self.0.display.set(FramePart::Question, None);
        self.0.draw(&state);
    }
}

impl LineState {
    /// Takes the line.
    fn take(&mut self) -> TypedText {
        TypedText { text: self.field.take(), pasted: self.pasted.take() }
    }

    /// Gives the question a key first. Returns the key if it is for the line.
    fn press_question(&mut self, key: &Key, by_hand: bool, display: &Display) -> Option<Key> {
        let is_typing = self.last_key.is_some_and(|last| last.elapsed() < TYPING);
        // Esc ends the insert mode of vi first.
        let is_inserting = *key == Key::Escape && self.vi.as_ref().is_some_and(Vi::inserts);
        let Self { question, field, is_fresh, .. } = self;
        let Some(open) = question.as_mut() else { return Some(key.clone()) };
        if !open.take_focus(is_typing) || !by_hand || is_inserting {
            return Some(key.clone());
        }
        let is_listed = open.is_in_list();
        match open.press(key, field, *is_fresh) {
            QuestionStep::Passed => {
                // It may have left the list.
                display.set_now(FramePart::Question, Some(open.picture()));
                return Some(key.clone());
            }
            QuestionStep::Moved => display.set_now(FramePart::Question, Some(open.picture())),
            QuestionStep::Answered(answer) => {
                let is_letter = !is_listed && !open.takes_words();
                open.answer(answer);
                if is_letter {
                    self.take();
                }
            }
        }
        None
    }

    /// True if the question gets the keys.
    fn has_focus(&self) -> bool {
        self.question.as_ref().is_some_and(|open| open.has_focus)
    }

    /// True if what is typed now is the answer to the question.
    fn takes_words(&self) -> bool {
        self.question.as_ref().is_some_and(|open| open.has_focus && open.takes_words())
    }

    /// The text that keys edit.
    fn edited(&mut self) -> &mut TextField {
        match &mut self.question {
            Some(open) if open.has_focus && open.takes_words() => &mut open.words,
            _ => &mut self.field,
        }
    }

    fn enter(&mut self) {
        if self.field.text().trim().is_empty() {
            return;
        }
        let mut joined = Joined::default();
        match joined.add(&self.field.take()) {
            Some(text) => self.queue.push_back(TypedText { text, pasted: self.pasted.take() }),
            // The message continues in the next line.
            None => self.field = TextField::from_text(&joined.rest().unwrap_or_default()),
        }
    }

    /// Gives the line to the running turn. Returns it.
    fn steer(&mut self) -> Option<String> {
        let wishes = self.wishes.as_ref().filter(|_| !self.field.text().trim().is_empty())?;
        let said = self.settings.pastes.expand(&self.field.take());
        self.pasted = None;
        (wishes.steer)(said.clone());
        Some(said)
    }

    fn take_back(&mut self) {
        if self.field.is_empty()
            && let Some(message) = self.queue.pop_back()
        {
            self.field = TextField::from_text(&message.text);
            self.pasted = message.pasted;
        }
    }

    /// Inserts a paste: a long one as the words that stand for it.
    fn paste(&mut self, text: String) {
        let shown = self.settings.pastes.shorten(text);
        if self.takes_words() {
            return self.edited().insert(&shown);
        }
        if self.field.is_empty() {
            self.pasted = Some(shown.clone());
        }
        self.field.insert(&shown);
    }

    /// Deletes a long paste before the cursor as a whole. False if there is none.
    fn drop_paste(&mut self) -> bool {
        let pastes = self.settings.pastes.clone();
        let field = self.edited();
        let start = pastes.at_end_of(field.split().0);
        if let Some(start) = start {
            field.replace_before(start, "");
        }
        start.is_some()
    }

    /// Completes what has one end. Of several the common start is taken and all are listed; each further Tab takes the
    /// next of them.
    fn complete(&mut self) {
        let Some(complete) = self.settings.complete.clone() else { return };
        let (before, _) = self.field.split();
        let (text, pos) = (self.field.text(), before.len());
        if let Some((start, offer)) = self.offered.again(text, pos) {
            self.field.replace_before(start, &offer.inserted);
            self.offered.move_to(self.field.text(), self.field.split().0.len());
            return;
        }
        let (start, offers) = complete(before, pos);
        self.offered.keep(text, pos, start, &offers);
        let common = find_common_start(&offers);
        // What several have in common may lack letters that were typed.
        if offers.len() == 1 || common.starts_with(&before[start..]) {
            self.field.replace_before(start, common);
        }
        if offers.len() > 1 {
            self.offered.move_to(self.field.text(), self.field.split().0.len());
            self.listed = offers.into_iter().map(|offer| offer.shown).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::picture::offers_below;
    use super::*;

    fn typing() -> InputLine {
        with_keys_of(EditMode::Emacs)
    }

    fn with_keys_of(edit_mode: EditMode) -> InputLine {
        let complete: CompleteLine = Arc::new(|line, _| {
            let words = ["/context", "/compact ", "/copy ", "/cost", "/tools"].into_iter();
            let words = words.filter(|word| word.starts_with(line));
            (0, words.map(|word| Offer { shown: word.trim().to_owned(), inserted: word.to_owned() }).collect())
        });
        let settings =
            LineSettings { edit_mode, complete: Some(complete), takes_messages: true, ..LineSettings::default() };
        InputLine::new(Display::default(), settings)
    }

    fn press(typing: &InputLine, keys: &str) {
        for c in keys.chars() {
            typing.press(
                &match c {
                    '\r' => Key::Enter,
                    '\t' => Key::Tab,
                    '↑' => Key::Up,
                    c => Key::Char(c),
                },
                true,
            );
        }
    }

    #[test]
    fn enter_queues_up_takes_back_and_the_rest_goes_on_in_the_editor() {
        let typing = typing();
        press(&typing, "one\r\rtwo\rthree\r↑!\rhalf");
        for message in ["one", "two", "three!"] {
            assert_eq!(typing.next(), NextInput::Message(message.to_owned().into()));
        }
        assert_eq!(typing.next(), NextInput::Begun("half".to_owned().into()));
        assert_eq!(typing.next(), NextInput::Begun(TypedText::default()));
    }

    #[test]
    fn a_message_of_several_lines_is_one() {
        let typing = typing();
        press(&typing, "one \\\rtwo\r\"\"\"\rthree\r\"\"\"\r");
        assert_eq!(typing.next(), NextInput::Message("one \ntwo".to_owned().into()));
        assert_eq!(typing.next(), NextInput::Message("\"\"\"\nthree\n\"\"\"".to_owned().into()));
    }

    #[test]
    fn tab_completes_what_has_one_end_and_control_d_ends_behind_the_queue() {
        let typing = typing();
        press(&typing, "/too\t\r");
        typing.press(&Key::Ctrl('d'), true);
        assert_eq!(typing.next(), NextInput::Message("/tools".to_owned().into()));
        assert_eq!(typing.next(), NextInput::End);
    }

    #[test]
    fn what_is_pasted_at_the_start_is_known_to_be_until_it_is_changed() {
        let typing = typing();
        for (keys, is_pasted) in [("\r", true), (" and more\r", true), ("\r\u{2191}\r", true)] {
            typing.press(&Key::Paste("!touch ran".to_owned()), true);
            press(&typing, keys);
            let NextInput::Message(message) = typing.next() else { panic!("it was queued") };
            assert_eq!(message.is_pasted(), is_pasted, "{keys:?}");
        }
        press(&typing, "!ls\r");
        let NextInput::Message(message) = typing.next() else { panic!("it was queued") };
        assert!(!message.is_pasted());
        typing.press(&Key::Paste("!touch".to_owned()), true);
        assert!(matches!(typing.next(), NextInput::Begun(begun) if begun.is_pasted()));
    }

    #[test]
    fn tab_lists_several_offers_and_takes_one_after_another() {
        let typing = typing();
        press(&typing, "/co\t");
        let seen = || {
            let state = typing.lock();
            (state.field.text().to_owned(), state.listed.len())
        };
        assert_eq!(seen(), ("/co".to_owned(), 4));
        press(&typing, "\t");
        assert_eq!(seen().0, "/context");
        press(&typing, "\t");
        assert_eq!(seen().0, "/compact ");
        press(&typing, "x");
        assert_eq!(seen().1, 0);
        let rows = offers_below(&vec!["word".to_owned(); 100], 20, 4);
        let rows: Vec<String> = rows.iter().map(InkLine::text).collect();
        assert_eq!(rows.len(), 4);
        assert!(rows[3].starts_with("… 31 more rows"), "{rows:?}");
    }

    #[test]
    fn a_long_paste_stands_in_the_line_by_its_size_and_is_known_whole() {
        let typing = typing();
        let lines = vec!["line"; 84].join("\n");
        press(&typing, "see ");
        typing.press(&Key::Paste(lines.clone()), true);
        press(&typing, ", please\r");
        let pastes = typing.lock().settings.pastes.clone();
        let NextInput::Message(message) = typing.next() else { panic!("it was queued") };
        assert_eq!(message.text, "see [pasted 84 lines], please");
        assert_eq!(message.expand(&pastes).text, format!("see {lines}, please"));
        typing.press(&Key::Paste(lines.clone()), true);
        typing.press(&Key::Backspace, true);
        assert!(typing.lock().field.is_empty(), "it is deleted as one thing");
        typing.connect(LineWishes {
            steer: Box::new(move |said| assert_eq!(said, lines)),
            look: Box::new(|| ()),
            stop: Box::new(|| ()),
        });
        typing.press(&Key::Paste(vec!["line"; 84].join("\n")), true);
        typing.press(&Key::AltUp, true);
        assert!(typing.lock().field.is_empty(), "it was given to the turn");
    }

    #[test]
    fn the_keys_of_vi_edit_the_line() {
        let typing = with_keys_of(EditMode::Vi);
        press(&typing, "one two");
        typing.press(&Key::Escape, true);
        press(&typing, "0dwAx\r");
        typing.press(&Key::Escape, true);
        press(&typing, "k");
        assert_eq!(typing.lock().field.text(), "twox", "k takes a message back");
        press(&typing, "i\r");
        assert_eq!(typing.next(), NextInput::Message("twox".to_owned().into()));
    }
}
