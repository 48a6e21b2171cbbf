//! Decodes the bytes of a terminal into keys: text, control keys, escape sequences, pastes, and the terminal's answers.
//!
//! Sequences follow xterm's ctlseqs, in the form that common terminals send. Unknown sequences are dropped whole, so no
//! part of them becomes text.

use crate::screen::ink::Theme;

/// The receiver of keys and of the terminal's answers. Called on the reading thread.
pub trait Listener: Send {
    /// Takes a key. `by_hand` is false for one that came together with a paste.
    fn press(&mut self, key: Key, by_hand: bool);
    /// Takes the theme for the terminal's background.
    fn learn(&mut self, theme: Theme);
    /// Prepares the screen before the program stops (Ctrl-Z), and after it continues. Returns once the screen is ready.
    fn stop(&mut self, stops: bool);
    /// Another program had the terminal, and may have changed its private modes.
    fn come_back(&mut self);
    /// The terminal can report keys with all their modifiers.
    fn report_keys(&mut self);
}

/// A key, a paste or an answer of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    WordLeft,
    WordRight,
    Escape,
    /// Ctrl with a letter, in lower case.
    Ctrl(char),
    Alt(char),
    /// Alt-Enter, Ctrl-J, or Enter with a modifier where the terminal reports it.
    LineBreak,
    AltBackspace,
    AltUp,
    /// The text between the marks of a paste, or text with line feeds that arrived in one piece.
    Paste(String),
    /// The answer about the background colour: red, green, blue.
    Background([u8; 3]),
    /// The answer that the terminal can report keys with all their modifiers.
    Reports,
    /// The answer about the terminal's attributes (DA1), which all terminals support.
    Attributes,
}

/// Turns bytes into keys. An incomplete sequence waits for the rest.
#[derive(Debug, Default)]
pub struct KeyDecoder {
    bytes: Vec<u8>,
}

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// The most bytes of an unfinished sequence; more bytes are not a sequence.
const LONGEST_SEQUENCE: usize = 256;

/// The key at the start of some bytes and its length. Bytes that mean nothing have no key; `None` if it is incomplete.
type KeyStart = Option<(Option<Key>, usize)>;

impl KeyDecoder {
    /// Takes bytes and returns the complete keys.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.bytes.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut from = 0;
        while let Some((key, length)) = decode_first(&self.bytes[from..]) {
            keys.extend(key);
            from += length;
        }
        self.bytes.drain(..from);
        keys
    }

    /// True if a sequence is incomplete. An escape that stays alone for a moment is the key.
    pub fn is_waiting(&self) -> bool {
        !self.bytes.is_empty() && !self.bytes.starts_with(PASTE_BEGINS)
    }

    /// Gives up waiting: a lone escape is the key; an incomplete sequence is dropped.
    pub fn give_up(&mut self) -> Option<Key> {
        let waited = std::mem::take(&mut self.bytes);
        (waited == b"\x1b").then_some(Key::Escape)
    }
}

fn decode_first(bytes: &[u8]) -> KeyStart {
    Some(match *bytes.first()? {
        b'\r' => (Some(Key::Enter), 1),
        // Ctrl-J.
        b'\n' => (Some(Key::LineBreak), 1),
        b'\t' => (Some(Key::Tab), 1),
        0x7f | 0x08 => (Some(Key::Backspace), 1),
        0x1b => return decode_escape(bytes),
        control @ 1..=0x1a => (Some(Key::Ctrl(char::from(control + b'a' - 1))), 1),
        0x1f => (Some(Key::Ctrl('_')), 1),
        control if control < 0x20 => (None, 1),
        _ => return decode_character(bytes).map(|(c, length)| (c.map(Key::Char), length)),
    })
}

/// The first character and its length, without a character for a control and for bytes that are not UTF-8. `None` if it
/// is incomplete.
fn decode_character(bytes: &[u8]) -> Option<(Option<char>, usize)> {
    const LONGEST: usize = 4;
    let start = &bytes[..bytes.len().min(LONGEST)];
    let valid = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => return error.error_len().map(|length| (None, length)),
    };
    valid.chars().next().map(|c| (Some(c).filter(|c| !c.is_control()), c.len_utf8()))
}

