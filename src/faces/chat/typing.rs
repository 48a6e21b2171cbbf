//! The line that a person types while the agent works, and the queued messages.
//!
//! Enter queues the line, Alt-Enter gives it to the running turn, Up takes the last queued message back. Text that is
//! not sent when the turn ends continues in the line editor.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::complete::{ArgumentNames, complete_line};
use super::multiline::Joined;
use super::offered::{Offered, find_common_start, lay_out_grid};
use super::pastes::Pastes;
use crate::base::text;
use crate::config::EditMode;
use crate::screen::ink::{Ink, Line as InkLine, Theme};
use crate::screen::terminal::{Edited, Key, Listener, TextField, Vi};
use crate::screen::{Bystander, Display, DrawMoment, FramePart, Picture, Sketch, draw_typed};

/// The next input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextInput {
    /// A queued message.
    Message(TypedText),
    /// Ctrl-D was pressed.
    End,
    /// Nothing is queued; the next line begins with this text.
    Begun(TypedText),
}

/// A text as it stands in the line, and its start if the start was pasted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TypedText {
    pub text: String,
    pub pasted: Option<String>,
}

impl TypedText {
    /// True if it begins with pasted text: then it is not a command, whatever it looks like.
    pub fn is_pasted(&self) -> bool {
        self.pasted.as_ref().is_some_and(|start| self.text.starts_with(start.as_str()))
    }

    /// The message that this is the last line of.
    pub fn join_after(self, mut joined: Joined) -> Self {
        let pasted = self.pasted.filter(|_| joined.is_empty());
        Self { text: joined.add(&self.text).or_else(|| joined.rest()).unwrap_or_default(), pasted }
    }

    /// With its long pastes in full.
    pub fn expand(self, pastes: &Pastes) -> Self {
        Self { text: pastes.expand(&self.text), pasted: self.pasted.map(|start| pastes.expand(&start)) }
    }
}

impl From<String> for TypedText {
    fn from(text: String) -> Self {
        Self { text, pasted: None }
    }
}

/// The typed line and the queue. Clones share them.
#[derive(Clone)]
pub(super) struct Typing {
    state: Arc<Mutex<TypingState>>,
    display: Display,
}

#[derive(Default)]
struct TypingState {
    field: TextField,
    /// The start of the line, if it was pasted.
    pasted: Option<String>,
    queue: VecDeque<TypedText>,
    pastes: Pastes,
    offered: Offered,
    /// The offers of the last Tab, below the line until the next other key.
    listed: Vec<String>,
    /// With the keys of vi.
    vi: Option<Vi>,
    ended: bool,
    vocabulary: Arc<OnceLock<ArgumentNames>>,
    wishes: Option<TypingWishes>,
}

/// The functions by which the user reaches a running turn.
pub(super) struct TypingWishes {
    /// A text for its next step.
    pub steer: Box<dyn Fn(String) + Send>,
    /// Shows the full output of its last call.
    pub look: Box<dyn Fn() + Send>,
}

impl Typing {
    pub fn new(
        display: Display,
        vocabulary: Arc<OnceLock<ArgumentNames>>,
        edit_mode: EditMode,
        pastes: Pastes,
    ) -> Self {
        let vi = (edit_mode == EditMode::Vi).then(Vi::default);
        let state = TypingState { pastes, vi, vocabulary, ..TypingState::default() };
        Self { state: Arc::new(Mutex::new(state)), display }
    }

