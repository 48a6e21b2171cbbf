//! The keys of vi for a field: motions with counts, operators, searches for a character, and the repetition of a change.
//! Every line begins in the insert mode.

use rustyline::{At, CharSearch, Movement, RepeatCount, Word};

use super::field::TextField;
use super::keys::Key;
use super::vi_motion::{
    MOST_TIMES, change_case, count_left, count_right, cut, cut_to_row_end, find_character, go, is_forward,
    is_search, rest_cursor, row_end, row_start, turn_round, with_operator,
};

/// The state between two keys.
#[derive(Debug, Clone, Default)]
pub struct Vi {
    is_command_mode: bool,
    /// The digits typed before a command; 0 without any.
    count: RepeatCount,
    /// What waits for the next key.
    waits: Vec<Waiting>,
    /// The last search for a character in the line.
    searched: Option<CharSearch>,
    /// The keys of the last change, and those of the change that is being made.
    repeated: Vec<Key>,
    recorded: Option<Vec<Key>>,
}

/// A command that is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// `d`, `c` or `y`, and its count, waits for a motion.
    Operator(char, RepeatCount),
    /// `f`, `F`, `t` or `T` waits for a character.
    Search(char),
    /// `r` waits for a character.
    Replace,
}

impl Vi {
    /// True if letters are inserted.
    pub fn inserts(&self) -> bool {
        !self.is_command_mode
    }

    /// Takes a key. Returns the key that is left to be handled as without these keys.
    pub fn press(&mut self, field: &mut TextField, key: &Key) -> Option<Key> {
        if let Some(recorded) = &mut self.recorded {
            recorded.push(key.clone());
        }
        match key {
            Key::Escape if self.is_command_mode && self.waits.is_empty() => return Some(Key::Escape),
            Key::Escape => self.enter_command_mode(field),
            // Esc, and a key right behind it.
            Key::Alt(c) => {
                self.enter_command_mode(field);
                return self.command(field, *c);
            }
            Key::Enter | Key::LineBreak => {
                self.begin_line();
                return Some(key.clone());
            }
            Key::Char(c) if self.is_command_mode => return self.command(field, *c),
            Key::Backspace if self.is_command_mode => return self.command(field, 'h'),
            Key::Tab if self.is_command_mode => {}
            key => return Some(key.clone()),
        }
        None
    }

    /// Begins another line, in the insert mode.
    pub fn begin_line(&mut self) {
        (self.is_command_mode, self.count, self.recorded) = (false, 0, None);
        self.waits.clear();
    }

    fn enter_command_mode(&mut self, field: &mut TextField) {
        if !self.is_command_mode && field.cursor() > row_start(field) {
            field.go(&Movement::BackwardChar(1));
        }
        (self.is_command_mode, self.count) = (true, 0);
        self.waits.clear();
        self.end_change();
    }

    fn command(&mut self, field: &mut TextField, c: char) -> Option<Key> {
        let is_digit = c.is_ascii_digit() && (c != '0' || self.count > 0);
        let waits_for_any = matches!(self.waits.last(), Some(Waiting::Search(_) | Waiting::Replace));
        if is_digit && !waits_for_any {
            let digit = c.to_digit(10).and_then(|digit| digit.try_into().ok()).unwrap_or(0);
            self.count = self.count.saturating_mul(10).saturating_add(digit).min(MOST_TIMES);
            return None;
        }
        match self.waits.pop() {
            Some(Waiting::Replace) => self.replace_characters(field, c),
            Some(Waiting::Search(kind)) => {
                self.searched = Some(find_character(kind, c));
                self.complete(field, ';');
            }
            Some(Waiting::Operator(operator, times)) if c == operator => self.take_rows(field, operator, times),
            Some(operator @ Waiting::Operator(_, times)) => {
                self.count = self.times().saturating_mul(times).min(MOST_TIMES);
                self.waits.push(operator);
                if is_search(c) {
                    self.waits.push(Waiting::Search(c));
                    return None;
                }
                self.complete(field, c);
            }
            None => return self.begin_command(field, c),
        }
        self.end_command(field);
        None
    }

