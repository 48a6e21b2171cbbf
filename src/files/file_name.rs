//! Names of files as text that can be read back: a name that is plain text is written as it is, any other in double
//! quotes, with C's escapes (`"a\nb\xff"`).
//!
//! Names are quoted if they have bytes that are not UTF-8, or characters that could move a cursor, reorder a line or
//! begin another one, or if they begin with a quote. Every escape stands for a byte, so each name has one spelling.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::base::text;

/// Escapes with a letter.
const LETTERS: [(u8, u8); 5] = [(b'\n', b'n'), (b'\t', b't'), (b'\r', b'r'), (b'\\', b'\\'), (b'"', b'"')];

/// `path` as it is shown: one word of a list, on one line, that [`unquote`] can read back.
pub fn quote(path: &Path) -> Cow<'_, str> {
    if let Some(plain) = path.to_str().filter(|name| is_plain(name)) {
        return Cow::Borrowed(plain);
    }
    let mut out = "\"".to_owned();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            match LETTERS.iter().find(|(plain, _)| bytes == [*plain]) {
                Some((_, letter)) => out.extend(['\\', char::from(*letter)]),
                None if text::is_safe(c) => out.push(c),
                None => escape_bytes(&mut out, bytes),
            }
        }
        escape_bytes(&mut out, chunk.invalid());
    }
    out.push('"');
    Cow::Owned(out)
}

/// The path that `text` stands for: text without valid quotes is a path as it is.
pub fn unquote(text: &str) -> Cow<'_, Path> {
    let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match quoted.and_then(unescape_bytes) {
        Some(bytes) => Cow::Owned(from_bytes(bytes)),
        None => Cow::Borrowed(Path::new(text)),
    }
}

fn is_plain(name: &str) -> bool {
    !name.starts_with('"') && name.chars().all(|c| text::is_safe(c) && !matches!(c, '\n' | '\t'))
}

fn escape_bytes(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(out, "\\x{byte:02x}");
    }
}

/// The bytes between the quotes; `None` if a quote or an escape is invalid. Octal escapes are read too, as git writes
/// them.
fn unescape_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (*first, rest) {
            (b'"', _) | (b'\\', []) => return None,
            (b'\\', [b'x', digits @ ..]) => {
                bytes.push(parse_number(digits.get(..2)?, 16)?);
                rest = &digits[2..];
            }
            (b'\\', [b'0'..=b'7', ..]) => {
                bytes.push(parse_number(rest.get(..3)?, 8)?);
                rest = &rest[3..];
            }
            (b'\\', [letter, after @ ..]) => {
                bytes.push(LETTERS.iter().find(|(_, other)| other == letter)?.0);
                rest = after;
            }
            (byte, _) => bytes.push(byte),
        }
    }
    Some(bytes)
}

fn parse_number(digits: &[u8], base: u32) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u8::from_str_radix(digits, base).ok()
}

#[cfg(unix)]
fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use proptest::prelude::*;

    use super::*;

    fn make_path(bytes: &[u8]) -> &Path {
        Path::new(OsStr::from_bytes(bytes))
    }

    #[test]
    fn names_stand_as_they_are_where_that_is_safe() {
        for (name, shown) in [
            (&b"src/main.rs"[..], "src/main.rs"),
            ("日本 語.txt".as_bytes(), "日本 語.txt"),
            (b"a\\nb", "a\\nb"),
            (b"say \"hi\"", "say \"hi\""),
            (b"a\nb", r#""a\nb""#),
            (b"a\xffb\\", r#""a\xffb\\""#),
            (b"\x1b[2J\x7f", r#""\x1b[2J\x7f""#),
            ("\u{202e}x\u{9b}".as_bytes(), r#""\xe2\x80\xaex\xc2\x9b""#),
            (b"\"a\"", r#""\"a\"""#),
            (b"\"", r#""\"""#),
        ] {
            assert_eq!(quote(make_path(name)), shown);
            assert_eq!(unquote(shown), make_path(name));
        }
    }

    #[test]
    fn what_is_not_quoted_rightly_is_a_path_as_it_is() {
        for text in ["\"", "\"a", "a\"", r#""a"b""#, r#""a\q""#, r#""a\x4""#, r#""a\x+4""#, r#""a\""#, r#""\400""#]
        {
            assert_eq!(unquote(text), Path::new(text));
        }
        assert_eq!(unquote(r#""a b""#), Path::new("a b"));
        assert_eq!(unquote(r#""\303\251""#), Path::new("é"), "as git writes it");
    }

    proptest! {
        #[test]
        fn every_name_reads_back(bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            proptest::collection::vec(proptest::sample::select(&b"\"\\xna/ \n\xff\xe2\x80\xae01"[..]), 0..12),
        ]) {
            let shown = quote(make_path(&bytes)).into_owned();
            prop_assert_eq!(unquote(&shown).into_owned(), make_path(&bytes));
            prop_assert_eq!(text::make_visible(&shown), shown.as_str());
            prop_assert!(!shown.contains(['\n', '\t']));
        }
    }
}
