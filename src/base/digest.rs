//! Fingerprints: the SHA-256 of texts, whole and short, and a cheap hash for what only tells whether a text changed; and
//! bytes written in letters that go anywhere, as hexadecimal digits or percent-encoded.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The SHA-256 of texts one after another, in 64 hexadecimal digits.
pub fn hash_sha256<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> String {
    write_hex(&texts.into_iter().fold(Sha256::new(), Sha256::chain_update).finalize())
}

/// Bytes as hexadecimal digits.
pub fn write_hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Encodes a text for an address: every byte but the unreserved characters of RFC 3986 and those of `kept`.
pub fn percent_encode(text: &str, kept: &[u8]) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

/// The text of an encoded one; `None` if its bytes are not UTF-8.
#[cfg(feature = "mcp")]
pub fn percent_decode(encoded: &str) -> Option<String> {
    let mut rest = encoded.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

/// The digits of a digest that are shown.
pub fn shorten_digest(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// A hash of texts one after another for comparisons with earlier ones, where nobody gains by a collision: FNV-1a, far
/// cheaper than SHA-256 and the same in every version.
pub fn hash_cheaply<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let add = |hash: u64, text: T| text.as_ref().bytes().fold(hash, mix);
    format!("{:016x}", texts.into_iter().fold(0xcbf2_9ce4_8422_2325, add))
}