fn decode_escape(bytes: &[u8]) -> KeyStart {
    Some(match bytes.get(1)? {
        b'[' if bytes.starts_with(PASTE_BEGINS) => return decode_paste(bytes),
        b'[' => return decode_sequence(bytes),
        // SS3: arrows and Home in application mode, F1 to F4.
        b'O' => match bytes.get(2)? {
            b'M' => (Some(Key::Enter), 3),
            last => (find_key(*last, &[]), 3),
        },
        // OSC, DCS, APC, PM: answers that end with ST or BEL.
        b']' | b'P' | b'_' | b'^' => return text_sequence(bytes),
        b'\r' | b'\n' => (Some(Key::LineBreak), 2),
        0x7f | 0x08 => (Some(Key::AltBackspace), 2),
        // Alt as a prefix.
        0x1b if bytes[2..].starts_with(b"[A") => (Some(Key::AltUp), 4),
        0x1b => (Some(Key::Escape), 1),
        _ => return decode_character(&bytes[1..]).map(|(c, length)| (c.map(Key::Alt), length + 1)),
    })
}

/// CSI: parameters, intermediates, a final byte from `@` to `~` (ECMA-48, 5.4).
fn decode_sequence(bytes: &[u8]) -> KeyStart {
    let rest = &bytes[2..];
    let Some(end) = rest.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else {
        return (rest.len() > LONGEST_SEQUENCE).then_some((None, bytes.len()));
    };
    let length = end + 3;
    if !(0x40..=0x7e).contains(&rest[end]) {
        // A new key in the middle of a sequence: only the sequence is lost.
        return Some((None, length - 1));
    }
    let is_private = rest.first() == Some(&b'?');
    // The last part of a number is what a key writes with Shift.
    let number = |number: &[u8]| {
        let part = number.rsplit(|byte| *byte == b':').next().unwrap_or_default();
        std::str::from_utf8(part).ok().and_then(|part| part.parse().ok()).unwrap_or(0)
    };
    let numbers: Vec<u32> = rest[usize::from(is_private)..end].split(|byte| *byte == b';').map(number).collect();
    let key = match (is_private, rest[end]) {
        (true, b'c') => Some(Key::Attributes),
        (true, b'u') => Some(Key::Reports),
        (true, _) => None,
        (false, last) => find_key(last, &numbers),
    };
    Some((key, length))
}

/// The key of a sequence with this final byte and these numbers. The second number encodes the modifiers.
fn find_key(last: u8, numbers: &[u32]) -> Option<Key> {
    let held = numbers.get(1).map_or(0, |sent| sent.saturating_sub(1)) & (SHIFT | ALT | CTRL);
    let is_held = held > 0;
    Some(match (last, numbers.first().copied().unwrap_or(0)) {
        (b'A', _) if held == ALT => Key::AltUp,
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) if is_held => Key::WordRight,
        (b'D', _) if is_held => Key::WordLeft,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', 1 | 7) => Key::Home,
        (b'Z', _) => Key::BackTab,
        (b'F', _) | (b'~', 4 | 8) => Key::End,
        (b'~', 3) => Key::Delete,
        (b'u', code) => return find_reported(code, held),
        (b'~', 27) => return find_reported(*numbers.get(2)?, held),
        _ => return None,
    })
}

const SHIFT: u32 = 1;
const ALT: u32 = 2;
const CTRL: u32 = 4;