    /// Does what a single letter means, or waits for the rest of the command. Returns a key that the line has a meaning
    /// for.
    fn begin_command(&mut self, field: &mut TextField, c: char) -> Option<Key> {
        let times = self.times();
        let mut left = None;
        if "dcyxXDCsSrpP~iaIA".contains(c) && self.recorded.is_none() {
            let digits = if self.count == 0 { String::new() } else { self.count.to_string() };
            self.recorded = Some(digits.chars().chain([c]).map(Key::Char).collect());
        }
        match c {
            'd' | 'c' | 'y' => {
                self.waits.push(Waiting::Operator(c, times));
                self.count = 0;
                return None;
            }
            'r' => {
                self.waits.push(Waiting::Replace);
                return None;
            }
            c if is_search(c) => {
                self.waits.push(Waiting::Search(c));
                return None;
            }
            'x' => field.cut(&Movement::ForwardChar(times.min(count_right(field)))),
            'X' => field.cut(&Movement::BackwardChar(times.min(count_left(field)))),
            'D' => cut_to_row_end(field),
            'C' => self.insert_after(field, cut_to_row_end),
            's' => self.insert_after(field, |field| {
                field.cut(&Movement::ForwardChar(times.min(count_right(field))));
            }),
            'S' => self.take_rows(field, 'c', 1),
            'i' => self.is_command_mode = false,
            'a' => self.insert_after(field, |field| {
                field.go(&Movement::ForwardChar(count_right(field).min(1)));
            }),
            'I' => self.insert_after(field, |field| field.go(&Movement::BeginningOfLine)),
            'A' => self.insert_after(field, |field| field.go(&Movement::EndOfLine)),
            'p' | 'P' => {
                field.go(&Movement::ForwardChar(if c == 'p' { count_right(field).min(1) } else { 0 }));
                (0..times).for_each(|_| field.insert_cut());
                field.go(&Movement::BackwardChar(1));
            }
            '~' => (0..times).for_each(|_| change_case(field)),
            'u' => (0..times).for_each(|_| field.undo()),
            '.' => self.repeat(field),
            'k' | '-' => left = Some(Key::Up),
            'j' | '+' => left = Some(Key::Down),
            '/' | '?' => left = Some(Key::Ctrl('r')),
            'v' => left = Some(Key::Alt('e')),
            motion => {
                if let Some(motion) = self.find_motion(motion) {
                    go(field, &motion);
                }
            }
        }
        self.end_command(field);
        left
    }

    fn insert_after(&mut self, field: &mut TextField, change: impl FnOnce(&mut TextField)) {
        change(field);
        self.is_command_mode = false;
    }

    /// Ends a command: its count is used up, and the cursor stands on a character.
    fn end_command(&mut self, field: &mut TextField) {
        self.count = 0;
        if self.is_command_mode {
            rest_cursor(field);
            self.end_change();
        }
    }

    fn end_change(&mut self) {
        if let Some(recorded) = self.recorded.take() {
            self.repeated = recorded;
        }
    }

    /// Makes the last change again.
    fn repeat(&mut self, field: &mut TextField) {
        self.count = 0;
        let keys = std::mem::take(&mut self.repeated);
        for key in &keys {
            if let Some(left) = self.press(field, key) {
                field.press(&left);
            }
        }
        if self.inserts() {
            self.enter_command_mode(field);
        }
        (self.repeated, self.recorded) = (keys, None);
    }

    /// How often the command is carried out.
    fn times(&self) -> RepeatCount {
        self.count.max(1)
    }

    /// Carries out the motion that a letter means, with the operator that waits for it.
    fn complete(&mut self, field: &mut TextField, letter: char) {
        let operator = self.waits.pop();
        let Some(motion) = self.find_motion(letter) else { return };
        let Some(Waiting::Operator(operator, _)) = operator else { return go(field, &motion) };
        let motion = with_operator(motion, operator);
        match operator {
            'y' => {
                field.copy(&motion);
                if !is_forward(&motion) {
                    go(field, &motion);
                }
            }
            'c' => self.insert_after(field, |field| cut(field, &motion)),
            _ => cut(field, &motion),
        }
    }

