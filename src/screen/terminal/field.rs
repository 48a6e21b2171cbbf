//! An input field that is edited key by key: text, which may have several lines, and a cursor.
//!
//! The line-editing crate moves and cuts; undoing, what was cut, and the keys are here.

use rustyline::line_buffer::{ChangeListener, DeleteListener, Direction, LineBuffer, WordAction};
use rustyline::{At, Movement, Word};

use super::keys::Key;

/// The most states that can be undone.
const MOST_UNDONE: usize = 200;
/// The most texts that were cut and can be inserted again.
const MOST_CUT: usize = 60;

/// The text and the cursor, with what was undone and cut.
#[derive(Debug)]
pub struct TextField {
    line: LineBuffer,
    /// Earlier states, the latest last.
    earlier: Vec<EarlierText>,
    /// What was cut, the latest last.
    cut: Vec<String>,
    last: LastEdit,
}

/// A state to return to.
#[derive(Debug)]
struct EarlierText {
    text: String,
    cursor: usize,
}

/// What the last key did: some of the next keys continue it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastEdit {
    Other,
    /// A character was typed.
    Typed,
    /// Text was cut.
    Cut,
    /// The cut text at this place of the list was inserted from this byte on.
    Inserted {
        place: usize,
        from: usize,
    },
}

/// The effect of a key on a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    Changed,
    /// The key has no meaning here.
    Ignored,
}

impl Default for TextField {
    fn default() -> Self {
        Self { line: LineBuffer::with_capacity(0), earlier: Vec::new(), cut: Vec::new(), last: LastEdit::Other }
    }
}

impl TextField {
    /// Creates a field with `text` and the cursor at its end.
    pub fn from_text(text: &str) -> Self {
        let mut field = Self::default();
        field.set_text(text);
        field
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.line.as_str()
    }

    /// The place of the cursor, a byte of the text.
    pub fn cursor(&self) -> usize {
        self.line.pos()
    }

    /// True if there is no text.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// True if the cursor is behind the text.
    pub fn is_at_end(&self) -> bool {
        self.line.is_cursor_at_end()
    }

    /// The text before the cursor and the text after it.
    pub fn split(&self) -> (&str, &str) {
        self.text().split_at(self.cursor())
    }

    /// Takes the text and leaves the field empty. What was cut can still be inserted.
    pub fn take(&mut self) -> String {
        let line = std::mem::replace(&mut self.line, LineBuffer::with_capacity(0));
        self.earlier.clear();
        self.last = LastEdit::Other;
        line.into_string()
    }

    /// Replaces the text, with the cursor at its end.
    pub fn set_text(&mut self, text: &str) {
        self.take();
        self.line.insert_str(0, text, &mut Unheard);
        self.line.move_buffer_end();
    }

    /// Adds text at the cursor.
    pub fn insert(&mut self, text: &str) {
        self.begin_change(LastEdit::Other);
        self.put(text);
    }

    /// Replaces the text from `start`, a byte before the cursor, up to the cursor.
    pub fn replace_before(&mut self, start: usize, text: &str) {
        self.begin_change(LastEdit::Other);
        self.line.replace(start..self.cursor(), text, &mut Unheard);
    }

    /// Makes a text that was discarded the next one to insert (Ctrl-Y).
    pub fn keep_cut(&mut self, text: String) {
        self.cut.retain(|other| *other != text);
        if self.cut.len() == MOST_CUT {
            self.cut.remove(0);
        }
        self.cut.push(text);
    }

    /// Edits with the keys of Emacs, as shells do.
    pub fn press(&mut self, key: &Key) -> Edited {
        match key {
            Key::Char(c) => self.type_character(*c),
            Key::Tab => self.insert("    "),
            Key::Paste(text) => self.insert(text),
            Key::Backspace => self.erase(&Movement::BackwardChar(1)),
            Key::Delete | Key::Ctrl('d') => self.erase(&Movement::ForwardChar(1)),
            Key::Ctrl('w') => self.cut(&Movement::BackwardWord(1, Word::Big)),
            Key::AltBackspace => self.cut(&Movement::BackwardWord(1, Word::Emacs)),
            Key::Alt('d') => self.cut(&Movement::ForwardWord(1, At::AfterEnd, Word::Emacs)),
            Key::Ctrl('u') => self.cut(&Movement::BeginningOfLine),
            Key::Ctrl('k') => self.cut(&Movement::EndOfLine),
            Key::Ctrl('y') => self.insert_cut(),
            Key::Alt('y') => self.insert_earlier_cut(),
            Key::Ctrl('_') => self.undo(),
            Key::Ctrl('t') => self.change(|line| line.transpose_chars(&mut Unheard)),
            Key::Alt('t') => self.change(|line| line.transpose_words(1, &mut Unheard)),
            Key::Alt('u') => self.change(|line| line.edit_word(WordAction::Uppercase, &mut Unheard)),
            Key::Alt('l') => self.change(|line| line.edit_word(WordAction::Lowercase, &mut Unheard)),
            Key::Alt('c') => self.change(|line| line.edit_word(WordAction::Capitalize, &mut Unheard)),
            key => match find_motion(key) {
                Some(motion) => self.go(&motion),
                None => return Edited::Ignored,
            },
        }
        Edited::Changed
    }

