//! Pictures for the model: recognised by their first bytes, stored as the text that a request contains.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

/// The estimated tokens of a picture in a request: providers count by size and detail, usually less.
pub const TOKENS: u64 = 1500;

/// The largest picture that servers accept, in bytes: some count the 5 MiB of its encoding, which is a third larger.
pub const MOST_BYTES: u64 = 5 * 1024 * 1024 / 4 * 3;

/// A picture, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// `image/png`
    pub mime: String,
    /// Base64.
    pub data: String,
}

impl Image {
    /// Takes a picture that models can be shown.
    ///
    /// # Errors
    /// The end of a sentence about it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > MOST_BYTES {
            return Err("is larger than 3.75 MiB, the most that servers take: make it smaller".to_owned());
        }
        Self::recognise(bytes).ok_or_else(|| "is not a PNG, JPEG, WebP or GIF picture".to_owned())
    }

    /// Recognises PNG, JPEG, WebP and GIF, which models read; `None` for other bytes.
    pub fn recognise(bytes: &[u8]) -> Option<Self> {
        Some(Self { mime: recognise_kind(bytes)?.to_owned(), data: encode_base64(bytes) })
    }

    /// `data:image/png;base64,…`
    pub fn url(&self) -> String {
        format!("data:{};base64,{}", self.mime, self.data)
    }
}

/// Bytes as text, in the alphabet that `data:` URLs and terminals read.
pub fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Bytes as text, in the alphabet for addresses and without padding (RFC 4648, section 5).
pub fn encode_base64_url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of base64; `None` for another text.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.trim()).ok()
}

/// The bytes in a `data:…;base64,…` URL; `None` for another text.
pub fn decode_data_url(url: &str) -> Option<Vec<u8>> {
    let (about, data) = url.strip_prefix("data:")?.split_once(',')?;
    about.strip_suffix(";base64")?;
    decode_base64(data)
}

fn recognise_kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_first_bytes() {
        for (bytes, expected) in [
            (b"\x89PNG\r\n\x1a\n".as_slice(), Some("data:image/png;base64,iVBORw0KGgo=")),
            (b"\xff\xd8\xff\xe0", Some("data:image/jpeg;base64,/9j/4A==")),
            (b"RIFF\0\0\0\0WEBP", Some("data:image/webp;base64,UklGRgAAAABXRUJQ")),
            (b"GIF89a", Some("data:image/gif;base64,R0lGODlh")),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"<svg/>", None),
            (b"", None),
        ] {
            assert_eq!(Image::recognise(bytes).map(|image| image.url()).as_deref(), expected, "{bytes:?}");
        }
    }
}
