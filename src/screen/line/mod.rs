//! The line that a person types, the queue of messages behind it and the question above it: one editor at the prompt and
//! while the agent works.
//!
//! At the prompt Enter sends the line. While the agent works Enter queues it, Alt-Up gives it to the running turn, Up takes
//! the last queued message back, Esc stops the turn. Text that is not sent when the turn ends stays in the line.

mod multiline;
mod offered;
mod pastes;
mod typed_text;
mod asked;
mod recall;
mod state;
mod pressed;
mod picture;
mod keys;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use tokio::sync::Notify;

use asked::OpenQuestion;
pub use asked::{AskedQuestion, ListedChoice, QuestionAnswer, Takes};
pub use keys::{LineKeys, MARK_NO_PASTE, MARK_PASTE};
pub use multiline::{Joined, strip_fences};
pub use offered::Offer;
pub use pastes::Pastes;
use picture::draw_picture;
#[cfg(test)]
use state::CompleteLine;
use state::LineState;
pub use state::{LineSettings, LineWishes};
pub use typed_text::{LineEnd, TypedText};

use super::display::Display;
use super::surface::FramePart;
use crate::screen::terminal::{self, Key};

/// The line, the queue and the question. Clones share them.
#[derive(Clone)]
pub struct InputLine {
    state: Arc<Mutex<LineState>>,
    /// Notified when a line has ended.
    ended: Arc<Notify>,
    display: Display,
}

impl InputLine {
    pub fn new(display: Display, settings: LineSettings) -> Self {
        let state = Arc::new(Mutex::new(LineState::new(settings)));
        Self { state, ended: Arc::default(), display }
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().expect("nobody panics while holding the line")
    }

    /// Sets the functions by which the user reaches a running turn.
    pub fn connect(&self, wishes: LineWishes) {
        self.lock().wishes = Some(wishes);
    }

    /// Shows the prompt, and waits for the end of the line: by the next message, or the first one of the queue. Dropping the
    /// future loses nothing.
    pub async fn read(&self) -> LineEnd {
        loop {
            self.await_message();
            if let Some(end) = self.lock().ends.pop_front() {
                return end;
            }
            self.ended.notified().await;
        }
    }

    /// Shows the prompt, for a line that is read later.
    pub fn await_message(&self) {
        let mut state = self.lock();
        state.await_message(&self.display);
        self.draw(&state);
    }

    /// True if the line is on the screen.
    pub fn is_shown(&self) -> bool {
        self.lock().is_shown()
    }

    /// Does what Ctrl-C does at the prompt: clears the line, or ends an empty one.
    pub fn interrupt(&self) {
        let mut state = self.lock();
        state.interrupt();
        self.draw(&state);
    }

    /// Replaces the earlier messages to recall, oldest first; long ones are shown by their size.
    pub fn learn(&self, entries: &[String]) {
        let mut state = self.lock();
        let pastes = state.settings.pastes.clone();
        state.recall.learn(entries.iter().map(|entry| pastes.shorten(entry.clone())).collect());
    }

    /// Completes the line if a Tab asked for it before the words were known.
    pub fn complete_late(&self) {
        let mut state = self.lock();
        state.complete_late();
        self.draw(&state);
    }

    /// Keeps the last message, as it stood in the line, for Esc Esc.
    pub fn keep_last(&self, message: String) {
        self.lock().last = Some(message);
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
        state.begin_with(begun);
        self.draw(&state);
    }

    /// Shows a question, and waits for its answer. `None` if no answer will come. Dropping the future takes it away.
    pub async fn ask(&self, asked: AskedQuestion) -> Option<QuestionAnswer> {
        let (open, answered) = OpenQuestion::new(asked);
        self.open_question(open);
        let _shown = ShownQuestion(self);
        answered.await.ok()
    }

    fn open_question(&self, open: OpenQuestion) {
        let shown = open.picture();
        self.display.control(MARK_PASTE);
        let mut state = self.lock();
        (state.question, state.is_fresh) = (Some(open), false);
        self.display.ask(shown, draw_picture(&state));
    }

    /// True if a key was pressed since then.
    pub fn was_pressed_since(&self, then: Instant) -> bool {
        self.lock().last_key.is_some_and(|last| last > then)
    }