    /// Moves to the line above, or below. False if there is none.
    pub fn move_row(&mut self, up: bool) -> bool {
        let (before, after) = self.split();
        let start = before.rfind('\n').map_or(0, |feed| feed + 1);
        let column = before[start..].chars().count();
        let begin = if up {
            let Some(end) = start.checked_sub(1) else { return false };
            before[..end].rfind('\n').map_or(0, |feed| feed + 1)
        } else {
            let Some(feed) = after.find('\n') else { return false };
            self.cursor() + feed + 1
        };
        let row = self.text()[begin..].split('\n').next().unwrap_or_default();
        let at = begin + row.char_indices().nth(column).map_or(row.len(), |(at, _)| at);
        self.set_cursor(at);
        true
    }

    /// Moves the cursor to a byte between two characters.
    pub(super) fn set_cursor(&mut self, to: usize) {
        self.line.set_pos(to);
        self.last = LastEdit::Other;
    }

    /// Moves the cursor.
    pub(super) fn go(&mut self, motion: &Movement) {
        self.last = LastEdit::Other;
        match *motion {
            Movement::BackwardChar(count) => self.line.move_backward(count),
            Movement::ForwardChar(count) => self.line.move_forward(count),
            Movement::BackwardWord(count, word) => self.line.move_to_prev_word(word, count),
            Movement::ForwardWord(count, at, word) => self.line.move_to_next_word(at, word, count),
            Movement::ViCharSearch(count, character) => self.line.move_to(character, count),
            Movement::BeginningOfLine => self.line.move_home(),
            Movement::EndOfLine => self.line.move_end(),
            Movement::BeginningOfBuffer => self.line.move_buffer_start(),
            Movement::EndOfBuffer => self.line.move_buffer_end(),
            // These are not asked for.
            _ => false,
        };
    }

    /// Deletes what a motion covers.
    pub(super) fn erase(&mut self, motion: &Movement) {
        self.change(|line| line.kill(motion, &mut Unheard));
    }

    /// Cuts what a motion covers; it can be inserted again.
    pub(super) fn cut(&mut self, motion: &Movement) {
        let continues = self.last == LastEdit::Cut;
        let before = self.text().to_owned();
        let cursor = self.cursor();
        self.change(|line| line.kill(motion, &mut Unheard));
        let gone = before.len() - self.text().len();
        if gone == 0 {
            return;
        }
        let at = self.cursor();
        let text = &before[at..at + gone];
        let joined = match self.cut.pop() {
            Some(last) if continues && at < cursor => format!("{text}{last}"),
            Some(last) if continues => last + text,
            last => {
                self.cut.extend(last);
                text.to_owned()
            }
        };
        self.keep_cut(joined);
        self.last = LastEdit::Cut;
    }

    /// Copies what a motion covers.
    pub(super) fn copy(&mut self, motion: &Movement) {
        if let Some(text) = self.line.copy(motion) {
            self.keep_cut(text);
        }
    }

    /// Inserts what was cut last.
    pub(super) fn insert_cut(&mut self) {
        if let Some(place) = self.cut.len().checked_sub(1) {
            let from = self.cursor();
            self.begin_change(LastEdit::Inserted { place, from });
            self.put(&self.cut[place].clone());
        }
    }

    /// Puts the text that was cut before it in place of the one inserted just now.
    fn insert_earlier_cut(&mut self) {
        let LastEdit::Inserted { place, from } = self.last else { return };
        let place = place.checked_sub(1).unwrap_or(self.cut.len() - 1);
        self.line.replace(from..self.cursor(), &self.cut[place].clone(), &mut Unheard);
        self.last = LastEdit::Inserted { place, from };
    }

    /// Takes the last change back.
    pub(super) fn undo(&mut self) {
        if let Some(EarlierText { text, cursor }) = self.earlier.pop() {
            self.line.replace(0..self.line.len(), &text, &mut Unheard);
            self.set_cursor(cursor);
        }
    }

    /// Changes the line. A change that leaves it as it was need not be undone.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut LineBuffer) -> bool) {
        self.begin_change(LastEdit::Other);
        let changes = change(&mut self.line);
        if !changes {
            self.earlier.pop();
        }
    }

    fn type_character(&mut self, c: char) {
        self.begin_change(LastEdit::Typed);
        self.put(c.encode_utf8(&mut [0; 4]));
    }

    fn put(&mut self, text: &str) {
        let at = self.cursor();
        self.line.insert_str(at, text, &mut Unheard);
        self.line.set_pos(at + text.len());
    }

    /// Keeps the state before a change. Characters that are typed one after another are undone together.
    fn begin_change(&mut self, edit: LastEdit) {
        let continues = edit == LastEdit::Typed && self.last == LastEdit::Typed;
        self.last = edit;
        if continues {
            return;
        }
        if self.earlier.len() == MOST_UNDONE {
            self.earlier.remove(0);
        }
        self.earlier.push(EarlierText { text: self.text().to_owned(), cursor: self.cursor() });
    }
}