/// A key that the terminal reports by its code point, with what is held: of the kitty protocol (`CSI u`), which gives keys of
/// the keypad numbers of their own, or of xterm's modifyOtherKeys.
fn find_reported(code: u32, held: u32) -> Option<Key> {
    const KEYPAD_ENTER: u32 = 57414;
    const KEYPAD: std::ops::RangeInclusive<u32> = 57417..=57426;
    const KEYPAD_KEYS: [Option<Key>; 10] = [
        Some(Key::Left),
        Some(Key::Right),
        Some(Key::Up),
        Some(Key::Down),
        None,
        None,
        Some(Key::Home),
        Some(Key::End),
        None,
        Some(Key::Delete),
    ];
    if KEYPAD.contains(&code) {
        return KEYPAD_KEYS[(code - KEYPAD.start()) as usize].clone();
    }
    let c = char::from_u32(if code == KEYPAD_ENTER { 13 } else { code })?;
    Some(match (c, held) {
        ('\r', 0) | ('m', CTRL) => Key::Enter,
        ('\r', _) | ('j', CTRL) => Key::LineBreak,
        ('\t', 0) | ('i', CTRL) => Key::Tab,
        ('\t', SHIFT) => Key::BackTab,
        ('\x08' | '\x7f', 0 | SHIFT) | ('h', CTRL) => Key::Backspace,
        ('\x08' | '\x7f', _) => Key::AltBackspace,
        ('\x1b', _) | ('[', CTRL) => Key::Escape,
        ('_' | '/', _) if held & CTRL > 0 => Key::Ctrl('_'),
        (c, _) if c.is_control() => return None,
        (c, CTRL) if c.is_ascii_lowercase() => Key::Ctrl(c),
        (c, 0 | SHIFT) => Key::Char(c),
        (c, _) if held & CTRL == 0 => Key::Alt(c),
        _ => return None,
    })
}

fn decode_paste(bytes: &[u8]) -> KeyStart {
    let body = &bytes[PASTE_BEGINS.len()..];
    let end = body.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS)?;
    let text = String::from_utf8_lossy(&body[..end]).replace("\r\n", "\n").replace('\r', "\n");
    Some((Some(Key::Paste(text)), PASTE_BEGINS.len() + end + PASTE_ENDS.len()))
}

/// Decodes a sequence that contains text. Only the background colour is known.
fn text_sequence(bytes: &[u8]) -> KeyStart {
    let body = &bytes[2..];
    let Some(end) = body.iter().position(|byte| matches!(byte, 0x07 | 0x1b)) else {
        return (body.len() > LONGEST_SEQUENCE).then_some((None, bytes.len()));
    };
    let closing = match body[end] {
        0x07 => 1,
        _ if *body.get(end + 1)? == b'\\' => 2,
        // Another sequence begins.
        _ => 0,
    };
    let length = 2 + end + closing;
    let colour = std::str::from_utf8(&body[..end]).ok().filter(|_| bytes[1] == b']').and_then(parse_background);
    Some((colour.map(Key::Background), length))
}

