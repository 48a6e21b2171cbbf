//! Runs of characters, and tests for random ones.

use crate::base::secrets::ordinary::is_word;

pub(super) fn count_run(bytes: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().position(|byte| !is(byte)).unwrap_or(bytes.len())
}

pub(super) fn is_random(bytes: &[u8]) -> bool {
    const LEAST: usize = 16;
    bytes.split(|byte| !byte.is_ascii_alphanumeric()).any(|run| {
        run.len() >= LEAST && run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic)
    })
}

/// True if digits or capitals stand among its letters as in no word, number or name.
pub(super) fn has_scrambled_word(bytes: &[u8]) -> bool {
    let mut parts = bytes.split(|byte| !byte.is_ascii_alphanumeric()).filter_map(|part| str::from_utf8(part).ok());
    parts.any(|part| part.bytes().any(|byte| byte.is_ascii_alphabetic()) && !is_word(part))
}

pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

pub(super) fn find_bytes(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// True if this may be a part of a name.
pub(super) fn is_in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The length of the name that `bytes` begin with.
pub(super) fn measure_word(bytes: &[u8]) -> usize {
    count_run(bytes, |byte| is_in_word(*byte))
}
