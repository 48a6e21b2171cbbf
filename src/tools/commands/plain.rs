//! Turns the output of a command into plain text: escape sequences and control characters are removed, a progress line
//! that rewrites itself is kept once, invalid UTF-8 becomes U+FFFD.
//!
//! Works on a stream: sequences, characters and lines may be split anywhere, and memory is bounded by one line.

/// A longer line is passed on in pieces; a carriage return then rewrites only the last piece.
const LINE_BYTES: usize = 64 * 1024;

/// The state between two reads.
#[derive(Debug, Default)]
pub struct PlainState {
    /// An incomplete character at the end of the input.
    split: Vec<u8>,
    escape: EscapeState,
    line: String,
    /// True if a carriage return came: the next character restarts the line.
    returned: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    #[default]
    None,
    /// After ESC, and after its intermediate bytes.
    Begun,
    /// `ESC [` …
    Control,
    /// `ESC ]` and similar sequences, which carry a text that ends with BEL or `ESC \`.
    Text,
}

impl PlainState {
    /// Takes the next bytes; appends the completed text to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let bytes = if self.split.is_empty() {
            bytes
        } else {
            joined = [self.split.as_slice(), bytes].concat();
            self.split.clear();
            joined.as_slice()
        };
        let mut rest = bytes.len();
        for chunk in bytes.utf8_chunks() {
            self.text(chunk.valid(), out);
            rest -= chunk.valid().len() + chunk.invalid().len();
            let invalid = chunk.invalid();
            // An error without a length is an incomplete character.
            let unfinished = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if rest == 0 && unfinished {
                self.split.extend_from_slice(invalid);
            } else if !invalid.is_empty() {
                self.take(char::REPLACEMENT_CHARACTER, out);
            }
        }
    }

    /// Passes on the last, incomplete line.
    pub fn finish(&mut self, out: &mut String) {
        if !self.split.is_empty() {
            self.split.clear();
            self.take(char::REPLACEMENT_CHARACTER, out);
        }
        out.push_str(&self.line);
        self.line.clear();
    }

    /// Fast path: nearly all output is lines of ordinary characters, which are passed on unchanged.
    fn text(&mut self, mut rest: &str, out: &mut String) {
        while !rest.is_empty() {
            let ordinary = match self.escape {
                EscapeState::None => rest.bytes().position(is_special).unwrap_or(rest.len()),
                _ => 0,
            };
            if ordinary > 0 {
                self.lines(&rest[..ordinary], out);
                rest = &rest[ordinary..];
            } else if let Some(c) = rest.chars().next() {
                self.take(c, out);
                rest = &rest[c.len_utf8()..];
            }
        }
    }

    /// Text whose only special characters are line feeds.
    fn lines(&mut self, text: &str, out: &mut String) {
        if std::mem::take(&mut self.returned) && !text.starts_with('\n') {
            self.line.clear();
        }
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole > 0 {
            out.push_str(&self.line);
            self.line.clear();
            out.push_str(&text[..whole]);
        }
        self.line.push_str(&text[whole..]);
        if self.line.len() >= LINE_BYTES {
            out.push_str(&self.line);
            self.line.clear();
        }
    }

    fn take(&mut self, c: char, out: &mut String) {
        match (self.escape, c) {
            (EscapeState::None, _) => self.show(c, out),
            // A text ends with ESC \, which is itself an escape that shows nothing.
            (_, '\x1b') => self.escape = EscapeState::Begun,
            (EscapeState::Begun, '[') => self.escape = EscapeState::Control,
            (EscapeState::Begun, ']' | 'P' | 'X' | '^' | '_') => self.escape = EscapeState::Text,
            (EscapeState::Begun, ' '..='/') => {}
            (EscapeState::Begun, _) | (EscapeState::Control, '@'..='~') | (EscapeState::Text, '\x07') => {
                self.escape = EscapeState::None;
            }
            // No sequence spans lines: this one was garbage, and must not swallow the output.
            (_, '\n') => {
                self.escape = EscapeState::None;
                self.show(c, out);
            }
            (EscapeState::Control | EscapeState::Text, _) => {}
        }
    }

    fn show(&mut self, c: char, out: &mut String) {
        match c {
            '\r' => self.returned = true,
            '\x1b' => self.escape = EscapeState::Begun,
            '\u{9b}' => self.escape = EscapeState::Control,
            '\x08' => {
                self.line.pop();
            }
            c if c.is_control() && c != '\t' && c != '\n' => {}
            c => self.lines(c.encode_utf8(&mut [0; 4]), out),
        }
    }
}

/// True for the first byte of what is not shown verbatim: control characters, of which those beyond ASCII begin with
/// C2.
fn is_special(byte: u8) -> bool {
    matches!(byte, 0..0x20 | 0x7f | 0xc2) && !matches!(byte, b'\n' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(pieces: &[&[u8]]) -> String {
        let (mut plain, mut out) = (PlainState::default(), String::new());
        for piece in pieces {
            plain.push(piece, &mut out);
        }
        plain.finish(&mut out);
        out
    }

    #[test]
    fn what_remains_of_terminal_output() {
        let cases: [(&str, &str); 13] = [
            ("plain\n", "plain\n"),
            ("no newline", "no newline"),
            ("\x1b[1;31merror\x1b[0m: x\n", "error: x\n"),
            ("\x1b]0;title\x07after\n", "after\n"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
            ("\x1b(Bset\n", "set\n"),
            ("10%\r50%\r100%\n", "100%\n"),
            ("dos\r\nlines\r\n", "dos\nlines\n"),
            ("kept\r", "kept"),
            ("_\x08a_\x08b\n", "ab\n"),
            ("bell\x07 nul\0 tab\t|\n", "bell nul tab\t|\n"),
            ("\x1b]never ended\nnext\n", "\nnext\n"),
            ("中文 🦀\n", "中文 🦀\n"),
        ];
        for (raw, expected) in cases {
            assert_eq!(plain(&[raw.as_bytes()]), expected, "{raw:?}");
            let bytes: Vec<&[u8]> = raw.as_bytes().chunks(1).collect();
            assert_eq!(plain(&bytes), expected, "{raw:?} byte by byte");
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced() {
        assert_eq!(plain(&[b"caf\xe9 ok\n"]), "caf\u{fffd} ok\n");
        assert_eq!(plain(&[b"cut \xe4\xb8"]), "cut \u{fffd}");
    }

    #[test]
    fn a_line_without_end_is_handed_on() {
        let (mut plain, mut out) = (PlainState::default(), String::new());
        plain.push(&vec![b'x'; LINE_BYTES * 2], &mut out);
        assert_eq!(out.len(), LINE_BYTES * 2);
        assert!(plain.line.is_empty());
    }
}
