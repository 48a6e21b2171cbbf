//! The keys of vi for a field: the common motions and changes of its command mode. Every line begins in the insert mode.

use super::field::TextField;
use super::keys::Key;

/// The state between two keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vi {
    is_command_mode: bool,
    /// `d` or `c`, which waits for a motion.
    operator: Option<char>,
}

/// The three kinds of characters that words are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Blank,
    Word,
    Mark,
}

impl Vi {
    /// True if letters are inserted.
    pub fn inserts(&self) -> bool {
        !self.is_command_mode
    }

    /// Takes a key. Returns the key that is left to be handled as without these keys.
    pub fn press(&mut self, field: &mut TextField, key: &Key) -> Option<Key> {
        match key {
            Key::Escape if self.is_command_mode && self.operator.is_none() => return Some(Key::Escape),
            Key::Escape | Key::Ctrl('[') => self.command_mode(field),
            // Esc, and a key right behind it.
            Key::Alt(c) => {
                self.command_mode(field);
                self.command(field, *c);
            }
            Key::Enter | Key::AltEnter => {
                *self = Self::default();
                return Some(key.clone());
            }
            Key::Char('k') if self.is_command_mode && self.operator.is_none() => return Some(Key::Up),
            Key::Char(c) if self.is_command_mode => self.command(field, *c),
            Key::Tab | Key::Backspace if self.is_command_mode => {
                if *key == Key::Backspace {
                    self.command(field, 'h');
                }
            }
            key => return Some(key.clone()),
        }
        None
    }

    fn command_mode(&mut self, field: &mut TextField) {
        if !self.is_command_mode {
            field.go(field.find_left());
        }
        *self = Self { is_command_mode: true, operator: None };
    }

    fn insert_mode(&mut self, field: &mut TextField, at: usize) {
        field.go(at);
        *self = Self::default();
    }

    fn command(&mut self, field: &mut TextField, c: char) {
        let at = field.cursor();
        if let Some(operator) = self.operator.take() {
            let Some((from, to)) = find_span(field, operator, c) else { return };
            field.remove(from, to);
            return if operator == 'c' { self.insert_mode(field, from) } else { rest_cursor(field) };
        }
        match c {
            'd' | 'c' => self.operator = Some(c),
            'x' => field.remove(at, field.right()),
            'X' => field.remove(field.find_left(), at),
            'D' => field.remove(at, row_end(field)),
            'C' => {
                field.remove(at, row_end(field));
                return self.insert_mode(field, at);
            }
            'S' => {
                let start = row_start(field);
                field.remove(start, row_end(field));
                return self.insert_mode(field, start);
            }
            'i' => return self.insert_mode(field, at),
            'a' => return self.insert_mode(field, field.right()),
            'I' => return self.insert_mode(field, row_start(field)),
            'A' => return self.insert_mode(field, row_end(field)),
            motion => {
                if let Some(to) = find_target(field, motion) {
                    field.go(to);
                }
            }
        }
        rest_cursor(field);
    }
}

/// In the command mode the cursor stands on a character.
fn rest_cursor(field: &mut TextField) {
    let at = field.cursor();
    if at == row_end(field) && at > row_start(field) {
        field.go(field.find_left());
    }
}

/// Where a motion leads.
fn find_target(field: &TextField, motion: char) -> Option<usize> {
    let (before, after) = field.split();
    let at = before.len();
    Some(match motion {
        'h' => field.find_left().max(row_start(field)),
        'l' | ' ' => field.right().min(row_end(field)),
        '0' => row_start(field),
        '^' => {
            let start = row_start(field);
            let row = &field.text()[start..row_end(field)];
            start + row.len() - row.trim_start().len()
        }
        '$' => row_end(field),
        'w' => {
            let first = after.chars().next().map(classify_char);
            let word = after
                .trim_start_matches(|c| classify_char(c) != CharKind::Blank && Some(classify_char(c)) == first);
            at + after.len() - word.trim_start().len()
        }
        'e' => {
            // From the character behind the cursor.
            let next = field.right();
            let rest = &field.text()[next..];
            let word = rest.trim_start();
            let first = word.chars().next().map(classify_char);
            let end = word.trim_start_matches(|c| Some(classify_char(c)) == first);
            let end = next + rest.len() - end.len();
            field.text()[..end].char_indices().next_back().map_or(at, |(last, _)| last.max(at))
        }
        'b' => {
            let word = before.trim_end();
            let last = word.chars().next_back().map(classify_char);
            word.trim_end_matches(|c| Some(classify_char(c)) == last).len()
        }
        _ => return None,
    })
}

