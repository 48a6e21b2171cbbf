//! Pictures and PDFs for the model: recognised by their first bytes, stored as the text that a request contains.

#[cfg(feature = "pictures")]
mod scaling;

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

/// The estimated tokens of a picture in a request: providers count by size and detail, usually less.
pub const TOKENS: u64 = 1500;

/// The largest picture that servers accept, in bytes: some count the 5 MiB of its encoding, which is a third larger.
pub const MOST_BYTES: u64 = 5 * 1024 * 1024 / 4 * 3;

/// The largest file that is read as a picture or a PDF, in bytes: the smallest limit of a server is 32 MB for a whole request.
pub const MOST_FILE_BYTES: u64 = 10 * 1024 * 1024;

const PDF: &str = "application/pdf";

/// A picture or a PDF, ready to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// `image/png`
    pub mime: String,
    /// Base64.
    pub data: String,
    /// The pages of a PDF, as far as they can be counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pages: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Image {
    /// Takes a picture that models can be shown. One that servers would refuse is made smaller, if this program can.
    ///
    /// # Errors
    /// The end of a sentence about it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let is_document = recognise_kind(bytes) == Some(PDF);
        if is_document && bytes.len() as u64 > MOST_FILE_BYTES {
            return Err("is larger than 10 MiB: split it, or convert it to text".to_owned());
        }
        let bytes = if is_document { Cow::Borrowed(bytes) } else { shrink_picture(bytes)? };
        if !is_document && bytes.len() as u64 > MOST_BYTES {
            return Err("is larger than 3.75 MiB, the most that servers take: make it smaller".to_owned());
        }
        Self::recognise(&bytes).ok_or_else(|| "is not a PNG, JPEG, WebP or GIF picture, and no PDF".to_owned())
    }

    /// Recognises PNG, JPEG, WebP, GIF and PDF, which models read; `None` for other bytes.
    pub fn recognise(bytes: &[u8]) -> Option<Self> {
        let mime = recognise_kind(bytes)?;
        let pages = if mime == PDF { count_pages(bytes) } else { 0 };
        Some(Self { mime: mime.to_owned(), data: encode_base64(bytes), pages })
    }

    /// True for a PDF.
    pub fn is_document(&self) -> bool {
        self.mime == PDF
    }

    /// The pictures that it counts as: a page of a PDF is read as text and as a picture.
    pub fn count_pictures(&self) -> u64 {
        (2 * self.pages).max(1)
    }

    /// `data:image/png;base64,…`
    pub fn url(&self) -> String {
        format!("data:{};base64,{}", self.mime, self.data)
    }
}

/// The estimated tokens of pictures and PDFs in a request.
pub fn estimate_tokens<'a>(images: impl IntoIterator<Item = &'a Image>) -> u64 {
    images.into_iter().map(Image::count_pictures).sum::<u64>() * TOKENS
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

/// A PNG or JPEG as servers take it.
#[cfg(feature = "pictures")]
fn shrink_picture(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    match recognise_kind(bytes) {
        Some("image/png" | "image/jpeg") => scaling::shrink(bytes, MOST_BYTES),
        _ => Ok(Cow::Borrowed(bytes)),
    }
}

#[cfg(not(feature = "pictures"))]
#[expect(clippy::unnecessary_wraps, reason = "as the other one")]
fn shrink_picture(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    Ok(Cow::Borrowed(bytes))
}

fn recognise_kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some(PDF),
        _ => None,
    }
}

/// Counts the pages of a PDF by the objects of type `/Page`; where they are compressed, by the size of a usual page.
fn count_pages(bytes: &[u8]) -> u64 {
    const USUAL_PAGE: u64 = 50_000;
    let pages = bytes.windows(7).filter(|window| {
        let rest = window.strip_prefix(b"/Page");
        rest.is_some_and(|rest| !rest[0].is_ascii_alphanumeric())
    });
    match pages.count() as u64 {
        0 => (bytes.len() as u64).div_ceil(USUAL_PAGE),
        count => count,
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
            (b"%PDF-1.7", Some("data:application/pdf;base64,JVBERi0xLjc=")),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"<svg/>", None),
            (b"", None),
        ] {
            assert_eq!(Image::recognise(bytes).map(|image| image.url()).as_deref(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn the_pages_of_a_pdf_are_counted() {
        let page = "1 0 obj << /Type /Page /Parent 2 0 R >> endobj ";
        let pages = |text: String| Image::recognise(text.as_bytes()).expect("a PDF").pages;
        assert_eq!(pages(format!("%PDF-1.4 << /Type /Pages /Count 3 >> {}", page.repeat(3))), 3);
        assert_eq!(pages(format!("%PDF-1.7 {}", "x".repeat(120_000))), 3, "its objects are compressed");
        let whole = [b"%PDF-1.4".as_slice(), &vec![0; 4 << 20]].concat();
        assert!(Image::read(&whole).is_ok_and(|pdf| pdf.is_document() && pdf.count_pictures() > 1));
    }
}