/// Parses `11;rgb:RRRR/GGGG/BBBB`, with one to four digits each (XParseColor).
fn parse_background(answer: &str) -> Option<[u8; 3]> {
    let colours = answer.strip_prefix("11;rgb:").or_else(|| answer.strip_prefix("11;rgba:"))?;
    let mut parts = colours.split('/').map(|digits| {
        let most = match digits.len() {
            length @ 1..=4 => (1_u32 << (4 * length)) - 1,
            _ => return None,
        };
        let value = u32::from_str_radix(digits, 16).ok()?;
        u8::try_from(value * 255 / most).ok()
    });
    let mut next = || parts.next().flatten();
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        KeyDecoder::default().feed(bytes)
    }

    #[test]
    fn bytes_are_the_keys_that_send_them() {
        for (bytes, expected) in [
            ("a日", vec![Key::Char('a'), Key::Char('日')]),
            ("\r\n", vec![Key::Enter, Key::LineBreak]),
            ("\x01\x1a", vec![Key::Ctrl('a'), Key::Ctrl('z')]),
            ("\x7f\t\x1b\x7f\x1f", vec![Key::Backspace, Key::Tab, Key::AltBackspace, Key::Ctrl('_')]),
            ("\x1b[99;5u\x1b[99;133u\x1b[1;129A", vec![Key::Ctrl('c'), Key::Ctrl('c'), Key::Up]),
            (
                "\x1b[27u\x1b[98;3u\x1b[44:60;4u\x1b[47;5u",
                vec![Key::Escape, Key::Alt('b'), Key::Alt('<'), Key::Ctrl('_')],
            ),
            (
                "\x1b[13u\x1b[57414u\x1b[13;3u\x1b[127;3u",
                vec![Key::Enter, Key::Enter, Key::LineBreak, Key::AltBackspace],
            ),
            (
                "\x1b[9;2u\x1b[57419u\x1b[109;5u\x1b[57427u\x1b[55296u",
                vec![Key::BackTab, Key::Up, Key::Enter, Key::Char('\u{e053}')],
            ),
            ("\x1b[?0u\x1b[?5u", vec![Key::Reports, Key::Reports]),
            ("\x1b[A\x1bOB\x1b[1;5C\x1b[D", vec![Key::Up, Key::Down, Key::WordRight, Key::Left]),
            ("\x1b[3~\x1b[1~\x1b[F", vec![Key::Delete, Key::Home, Key::End]),
            ("\x1b\r\x1bx\x1bb", vec![Key::LineBreak, Key::Alt('x'), Key::Alt('b')]),
            ("\x1b[200~a\rb\x1b[Cc\x1b[201~d", vec![Key::Paste("a\nb\x1b[Cc".to_owned()), Key::Char('d')]),
            ("\x1b]11;rgb:ffff/8080/0000\x1b\\x", vec![Key::Background([255, 128, 0]), Key::Char('x')]),
            ("\x1b]11;rgb:f/8/0\x07", vec![Key::Background([255, 136, 0])]),
            ("\x1b[?62;4c", vec![Key::Attributes]),
            ("\x1b[13;2u\x1b[27;2;13~\x1b[27;5;9~", vec![Key::LineBreak, Key::LineBreak]),
            // Answers that nobody asked for, or with too many digits, leave no text behind.
            ("\x1b]11;rgb:fffffff/0/0\x07\x1b]11;rgb:/0/0\x07x", vec![Key::Char('x')]),
            ("\x1b]52;c;QUJD\x07\x1bPstuff\x1b\\\x1b[<0;1;1M\x1b[99~y", vec![Key::Char('y')]),
        ] {
            assert_eq!(keys(bytes.as_bytes()), expected, "{bytes:?}");
        }
        assert_eq!(keys(b"\xffa"), [Key::Char('a')]);
    }

    #[test]
    fn a_lone_escape_is_a_key_once_nothing_follows() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(decoder.feed(b"\x1b"), []);
        assert!(decoder.is_waiting());
        assert_eq!(decoder.give_up(), Some(Key::Escape));
        assert!(!decoder.is_waiting());
        assert_eq!(decoder.feed(b"\x1b["), []);
        assert_eq!(decoder.give_up(), None);
        assert_eq!(keys(b"\x1b\x1b[B"), [Key::Escape, Key::Down]);
        assert_eq!(keys(b"\x1b\x1b[A\x1b[1;3A"), [Key::AltUp, Key::AltUp]);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_in_which_pieces_bytes_come(
            text in "([a-z日é\r\t]|\u{1b}\\[[A-D]|\u{1b}\\[200~x\r\u{1b}\\[201~|\u{1b}\\]11;rgb:00/00/00\u{7}){0,12}",
            cut in 0_usize..80,
        ) {
            let bytes = text.as_bytes();
            let (before, after) = bytes.split_at(cut.min(bytes.len()));
            let mut decoder = KeyDecoder::default();
            let mut pieces = decoder.feed(before);
            pieces.extend(decoder.feed(after));
            prop_assert_eq!(pieces, keys(bytes));
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = KeyDecoder::default();
            for key in decoder.feed(&bytes) {
                if let Key::Char(c) = key {
                    prop_assert!(!c.is_control());
                }
            }
            decoder.give_up();
        }
    }
}
