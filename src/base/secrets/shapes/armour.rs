//! Private keys in armour: their lines may be numbered, quoted or escaped, and either end may be missing.

use std::ops::Range;

use super::bytes::{count_run, find_bytes, is_base64};

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
/// A line of base 64 is longer than any word.
const LINE: usize = 32;
/// The most bytes that are searched for the end of a key.
const MOST: usize = 32 * 1024;

/// A private key. Its lines may be numbered, quoted or escaped, and its end may be missing.
pub(super) fn match_armour(after: &[u8]) -> Option<usize> {
    let body = measure_label(after)?;
    let window = &after[body..after.len().min(body + MOST)];
    let has_material = |bytes: &[u8]| bytes.split(|byte| !is_base64(*byte)).any(|word| word.len() >= LINE);
    if let Some(end) = find_bytes(window, END).filter(|end| has_material(&window[..*end])) {
        let closing = body + end + END.len();
        return Some(closing + measure_label(&after[closing..]).unwrap_or(0));
    }
    // It is cut off: it ends with the lines of base 64.
    let lines = &window[..count_run(window, |byte| is_armoured(*byte))];
    split_words(lines).filter(|word| word.len() >= LINE).last().map(|word| body + word.end)
}

/// The length of `… PRIVATE KEY-----`.
pub(super) fn measure_label(after: &[u8]) -> Option<usize> {
    const LABEL: &[u8] = b"PRIVATE KEY";
    const LONGEST: usize = 40;
    const DASHES: &[u8] = b"-----";
    let end = find_bytes(&after[..after.len().min(LONGEST)], DASHES)?;
    find_bytes(&after[..end], LABEL)?;
    Some(end + DASHES.len())
}

/// The beginning of the lines of base 64 at the end of `before`.
pub(super) fn material_before(before: &[u8]) -> Option<usize> {
    let from = before.len().saturating_sub(MOST);
    let start = before[from..].iter().rposition(|byte| !is_armoured(*byte)).map_or(from, |at| from + at + 1);
    split_words(&before[start..]).find(|word| word.len() >= LINE).map(|word| start + word.start)
}

fn split_words(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += count_run(&bytes[at..], |byte| !is_base64(*byte));
        let start = at;
        at += count_run(&bytes[at..], |byte| is_base64(*byte));
        (at > start).then_some(start..at)
    })
}

fn is_armoured(byte: u8) -> bool {
    is_base64(byte) || byte.is_ascii_whitespace() || byte == b'\\'
}

/// The continuation of a private key in a text that is read line by line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::base::secrets) enum Goes {
    /// The key, or the text that looked like one, ends at this byte.
    Until(usize),
    /// All of the text belongs to it; true if a line of base 64 has come by now.
    On(bool),
}

/// The beginning of a private key that is open at the end of `text`, and its state there.
pub(in crate::base::secrets) fn open_key(text: &str) -> Option<(usize, bool)> {
    let begin = text.rfind("-----BEGIN ")?;
    let after = &text[begin + BEGIN.len()..];
    let body = &after[measure_label(after.as_bytes())?..];
    match follow_key(body, false) {
        Goes::On(seen) => Some((begin, seen)),
        Goes::Until(_) => None,
    }
}

/// Follows a private key that has begun before `text`; `seen` is true if a line of base 64 has come.
pub(in crate::base::secrets) fn follow_key(text: &str, mut seen: bool) -> Goes {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bytes = line.as_bytes();
        if let Some(end) = find_bytes(bytes, END)
            && let Some(length) = measure_label(&bytes[end + END.len()..])
        {
            return Goes::Until(at + end + END.len() + length);
        }
        // A number may precede it.
        let word = line.trim().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let is_line = word.bytes().all(is_base64) && (seen || word.is_empty() || word.len() >= LINE);
        if !is_line && !["Proc-Type:", "DEK-Info:"].iter().any(|header| word.starts_with(header)) {
            return Goes::Until(at);
        }
        seen |= word.len() >= LINE;
        at += line.len();
    }
    Goes::On(seen)
}