    fn lock(&self) -> MutexGuard<'_, TypingState> {
        self.state.lock().expect("nobody panics while holding the line")
    }

    /// Sets the functions by which the user reaches a running turn.
    pub fn connect(&self, wishes: TypingWishes) {
        self.lock().wishes = Some(wishes);
    }

    /// Puts messages at the front of the queue.
    pub fn put_first(&self, messages: Vec<String>) {
        let mut state = self.lock();
        for message in messages.into_iter().rev() {
            let message = state.pastes.shorten(message);
            state.queue.push_front(message.into());
        }
        self.draw(&state);
    }

    /// Puts a text at the start of the line.
    pub fn begin_with(&self, begun: TypedText) {
        let mut state = self.lock();
        let typed = state.field.take();
        let begun = TypedText { text: state.pastes.shorten(begun.text), ..begun };
        state.field = TextField::from_text(&format!("{}{typed}", begun.text));
        state.pasted = begun.pasted;
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

    fn press(&self, key: &Key) {
        let mut state = self.lock();
        if *key != Key::Tab {
            state.listed.clear();
        }
        let TypingState { field, vi, .. } = &mut *state;
        let left = vi.as_mut().map_or_else(|| Some(key.clone()), |vi| vi.press(field, key));
        let Some(key) = left else { return self.draw(&state) };
        match key {
            Key::Enter => state.enter(),
            Key::AltEnter => {
                if let Some(said) = state.steer() {
                    let said = format!("for the next step: {}", text::one_line(&said, 200));
                    self.display.lines(vec![InkLine::from((Ink::Dim, said.as_str()))]);
                }
            }
            Key::Ctrl('o') => {
                if let Some(wishes) = &state.wishes {
                    (wishes.look)();
                }
                return;
            }
            Key::Up => state.take_back(),
            Key::Tab => state.complete(),
            Key::Ctrl('d') if state.field.is_empty() => state.ended = true,
            Key::Paste(text) => state.paste(text),
            Key::Backspace if state.drop_paste() => {}
            key => {
                if state.field.press(&key) == Edited::Ignored {
                    return;
                }
            }
        }
        self.draw(&state);
    }

    fn draw(&self, state: &TypingState) {
        let is_empty = state.field.is_empty() && state.queue.is_empty() && !state.ended;
        self.display.set_now(FramePart::Typed, (!is_empty).then(|| draw_picture(state)));
    }
}

impl TypingState {
    /// Takes the line.
    fn take(&mut self) -> TypedText {
        TypedText { text: self.field.take(), pasted: self.pasted.take() }
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
        let said = self.pastes.expand(&self.field.take());
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
        let shown = self.pastes.shorten(text);
        if self.field.is_empty() {
            self.pasted = Some(shown.clone());
        }
        self.field.insert(&shown);
    }

    /// Deletes a long paste before the cursor as a whole. False if there is none.
    fn drop_paste(&mut self) -> bool {
        let start = self.pastes.at_end_of(self.field.split().0);
        if let Some(start) = start {
            self.field.replace_before(start, "");
        }
        start.is_some()
    }