    fn press(&self, key: &Key, by_hand: bool) {
        let mut state = self.lock();
        if *key != Key::Ctrl('c') {
            state.press(key, by_hand, &self.display);
        } else if !state.interrupt() {
            drop(state);
            return terminal::interrupt_process();
        }
        self.draw(&state);
        // What is typed is on the screen before anything is looked up.
        if matches!(key, Key::Char(_) | Key::Backspace) {
            state.list_live();
            if !state.listed.is_empty() {
                self.draw(&state);
            }
        }
    }

    fn draw(&self, state: &LineState) {
        if !state.ends.is_empty() {
            self.ended.notify_one();
        }
        let picture = state.is_shown().then(|| draw_picture(state));
        self.display.set_now(FramePart::Typed, picture);
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

#[cfg(test)]
mod tests {
    use super::picture::offers_below;
    use super::*;
    use crate::config::EditMode;
    use crate::screen::ink::Line as InkLine;

    fn typing() -> InputLine {
        with_keys_of(EditMode::Emacs)
    }

    fn with_keys_of(edit_mode: EditMode) -> InputLine {
        let complete: CompleteLine = Arc::new(|line, _, _| {
            let words = ["/context", "/compact ", "/copy ", "/cost", "/tools"].into_iter();
            let words = words.filter(|word| word.starts_with(line));
            let offers = words.map(|word| Offer { shown: word.trim().to_owned(), inserted: word.to_owned() });
            Some((0, offers.collect()))
        });
        let settings = LineSettings {
            edit_mode,
            complete: Some(complete),
            takes_messages: true,
            hints: true,
            ..LineSettings::default()
        };
        InputLine::new(Display::default(), settings)
    }

    impl InputLine {
        fn type_keys(&self, keys: &str) {
            for c in keys.chars() {
                self.key(match c {
                    '\r' => Key::Enter,
                    '\t' => Key::Tab,
                    '↑' => Key::Up,
                    '↓' => Key::Down,
                    '→' => Key::Right,
                    '⎋' => Key::Escape,
                    '\n' => Key::LineBreak,
                    c @ '\u{1}'..='\u{1a}' => Key::Ctrl(char::from(c as u8 + b'a' - 1)),
                    c => Key::Char(c),
                });
            }
        }

        fn key(&self, key: Key) {
            self.press(&key, true);
        }

        fn paste(&self, text: &str) {
            self.key(Key::Paste(text.to_owned()));
        }

        fn text(&self) -> String {
            self.lock().field.text().to_owned()
        }

        /// Shows the prompt, and returns how its line has ended already.
        fn end(&self) -> Option<LineEnd> {
            self.await_message();
            self.lock().ends.pop_front()
        }

        #[track_caller]
        fn message(&self) -> TypedText {
            match self.end() {
                Some(LineEnd::Message(message)) => message,
                end => panic!("no message: {end:?}"),
            }
        }
    }

    #[test]
    fn enter_queues_up_takes_back_and_the_rest_stays_in_the_line() {
        let typing = typing();
        typing.type_keys("one\r\rtwo\rthree\r↑!\rhalf");
        for message in ["one", "two", "three!"] {
            assert_eq!(typing.message().text, message);
        }
        assert_eq!((typing.end(), typing.text()), (None, "half".to_owned()));
        typing.type_keys(" more\r");
        assert_eq!(typing.message().text, "half more", "the prompt sends it");
    }

    #[test]
    fn a_message_of_several_lines_is_one() {
        let typing = typing();
        typing.type_keys("one \\\rtwo\r\"\"\"\rthree\r\"\"\"\rfour\nfive\r");
        for message in ["one \ntwo", "\"\"\"\nthree\n\"\"\"", "four\nfive"] {
            assert_eq!(typing.message().text, message);
        }
    }

    #[test]
    fn tab_completes_what_has_one_end_and_control_d_ends_behind_the_queue() {
        let typing = typing();
        typing.type_keys("/too\t\r\u{4}");
        assert_eq!(typing.message().text, "/tools");
        assert_eq!(typing.end(), Some(LineEnd::Closed));
    }

    #[test]
    fn control_c_clears_the_line_and_ends_an_empty_one() {
        let typing = typing();
        assert_eq!(typing.end(), None);
        typing.type_keys("one\u{3}");
        assert_eq!((typing.end(), typing.text()), (None, String::new()));
        typing.type_keys("\u{19}");
        assert_eq!(typing.text(), "one", "Ctrl-Y brings it back");
        typing.type_keys("\u{3}↑");
        assert_eq!(typing.text(), "one", "and Up");
        typing.type_keys("\u{3}\u{3}\u{3}h");
        assert_eq!(typing.end(), Some(LineEnd::Interrupted));
        assert_eq!((typing.end(), typing.text()), (None, "h".to_owned()), "a third one at once is the same");
    }

    #[test]
    fn earlier_messages_come_back_are_searched_and_hinted_at() {
        let typing = typing();
        typing.learn(&["the heron", "one\ntwo", "the egret"].map(str::to_owned));
        assert_eq!(typing.end(), None);
        typing.type_keys("x↑↑");
        assert_eq!(typing.text(), "one\ntwo");
        typing.type_keys("↑a");
        assert_eq!(typing.text(), "onea\ntwo", "first from row to row");
        typing.type_keys("\u{3}the →");
        assert_eq!(typing.text(), "the egret");
        typing.type_keys("\u{3}\u{12}the\u{12}\u{12}\r");
        assert_eq!(typing.message().text, "the heron");
        assert_eq!(typing.end(), None);
        typing.type_keys("draft\u{12}egret\u{7}");
        assert_eq!(typing.text(), "draft");
        typing.type_keys("\u{3}");
        typing.keep_last("said".to_owned());
        typing.type_keys("⎋⎋");
        assert_eq!(typing.text(), "said");
    }

    #[test]
    fn what_is_pasted_at_the_start_is_known_to_be_until_it_is_changed() {
        let typing = typing();
        for (keys, is_pasted) in [("\r", true), (" and more\r", true), ("\r\u{2191}\r", true)] {
            typing.paste("!touch ran");
            typing.type_keys(keys);
            assert_eq!(typing.message().is_pasted(), is_pasted, "{keys:?}");
        }
        assert_eq!(typing.end(), None);
        typing.type_keys("!ls\r");
        assert!(!typing.message().is_pasted());
        assert_eq!(typing.end(), None);
        typing.paste("!touch");
        typing.type_keys("\u{f}");
        assert!(matches!(typing.end(), Some(LineEnd::Looking(begun)) if begun.is_pasted()));
    }

    #[test]
    fn tab_lists_several_offers_and_takes_one_after_another() {
        let typing = typing();
        typing.type_keys("/co\t");
        let seen = || (typing.text(), typing.lock().listed.len());
        assert_eq!(seen(), ("/co".to_owned(), 4));
        typing.type_keys("\t");
        assert_eq!(seen().0, "/context");
        typing.type_keys("\t");
        assert_eq!(seen().0, "/compact ");
        typing.type_keys("x");
        assert_eq!(seen().1, 0);
        // The names of commands are listed as they are typed.
        typing.type_keys("\u{15}/c");
        assert_eq!(seen(), ("/c".to_owned(), 4));
        typing.type_keys("ost");
        assert_eq!(seen().1, 0, "it is whole");
        let rows = offers_below(&vec!["word".to_owned(); 100], 20, 4);
        let rows: Vec<String> = rows.iter().map(InkLine::text).collect();
        assert_eq!(rows.len(), 4);
        assert!(rows[3].starts_with("… 31 more rows"), "{rows:?}");
    }

    #[test]
    fn a_long_paste_stands_in_the_line_by_its_size_and_is_known_whole() {
        let typing = typing();
        let lines = vec!["line"; 84].join("\n");
        typing.type_keys("see ");
        typing.paste(&lines);
        typing.type_keys(", please\r");
        let pastes = typing.lock().settings.pastes.clone();
        let message = typing.message();
        assert_eq!(message.text, "see [pasted 84 lines], please");
        assert_eq!(message.expand(&pastes).text, format!("see {lines}, please"));
        typing.paste(&lines);
        typing.key(Key::Backspace);
        assert_eq!(typing.text(), "", "it is deleted as one thing");
        let said = lines.clone();
        typing.connect(LineWishes {
            steer: Box::new(move |text| assert_eq!(text, said)),
            look: Box::new(|| ()),
            stop: Box::new(|| ()),
        });
        typing.paste(&lines);
        typing.key(Key::AltUp);
        assert_eq!(typing.text(), "", "it was given to the turn");
    }

    #[test]
    fn the_keys_of_vi_edit_the_line() {
        let typing = with_keys_of(EditMode::Vi);
        typing.type_keys("one two⎋0dwAx\r⎋k");
        assert_eq!(typing.text(), "twox", "k takes a message back");
        typing.type_keys("i\r");
        assert_eq!(typing.message().text, "twox");
    }
}
