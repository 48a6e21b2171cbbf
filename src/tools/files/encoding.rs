//! What a text file is written in: UTF-8, UTF-16 with its mark, or Windows-1252, which holds Latin-1. A file that is changed
//! stays what it was.

use std::borrow::Cow;

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::base::output::ToolError;

/// What a text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEncoding {
    Utf8,
    Utf16Little,
    Utf16Big,
    Windows1252,
}

/// The text of bytes from outside, without their mark; `None` if they are no text. In what is mostly UTF-8 invalid bytes
/// are replaced.
pub fn decode_text(bytes: &[u8]) -> Option<String> {
    let lossy = String::from_utf8_lossy(bytes);
    let replaced = lossy.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
    let is_marked = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let is_other = is_marked || replaced * 2 > lossy.chars().filter(|c| !c.is_ascii()).count();
    let decoded = TextEncoding::decode(bytes).filter(|_| is_other).map(|(text, _)| text);
    let text = decoded.unwrap_or_else(|| lossy.into_owned());
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    // A zero byte is in no text.
    (!text.contains('\0')).then_some(text)
}

impl TextEncoding {
    /// The text of a file, with its mark if it has one, and what it is written in; `None` if it is no text.
    pub fn decode(bytes: &[u8]) -> Option<(String, Self)> {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return Some((text.to_owned(), Self::Utf8));
        }
        let (encoding, from) = match bytes {
            [0xff, 0xfe, ..] => (Self::Utf16Little, UTF_16LE),
            [0xfe, 0xff, ..] => (Self::Utf16Big, UTF_16BE),
            _ if bytes.iter().all(|byte| is_of_text(*byte)) => (Self::Windows1252, WINDOWS_1252),
            _ => return None,
        };
        let text = from.decode_without_bom_handling_and_without_replacement(bytes)?;
        Some((text.into_owned(), encoding))
    }

    /// The bytes of a file in UTF-8, and what it is written in; as they are if they are no text.
    pub fn transcode(bytes: &[u8]) -> (Cow<'_, [u8]>, Self) {
        match std::str::from_utf8(bytes).is_err().then(|| Self::decode(bytes)).flatten() {
            Some((text, encoding)) => (Cow::Owned(text.into_bytes()), encoding),
            None => (Cow::Borrowed(bytes), Self::Utf8),
        }
    }

    /// The bytes of the text of a file, which errors name by its path.
    ///
    /// # Errors
    /// This encoding lacks a character of it.
    pub fn encode(self, text: &str, path: &str) -> Result<Vec<u8>, ToolError> {
        match self {
            Self::Utf8 => Ok(text.as_bytes().to_vec()),
            Self::Utf16Little => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Big => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Self::Windows1252 => {
                let lacks = |c: &char| WINDOWS_1252.encode(c.encode_utf8(&mut [0; 4])).2;
                match text.chars().find(lacks) {
                    Some(lacking) => {
                        let what = self.name();
                        let why = format!("{path} is written in {what}, which has no `{lacking}`: leave it out");
                        Err(ToolError::parameter(why))
                    }
                    None => Ok(WINDOWS_1252.encode(text).0.into_owned()),
                }
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Little | Self::Utf16Big => "UTF-16",
            Self::Windows1252 => "Windows-1252",
        }
    }
}

/// True for bytes that a text in Windows-1252 may have: none that control a device or that it does not define.
fn is_of_text(byte: u8) -> bool {
    !matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f | 0x81 | 0x8d | 0x8f | 0x90 | 0x9d)
}

#[cfg(test)]
mod tests {
    use super::TextEncoding::{self, Utf8, Utf16Big, Utf16Little, Windows1252};

    #[test]
    fn a_text_comes_back_as_it_was_written() {
        for (bytes, text, encoding) in [
            ("é 中".as_bytes(), "é 中", Utf8),
            (b"\xff\xfeh\0i\0", "\u{feff}hi", Utf16Little),
            (b"\xfe\xff\x4e\x2d", "\u{feff}中", Utf16Big),
            (b"caf\xe9 \x80\n", "café €\n", Windows1252),
        ] {
            assert_eq!(TextEncoding::decode(bytes), Some((text.to_owned(), encoding)), "{bytes:?}");
            assert_eq!(encoding.encode(text, "f").as_deref(), Ok(bytes));
        }
        for bytes in [&b"\xff\xfeh"[..], b"caf\xe9\0", b"\x81\xe9"] {
            assert_eq!(TextEncoding::decode(bytes), None, "{bytes:?}");
        }
        let refused = Windows1252.encode("a中", "f").expect_err("it lacks it");
        assert_eq!(refused.message, "f is written in Windows-1252, which has no `中`: leave it out");
    }
}
