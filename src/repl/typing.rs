//! The line that a person types while the agent works, and the queued messages.
//!
//! Enter queues the line, Alt-Enter gives it to the running turn, Up takes the last queued message back. Text that is
//! not sent when the turn ends continues in the line editor.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::complete::{Vocabulary, offers};
use super::multiline::Joined;
use crate::ink::{Ink, Line as InkLine, Theme};
use crate::sink::{Bystander, Display, Moment, Part, Picture, Sketch, typed};
use crate::terminal::{Edited, Field, Key, Listener};
use crate::text;

/// The next input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// A queued message.
    Message(Typed),
    /// Ctrl-D was pressed.
    End,
    /// Nothing is queued; the next line begins with this text.
    Begun(Typed),
}

/// A text, and its start if the start was pasted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Typed {
    pub text: String,
    pub pasted: Option<String>,
}

impl Typed {
    /// True if it begins with pasted text: then it is not a command, whatever it looks like.
    pub fn is_pasted(&self) -> bool {
        self.pasted.as_ref().is_some_and(|start| self.text.starts_with(start.as_str()))
    }
}

impl From<String> for Typed {
    fn from(text: String) -> Self {
        Self { text, pasted: None }
    }
}

/// The typed line and the queue. Clones share them.
#[derive(Clone)]
pub(super) struct Typing {
    state: Arc<Mutex<State>>,
    display: Display,
}

struct State {
    field: Field,
    /// The start of the line, if it was pasted.
    pasted: Option<String>,
    queue: VecDeque<Typed>,
    ended: bool,
    vocabulary: Arc<OnceLock<Vocabulary>>,
    wishes: Option<Wishes>,
}

/// The functions by which the user reaches a running turn.
pub(super) struct Wishes {
    /// A text for its next step.
    pub steer: Box<dyn Fn(String) + Send>,
    /// Shows the full output of its last call.
    pub look: Box<dyn Fn() + Send>,
}

impl Typing {
    pub fn new(display: Display, vocabulary: Arc<OnceLock<Vocabulary>>) -> Self {
        let state = State {
            field: Field::default(),
            pasted: None,
            queue: VecDeque::new(),
            ended: false,
            vocabulary,
            wishes: None,
        };
        Self { state: Arc::new(Mutex::new(state)), display }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding the line")
    }

    /// Sets the functions by which the user reaches a running turn.
    pub fn connect(&self, wishes: Wishes) {
        self.lock().wishes = Some(wishes);
    }

    /// Puts messages at the front of the queue.
    pub fn put_first(&self, messages: Vec<String>) {
        let mut state = self.lock();
        for message in messages.into_iter().rev() {
            state.queue.push_front(message.into());
        }
        self.draw(&state);
    }

    /// Puts a text at the start of the line.
    pub fn begin_with(&self, begun: Typed) {
        let mut state = self.lock();
        let typed = state.field.take();
        state.field = Field::with(&format!("{}{typed}", begun.text));
        state.pasted = begun.pasted;
    }

    /// Takes a queued message, or the end. `None` if there is only an unfinished line.
    pub fn ready(&self) -> Option<Next> {
        let mut state = self.lock();
        let ready = match state.queue.pop_front() {
            Some(message) => Some(Next::Message(message)),
            None => std::mem::take(&mut state.ended).then_some(Next::End),
        };
        // The editor draws the line that is still being typed.
        if ready.is_some() {
            self.draw(&state);
        }
        ready
    }

    /// Takes the next input.
    pub fn next(&self) -> Next {
        self.ready().unwrap_or_else(|| {
            let mut state = self.lock();
            let begun = Next::Begun(state.take());
            self.draw(&state);
            begun
        })
    }

    fn press(&self, key: &Key) {
        let mut state = self.lock();
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
            key => {
                if let Key::Paste(text) = key
                    && state.field.is_empty()
                {
                    state.pasted = Some(text.clone());
                }
                if state.field.press(key) == Edited::Ignored {
                    return;
                }
            }
        }
        self.draw(&state);
    }

    fn draw(&self, state: &State) {
        let is_empty = state.field.is_empty() && state.queue.is_empty() && !state.ended;
        self.display.set_now(Part::Typed, (!is_empty).then(|| picture(state)));
    }
}