/// The text that an operator takes: a whole row where it is doubled, else up to where the motion leads.
fn find_span(field: &TextField, operator: char, motion: char) -> Option<(usize, usize)> {
    let at = field.cursor();
    if operator == motion {
        let (start, end) = (row_start(field), row_end(field));
        // With a line feed, so that no empty row is left; a change leaves one to type in.
        return Some(match (operator, field.text()[end..].starts_with('\n')) {
            ('d', true) => (start, end + 1),
            ('d', false) => (start.saturating_sub(1), end),
            _ => (start, end),
        });
    }
    let to = match (operator, motion) {
        // As vi has it: a changed word keeps the blanks behind it.
        ('c', 'w') | (_, 'e') => {
            let end = find_target(field, 'e')?;
            end + field.text()[end..].chars().next().map_or(0, char::len_utf8)
        }
        (_, motion) => find_target(field, motion)?,
    };
    Some((at.min(to), at.max(to)))
}

fn row_start(field: &TextField) -> usize {
    field.split().0.rfind('\n').map_or(0, |feed| feed + 1)
}

fn row_end(field: &TextField) -> usize {
    let (before, after) = field.split();
    before.len() + after.find('\n').unwrap_or(after.len())
}

fn classify_char(c: char) -> CharKind {
    match c {
        c if c.is_whitespace() => CharKind::Blank,
        c if c.is_alphanumeric() || c == '_' => CharKind::Word,
        _ => CharKind::Mark,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text with a bar at the cursor after these keys; `⎋` is Esc.
    fn typed(keys: &str) -> String {
        let (mut field, mut vi) = (TextField::default(), Vi::default());
        for c in keys.chars() {
            let key = match c {
                '⎋' => Key::Escape,
                '⏎' => Key::Enter,
                c => Key::Char(c),
            };
            match vi.press(&mut field, &key) {
                Some(Key::Enter) => field.insert("\n"),
                Some(key) => drop(field.press(&key)),
                None => {}
            }
        }
        let (before, after) = field.split();
        format!("{before}|{after}")
    }

    #[test]
    fn keys_move_and_change_as_in_vi() {
        for (keys, expected) in [
            ("one two", "one two|"),
            ("one two⎋", "one tw|o"),
            ("one two⎋0", "|one two"),
            ("one two⎋0w", "one |two"),
            ("one, two⎋0w", "one|, two"),
            ("one two⎋0e", "on|e two"),
            ("one two⎋0ee", "one tw|o"),
            ("one two⎋b", "one |two"),
            ("one two⎋bb", "|one two"),
            ("one⎋hh", "|one"),
            ("one⎋0lll", "on|e"),
            ("one⎋0$", "on|e"),
            ("  one⎋^", "  |one"),
            ("one⎋x", "o|n"),
            ("one⎋X", "o|e"),
            ("one⎋ax", "onex|"),
            ("one⎋0ix", "x|one"),
            ("one⎋Ix", "x|one"),
            ("one⎋0Ax", "onex|"),
            ("one two⎋bD", "one| "),
            ("one two⎋0Cx", "x|"),
            ("one two⎋Sx", "x|"),
            ("one two⎋dd", "|"),
            ("one two⎋0dw", "|two"),
            ("one two⎋0cwx", "x| two"),
            ("one two⎋db", "one |o"),
            ("one two⎋0d$", "|"),
            ("one two⎋0de", "| two"),
            ("one two⎋ccx", "x|"),
            ("one⏎two⎋0", "one\n|two"),
            ("one⏎two⎋dd", "on|e"),
            ("one⎋zq", "on|e"),
            ("one⎋dz", "on|e"),
            ("日本⎋x", "|日"),
            ("⎋xXDdwdd", "|"),
        ] {
            assert_eq!(typed(keys), expected, "{keys}");
        }
    }

    #[test]
    fn keys_of_the_line_are_passed_on() {
        let (mut field, mut vi) = (TextField::from_text("x"), Vi::default());
        assert_eq!(vi.press(&mut field, &Key::Tab), Some(Key::Tab));
        assert_eq!(vi.press(&mut field, &Key::Alt('k')), None);
        assert_eq!(vi.press(&mut field, &Key::Char('k')), Some(Key::Up));
        assert_eq!(vi.press(&mut field, &Key::Tab), None);
        assert_eq!(vi.press(&mut field, &Key::Enter), Some(Key::Enter));
        assert_eq!(vi.press(&mut field, &Key::Char('k')), Some(Key::Char('k')), "the next line is typed");
    }

    proptest! {
        #[test]
        fn no_keys_are_too_odd(keys in "[a-zA-Z0$^⎋⏎ ,é日]{0,60}") {
            prop_assert!(typed(&keys).contains('|'));
        }
    }
}