    /// Takes whole rows. A change leaves an empty one to type in.
    fn take_rows(&mut self, field: &mut TextField, operator: char, times: RepeatCount) {
        let start = row_start(field);
        let mut end = row_end(field);
        for _ in 1..times {
            let Some(rest) = field.text().get(end + 1..) else { break };
            end += 1 + rest.find('\n').unwrap_or(rest.len());
        }
        field.keep_cut(field.text()[start..end].to_owned());
        if operator == 'y' {
            return;
        }
        // Deleted with a line feed, so that no empty row is left.
        let (from, to) = match (operator, field.text()[end..].starts_with('\n')) {
            ('d', true) => (start, end + 1),
            ('d', false) => (start.saturating_sub(1), end),
            _ => (start, end),
        };
        field.set_cursor(to);
        field.replace_before(from, "");
        if operator == 'c' {
            self.is_command_mode = false;
        }
    }

    fn replace_characters(&mut self, field: &mut TextField, c: char) {
        let times = self.times();
        if times > count_right(field) {
            return;
        }
        for _ in 0..times {
            field.go(&Movement::ForwardChar(1));
            let (before, _) = field.split();
            let mut left = TextField::from_text(before);
            left.go(&Movement::BackwardChar(1));
            field.replace_before(left.cursor(), c.encode_utf8(&mut [0; 4]));
        }
        field.go(&Movement::BackwardChar(1));
    }

    /// The motion that a letter means.
    fn find_motion(&self, letter: char) -> Option<Movement> {
        let times = self.times();
        Some(match letter {
            'h' => Movement::BackwardChar(times),
            'l' | ' ' => Movement::ForwardChar(times),
            '0' => Movement::BeginningOfLine,
            '^' => Movement::ViFirstPrint,
            '$' => Movement::EndOfLine,
            'w' => Movement::ForwardWord(times, At::Start, Word::Vi),
            'W' => Movement::ForwardWord(times, At::Start, Word::Big),
            'e' => Movement::ForwardWord(times, At::BeforeEnd, Word::Vi),
            'E' => Movement::ForwardWord(times, At::BeforeEnd, Word::Big),
            'b' => Movement::BackwardWord(times, Word::Vi),
            'B' => Movement::BackwardWord(times, Word::Big),
            ';' => Movement::ViCharSearch(times, self.searched?),
            ',' => Movement::ViCharSearch(times, turn_round(self.searched?)),
            _ => return None,
        })
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
            ("one two three⎋2b", "one |two three"),
            ("one two three⎋02dw", "|three"),
            ("one two three⎋0d2w", "|three"),
            ("one two three⎋03x", "| two three"),
            ("one.two three⎋0W", "one.two |three"),
            ("one.two three⎋B", "one.two |three"),
            ("one.two three⎋0dW", "|three"),
            ("one two⎋0fw", "one t|wo"),
            ("one two⎋0tw", "one |two"),
            ("one two⎋Fe", "on|e two"),
            ("one two⎋Te", "one| two"),
            ("a.b.c⎋0f.;", "a.b|.c"),
            ("a.b.c⎋0f.;,", "a|.b.c"),
            ("a.b.c⎋0df.", "|b.c"),
            ("a.b.c⎋0dt.", "|.b.c"),
            ("one⎋0rx", "|xne"),
            ("one⎋02rx", "x|xe"),
            ("one⎋0~~", "ON|e"),
            ("one⎋0sx", "x|ne"),
            ("one two⎋0dwp", "tone| wo"),
            ("one two⎋0dwP", "one| two"),
            ("one⎋yyp", "oneon|e"),
            ("one two⎋0ywP", "one| one two"),
            ("one two⎋0dwu", "|one two"),
            ("one two three⎋0dw.", "|three"),
            ("a b⎋0cwx⎋w.", "x |x"),
            ("one⎋0x..", "|"),
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
        assert_eq!(vi.press(&mut field, &Key::Alt('k')), Some(Key::Up), "Esc, and k behind it");
        assert_eq!(vi.press(&mut field, &Key::Char('k')), Some(Key::Up));
        assert_eq!(vi.press(&mut field, &Key::Tab), None);
        assert_eq!(vi.press(&mut field, &Key::Enter), Some(Key::Enter));
        assert_eq!(vi.press(&mut field, &Key::Char('k')), Some(Key::Char('k')), "the next line is typed");
    }

    proptest! {
        #[test]
        fn no_keys_are_too_odd(keys in "[a-zA-Z0-3$^.;~⎋⏎ ,é日]{0,60}") {
            prop_assert!(typed(&keys).contains('|'));
        }
    }
}