impl State {
    /// Takes the line.
    fn take(&mut self) -> Typed {
        Typed { text: self.field.take(), pasted: self.pasted.take() }
    }

    fn enter(&mut self) {
        if self.field.text().trim().is_empty() {
            return;
        }
        let mut joined = Joined::default();
        match joined.add(&self.field.take()) {
            Some(text) => self.queue.push_back(Typed { text, pasted: self.pasted.take() }),
            // The message continues in the next line.
            None => self.field = Field::with(&joined.rest().unwrap_or_default()),
        }
    }

    /// Gives the line to the running turn. Returns it.
    fn steer(&mut self) -> Option<String> {
        let wishes = self.wishes.as_ref().filter(|_| !self.field.text().trim().is_empty())?;
        let said = self.field.take();
        self.pasted = None;
        (wishes.steer)(said.clone());
        Some(said)
    }

    fn take_back(&mut self) {
        if self.field.is_empty()
            && let Some(message) = self.queue.pop_back()
        {
            self.field = Field::with(&message.text);
            self.pasted = message.pasted;
        }
    }

    fn complete(&mut self) {
        let Some(vocabulary) = self.vocabulary.get() else { return };
        let (before, _) = self.field.split();
        let (start, offers) = offers(before, before.len(), vocabulary);
        if let [offer] = offers.as_slice() {
            self.field.replace_before(start, &offer.inserted);
        }
    }
}

/// Draws the queue and the line.
fn picture(state: &State) -> Picture {
    let field = state.field.clone();
    let queue: Vec<String> = state.queue.iter().map(|message| message.text.clone()).collect();
    let leaves = state.ended.then(|| InkLine::from((Ink::Dim, "then the chat ends (Ctrl-D)")));
    Box::new(move |moment: &Moment| {
        let mut sketch = typed(&field, moment.room);
        let mut lines: Vec<InkLine> = queue.iter().map(|message| queued(message, moment.room)).collect();
        lines.extend(leaves.clone().map(|line| line.cut(moment.room)));
        let above = lines.len();
        lines.append(&mut sketch.lines);
        Sketch { lines, cursor: sketch.cursor.map(|(row, column)| (row + above, column)) }
    })
}

fn queued(message: &str, room: usize) -> InkLine {
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
        let vocabulary = Arc::new(OnceLock::new());
        let words = Vocabulary::default;
        vocabulary.get_or_init(words);
        Typing::new(Display::default(), vocabulary)
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
            assert_eq!(typing.next(), Next::Message(message.to_owned().into()));
        }
        assert_eq!(typing.next(), Next::Begun("half".to_owned().into()));
        assert_eq!(typing.next(), Next::Begun(Typed::default()));
    }

    #[test]
    fn a_message_of_several_lines_is_one() {
        let typing = typing();
        press(&typing, "one \\\rtwo\r\"\"\"\rthree\r\"\"\"\r");
        assert_eq!(typing.next(), Next::Message("one \ntwo".to_owned().into()));
        assert_eq!(typing.next(), Next::Message("\"\"\"\nthree\n\"\"\"".to_owned().into()));
    }

    #[test]
    fn tab_completes_what_has_one_end_and_control_d_ends_behind_the_queue() {
        let typing = typing();
        press(&typing, "/too\t\r");
        typing.press(&Key::Ctrl('d'));
        assert_eq!(typing.next(), Next::Message("/tools".to_owned().into()));
        assert_eq!(typing.next(), Next::End);
    }

    #[test]
    fn what_is_pasted_at_the_start_is_known_to_be_until_it_is_changed() {
        let typing = typing();
        for (keys, is_pasted) in [("\r", true), (" and more\r", true), ("\r\u{2191}\r", true)] {
            typing.press(&Key::Paste("!touch ran".to_owned()));
            press(&typing, keys);
            let Next::Message(message) = typing.next() else { panic!("it was queued") };
            assert_eq!(message.is_pasted(), is_pasted, "{keys:?}");
        }
        press(&typing, "!ls\r");
        let Next::Message(message) = typing.next() else { panic!("it was queued") };
        assert!(!message.is_pasted());
        typing.press(&Key::Paste("!touch".to_owned()));
        assert!(matches!(typing.next(), Next::Begun(begun) if begun.is_pasted()));
    }
}
