//! The secret of an AWS key: 40 characters of base 64, recognised only by the text before it.

use std::ops::Range;

use super::bytes::{count_run, is_base64, is_in_word};

const LENGTH: usize = 40;

/// The secret after its name: `aws_secret_access_key = …`, `"SecretAccessKey": "…"`.
pub(super) fn secret_after_name(after: &[u8]) -> Option<Range<usize>> {
    const MOST: usize = 16;
    let between =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'=' | b':' | b'"' | b'\'' | b'>' | b'\\');
    let start = count_run(&after[..after.len().min(MOST)], between);
    secret_at(after, start)
}

/// The secret after the id of its key: on the same line, or on one of the next.
pub(super) fn secret_after_id(after: &[u8]) -> Option<Range<usize>> {
    const MOST: usize = 96;
    let window = after.len().min(MOST);
    let mut at = 0;
    while at < window {
        if let Some(secret) = secret_at(after, at) {
            return Some(secret);
        }
        // Past the word, then to the next.
        at += count_run(&after[at..], |byte| is_base64(*byte) || is_in_word(*byte));
        at += count_run(&after[at..], |byte| !is_base64(*byte));
    }
    None
}

fn secret_at(after: &[u8], start: usize) -> Option<Range<usize>> {
    let word = after.get(start..)?;
    let is_of_secret = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let length = count_run(word, is_of_secret);
    let is_bounded = !word.get(length).is_some_and(|byte| is_in_word(*byte) || *byte == b'.');
    let secret = &word[..length];
    let is_mixed = [u8::is_ascii_digit, u8::is_ascii_uppercase, u8::is_ascii_lowercase]
        .iter()
        .all(|is_of_kind| secret.iter().any(is_of_kind));
    (length == LENGTH && is_bounded && is_mixed).then_some(start..start + LENGTH)
}