    /// Completes what has one end. Of several the common start is taken and all are listed; each further Tab takes the
    /// next of them.
    fn complete(&mut self) {
        let Some(vocabulary) = self.vocabulary.get() else { return };
        let (before, _) = self.field.split();
        let (text, pos) = (self.field.text(), before.len());
        if let Some((start, offer)) = self.offered.again(text, pos) {
            self.field.replace_before(start, &offer.inserted);
            self.offered.move_to(self.field.text(), self.field.split().0.len());
            return;
        }
        let (start, offers) = complete_line(before, pos, vocabulary);
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

/// Draws the queue, the line, and what completes it.
fn draw_picture(state: &TypingState) -> Picture {
    let field = state.field.clone();
    let queue: Vec<String> = state.queue.iter().map(|message| message.text.clone()).collect();
    let leaves = state.ended.then(|| InkLine::from((Ink::Dim, "then the chat ends (Ctrl-D)")));
    let listed = state.listed.clone();
    Box::new(move |moment: &DrawMoment| {
        let mut sketch = draw_typed(&field, moment.room);
        let mut lines: Vec<InkLine> = queue.iter().map(|message| draw_queued(message, moment.room)).collect();
        lines.extend(leaves.clone().map(|line| line.cut(moment.room)));
        let above = lines.len();
        lines.append(&mut sketch.lines);
        lines.extend(offers_below(&listed, moment.room, moment.rows.saturating_sub(lines.len())));
        Sketch { lines, cursor: sketch.cursor.map(|(row, column)| (row + above, column)) }
    })
}

/// The rows of a list of offers. What is left out is counted in the last one.
fn offers_below(listed: &[String], room: usize, rows: usize) -> Vec<InkLine> {
    const MOST: usize = 8;
    let mut shown = lay_out_grid(listed, room);
    let most = rows.min(MOST);
    if shown.len() > most {
        let left_out = shown.len() - most.saturating_sub(1);
        shown.truncate(most.saturating_sub(1));
        shown.push(format!("… {left_out} more rows; type on to narrow them down"));
    }
    shown.truncate(most);
    shown.iter().map(|row| InkLine::from((Ink::Dim, row.as_str())).cut(room)).collect()
}

fn draw_queued(message: &str, room: usize) -> InkLine {
    let more = message.lines().count().saturating_sub(1);
    let more = if more == 0 { String::new() } else { format!(" (and {more} more lines)") };
    let first = text::one_line(message.lines().next().unwrap_or_default(), 200);
    InkLine::from((Ink::Dim, format!("next: {first}{more}").as_str())).cut(room)
}

/// Makes the terminal put marks around pasted text, so a paste of many lines is one message (private mode 2004).
pub(super) const MARK_PASTE: &str = "\x1b[?2004h";

/// Passes keys to the line.
pub(super) struct Listening {
    pub typing: Typing,
    pub screen: Bystander,
}

impl Listener for Listening {
    fn press(&mut self, key: Key) {
        self.typing.press(&key);
    }

    fn learn(&mut self, theme: Theme) {
        self.screen.learn(theme);
    }

    fn stop(&mut self, stops: bool) {
        self.screen.stop(stops);
    }

    fn come_back(&mut self) {
        self.typing.display.control(MARK_PASTE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typing() -> Typing {
        with_keys_of(EditMode::Emacs)
    }

    fn with_keys_of(edit_mode: EditMode) -> Typing {
        let vocabulary = Arc::new(OnceLock::new());
        let words = ArgumentNames::default;
        vocabulary.get_or_init(words);
        Typing::new(Display::default(), vocabulary, edit_mode, Pastes::default())
    }

    fn press(typing: &Typing, keys: &str) {
        for c in keys.chars() {
            typing.press(&match c {
                '\r' => Key::Enter,
                '\t' => Key::Tab,
                '↑' => Key::Up,
                c => Key::Char(c),
            });
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
        typing.press(&Key::Ctrl('d'));
        assert_eq!(typing.next(), NextInput::Message("/tools".to_owned().into()));
        assert_eq!(typing.next(), NextInput::End);
    }

    #[test]
    fn what_is_pasted_at_the_start_is_known_to_be_until_it_is_changed() {
        let typing = typing();
        for (keys, is_pasted) in [("\r", true), (" and more\r", true), ("\r\u{2191}\r", true)] {
            typing.press(&Key::Paste("!touch ran".to_owned()));
            press(&typing, keys);
            let NextInput::Message(message) = typing.next() else { panic!("it was queued") };
            assert_eq!(message.is_pasted(), is_pasted, "{keys:?}");
        }
        press(&typing, "!ls\r");
        let NextInput::Message(message) = typing.next() else { panic!("it was queued") };
        assert!(!message.is_pasted());
        typing.press(&Key::Paste("!touch".to_owned()));
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
        typing.press(&Key::Paste(lines.clone()));
        press(&typing, ", please\r");
        let pastes = typing.lock().pastes.clone();
        let NextInput::Message(message) = typing.next() else { panic!("it was queued") };
        assert_eq!(message.text, "see [pasted 84 lines], please");
        assert_eq!(message.expand(&pastes).text, format!("see {lines}, please"));
        typing.press(&Key::Paste(lines.clone()));
        typing.press(&Key::Backspace);
        assert!(typing.lock().field.is_empty(), "it is deleted as one thing");
        typing
            .connect(TypingWishes { steer: Box::new(move |said| assert_eq!(said, lines)), look: Box::new(|| ()) });
        typing.press(&Key::Paste(vec!["line"; 84].join("\n")));
        typing.press(&Key::AltEnter);
        assert!(typing.lock().field.is_empty(), "it was given to the turn");
    }

    #[test]
    fn the_keys_of_vi_edit_the_line() {
        let typing = with_keys_of(EditMode::Vi);
        press(&typing, "one two");
        typing.press(&Key::Escape);
        press(&typing, "0dwAx\r");
        typing.press(&Key::Escape);
        press(&typing, "k");
        assert_eq!(typing.lock().field.text(), "twox", "k takes a message back");
        press(&typing, "i\r");
        assert_eq!(typing.next(), NextInput::Message("twox".to_owned().into()));
    }
}