/// The motion that a key means.
fn find_motion(key: &Key) -> Option<Movement> {
    Some(match key {
        Key::Left | Key::Ctrl('b') => Movement::BackwardChar(1),
        Key::Right | Key::Ctrl('f') => Movement::ForwardChar(1),
        Key::Home | Key::Ctrl('a') => Movement::BeginningOfLine,
        Key::End | Key::Ctrl('e') => Movement::EndOfLine,
        Key::WordLeft | Key::Alt('b') => Movement::BackwardWord(1, Word::Emacs),
        Key::WordRight | Key::Alt('f') => Movement::ForwardWord(1, At::AfterEnd, Word::Emacs),
        _ => return None,
    })
}

/// Nobody needs to hear of each change: whole states are kept.
pub(super) struct Unheard;

impl DeleteListener for Unheard {
    fn delete(&mut self, _: usize, _: &str, _: Direction) {}
}

impl ChangeListener for Unheard {
    fn insert_char(&mut self, _: usize, _: char) {}
    fn insert_str(&mut self, _: usize, _: &str) {}
    fn replace(&mut self, _: usize, _: &str, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key]) -> (String, String) {
        let mut field = TextField::default();
        for key in keys {
            field.press(key);
        }
        let (before, after) = field.split();
        (before.to_owned(), after.to_owned())
    }

    fn text(words: &str) -> Vec<Key> {
        words.chars().map(Key::Char).collect()
    }

    #[test]
    fn keys_edit_as_in_a_shell() {
        let word = |key: char| Key::Ctrl(key);
        for (words, keys, before, after) in [
            ("ab", vec![Key::Left, Key::Char('x')], "ax", "b"),
            ("a日e\u{301}", vec![Key::Backspace], "a日", ""),
            ("👩\u{200d}👩\u{200d}👧!", vec![Key::Left, Key::Left], "", "👩\u{200d}👩\u{200d}👧!"),
            ("👩\u{200d}👩\u{200d}👧!", vec![Key::Home, Key::Right], "👩\u{200d}👩\u{200d}👧", "!"),
            ("one two", vec![word('w')], "one ", ""),
            ("one a/b", vec![word('w')], "one ", ""),
            ("one a/b", vec![Key::AltBackspace], "one a/", ""),
            ("one two", vec![Key::WordLeft, word('k')], "one ", ""),
            ("one two", vec![Key::Home, Key::WordRight], "one", " two"),
            ("one two", vec![Key::WordLeft, word('u')], "", "two"),
            ("one", vec![Key::Home, Key::Delete], "", "ne"),
            ("", vec![Key::Backspace, Key::Delete, Key::Left, Key::Right, Key::WordLeft, Key::WordRight], "", ""),
            ("a", vec![Key::Paste("x\ny".to_owned())], "ax\ny", ""),
            ("a", vec![Key::Paste("x\ny".to_owned()), Key::Home, Key::Char('z')], "ax\nz", "y"),
            // What was cut comes back, joined where it was cut in one go.
            ("one two", vec![word('w'), word('w'), word('y')], "one two", ""),
            ("one two", vec![word('w'), Key::Home, word('k'), word('y'), Key::Alt('y')], "two", ""),
            ("one two", vec![Key::Home, Key::Alt('d'), Key::Alt('d'), word('y')], "one two", ""),
            // Undone.
            ("one", vec![word('_')], "", ""),
            ("one", vec![word('u'), word('_')], "one", ""),
            ("one", vec![word('u'), word('_'), word('_')], "", ""),
            ("one", vec![Key::Home, Key::Backspace, word('_')], "", ""),
            ("ab", vec![word('t')], "ba", ""),
            ("one two", vec![Key::Home, Key::Alt('u'), Key::Alt('c')], "ONE Two", ""),
        ] {
            let all: Vec<Key> = text(words).into_iter().chain(keys).collect();
            assert_eq!(typed(&all), (before.to_owned(), after.to_owned()), "{words:?} {all:?}");
        }
    }

    #[test]
    fn rows_lie_above_one_another() {
        let mut field = TextField::from_text("long row\n日本\nend");
        for (up, expected) in [(true, "long row\n日本"), (true, "lo"), (false, "long row\n日本")] {
            assert!(field.move_row(up));
            assert_eq!(field.split().0, expected);
        }
        assert!(field.move_row(true) && !field.move_row(true));
        assert!(!TextField::from_text("one").move_row(false));
    }

    #[test]
    fn a_field_tells_which_keys_it_does_not_know() {
        let mut field = TextField::from_text("x");
        assert_eq!(field.press(&Key::Escape), Edited::Ignored);
        assert_eq!((field.take().as_str(), field.is_empty()), ("x", true));
    }
}
