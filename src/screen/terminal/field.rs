//! An input field that is edited key by key: text, which may have several lines, and a cursor.

use super::keys::Key;
use crate::base::text;

/// The text, and the cursor as a byte offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextField {
    text: String,
    cursor: usize,
}

/// The effect of a key on a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    Changed,
    /// The key has no meaning here.
    Ignored,
}

impl TextField {
    /// Creates a field with `text` and the cursor at its end.
    pub fn from_text(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len() }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if there is no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text before the cursor and the text after it.
    pub fn split(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    /// Takes the text and leaves the field empty.
    pub fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Adds text at the cursor.
    pub fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Replaces the text from `start`, a byte before the cursor, up to the cursor.
    pub fn replace_before(&mut self, start: usize, text: &str) {
        self.remove(start, self.cursor);
        self.insert(text);
    }

    /// Edits with the keys of Emacs, as shells do.
    pub fn press(&mut self, key: &Key) -> Edited {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Tab => self.insert("    "),
            Key::Paste(text) => self.insert(text),
            Key::Backspace => self.remove(self.find_left(), self.cursor),
            Key::Delete | Key::Ctrl('d') => self.remove(self.cursor, self.right()),
            Key::Left | Key::Ctrl('b') => self.cursor = self.find_left(),
            Key::Right | Key::Ctrl('f') => self.cursor = self.right(),
            Key::Home | Key::Ctrl('a') => self.cursor = 0,
            Key::End | Key::Ctrl('e') => self.cursor = self.text.len(),
            Key::WordLeft => self.cursor = self.word_left(),
            Key::WordRight => self.cursor = self.word_right(),
            Key::Ctrl('w') => self.remove(self.word_left(), self.cursor),
            Key::Ctrl('u') => self.remove(0, self.cursor),
            Key::Ctrl('k') => self.remove(self.cursor, self.text.len()),
            Key::Alt('d') => self.remove(self.cursor, self.word_right()),
            _ => return Edited::Ignored,
        }
        Edited::Changed
    }

    /// The place of the cursor, a byte.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Moves the cursor to a byte between two characters.
    pub(super) fn go(&mut self, to: usize) {
        self.cursor = to;
    }

    pub(super) fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    /// The start of the character on the left, including combining characters.
    pub(super) fn find_left(&self) -> usize {
        let before = &self.text[..self.cursor];
        let mut at = before.len();
        for (index, c) in before.char_indices().rev() {
            at = index;
            let joins = before[..index].ends_with('\u{200d}');
            if !joins && takes_room(c) {
                break;
            }
        }
        at
    }

    /// The end of the character on the right, including combining characters.
    pub(super) fn right(&self) -> usize {
        let after = &self.text[self.cursor..];
        let mut chars = after.char_indices();
        let mut joins = chars.next().is_none();
        for (index, c) in chars {
            if !joins && takes_room(c) {
                return self.cursor + index;
            }
            joins = c == '\u{200d}';
        }
        self.text.len()
    }

    fn word_left(&self) -> usize {
        let before = self.text[..self.cursor].trim_end_matches(|c: char| !c.is_alphanumeric());
        before
            .rfind(|c: char| !c.is_alphanumeric())
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8))
    }

    fn word_right(&self) -> usize {
        let after = &self.text[self.cursor..];
        let begins = after.find(char::is_alphanumeric).unwrap_or(after.len());
        let ends = after[begins..].find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len() - begins);
        self.cursor + begins + ends
    }
}

/// True if a character takes room by itself; marks and joiners take no columns.
fn takes_room(c: char) -> bool {
    c == '\n' || text::count_columns(c.encode_utf8(&mut [0; 4])) > 0
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
        for (words, keys, before, after) in [
            ("ab", vec![Key::Left, Key::Char('x')], "ax", "b"),
            ("a日e\u{301}", vec![Key::Backspace], "a日", ""),
            ("👩\u{200d}👩\u{200d}👧!", vec![Key::Left, Key::Left], "", "👩\u{200d}👩\u{200d}👧!"),
            ("👩\u{200d}👩\u{200d}👧!", vec![Key::Home, Key::Right], "👩\u{200d}👩\u{200d}👧", "!"),
            ("one two", vec![Key::Ctrl('w')], "one ", ""),
            ("one two", vec![Key::WordLeft, Key::Ctrl('k')], "one ", ""),
            ("one two", vec![Key::Home, Key::WordRight], "one", " two"),
            ("one two", vec![Key::WordLeft, Key::Ctrl('u')], "", "two"),
            ("one", vec![Key::Home, Key::Delete], "", "ne"),
            ("", vec![Key::Backspace, Key::Delete, Key::Left, Key::Right, Key::WordLeft, Key::WordRight], "", ""),
            ("a", vec![Key::Paste("x\ny".to_owned())], "ax\ny", ""),
        ] {
            let all: Vec<Key> = text(words).into_iter().chain(keys).collect();
            assert_eq!(typed(&all), (before.to_owned(), after.to_owned()), "{words:?} {all:?}");
        }
    }

    #[test]
    fn a_field_tells_which_keys_it_does_not_know() {
        let mut field = TextField::from_text("x");
        assert_eq!(field.press(&Key::Escape), Edited::Ignored);
        assert_eq!((field.take().as_str(), field.is_empty()), ("x", true));
    }
}
