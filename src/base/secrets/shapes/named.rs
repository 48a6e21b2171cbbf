//! Keys that only the text before them gives away: in headers, variables and `.netrc`; and those of parts that look
//! like nothing else.

use std::ops::Range;

use super::bytes::{count_run, has_scrambled_word, is_base64, is_in_word, is_random, measure_word};

/// The token after `Bearer `.
pub(super) fn token_of_bearer(after: &[u8]) -> Option<Range<usize>> {
    const SHORTEST: usize = 16;
    let length = count_run(after, |byte| is_in_word(*byte) || is_base64(*byte) || matches!(byte, b'.' | b'~'));
    let token = &after[..length];
    (length >= SHORTEST && (is_random(token) || has_scrambled_word(token))).then_some(0..length)
}

/// The credentials after `Basic `: base 64 of `user:password`.
pub(super) fn pair_of_basic(after: &[u8]) -> Option<Range<usize>> {
    const SHORTEST: usize = 8;
    let length = count_run(after, |byte| is_base64(*byte));
    let pair = decode_base64(&after[..length])?;
    let is_text = pair.iter().all(|byte| !byte.is_ascii_control());
    (length >= SHORTEST && is_text && pair.contains(&b':')).then_some(0..length)
}

/// The bytes that a whole text of base 64 stands for.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let end = count_run(text, |byte| *byte != b'=');
    if !text.len().is_multiple_of(4) || text.len() - end > 2 {
        return None;
    }
    let (mut out, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for byte in &text[..end] {
        bits = bits << 6 | u32::try_from(ALPHABET.iter().position(|known| known == byte)?).ok()?;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held & 0xff) as u8);
        }
    }
    Some(out)
}

/// The value after `API_TOKEN=` and its like. `before` is the text before the word that tells.
pub(super) fn value_of_variable(before: &[u8], after: &[u8]) -> Option<Range<usize>> {
    const SHORTEST: usize = 8;
    let is_of_name = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let name = before.iter().rev().take_while(|byte| is_of_name(byte)).count();
    if before[..before.len() - name].last().is_some_and(|byte| is_in_word(*byte) || *byte == b'.') {
        return None;
    }
    let start = usize::from(after.first().is_some_and(|byte| matches!(byte, b'"' | b'\'')));
    let is_of_value = |byte: &u8| {
        is_in_word(*byte) || is_base64(*byte) || matches!(byte, b'.' | b'~' | b'!' | b'@' | b'#' | b'%')
    };
    let length = count_run(&after[start..], is_of_value);
    let (value, next) = after[start..].split_at(length);
    let is_call = next.first().is_some_and(|byte| matches!(byte, b'(' | b'[' | b'{' | b'$'));
    let has_letter = value.iter().any(u8::is_ascii_alphabetic);
    (length >= SHORTEST && !is_call && has_letter && has_scrambled_word(value)).then_some(start..start + length)
}

/// The password after `machine `: `HOST login USER password SECRET`.
pub(super) fn password_of_netrc(after: &[u8]) -> Option<Range<usize>> {
    const SHORTEST: usize = 3;
    let mut at = 0;
    for expected in [None, Some(&b"login"[..]), None, Some(b"password")] {
        let word = count_run(&after[at..], |byte| !byte.is_ascii_whitespace());
        let is_fit = expected.is_none_or(|expected| &after[at..at + word] == expected);
        let gap = count_run(&after[at + word..], u8::is_ascii_whitespace);
        if word == 0 || gap == 0 || !is_fit {
            return None;
        }
        at += word + gap;
    }
    let length = count_run(&after[at..], |byte| !byte.is_ascii_whitespace());
    let stands_in = after.get(at).is_some_and(|byte| matches!(byte, b'$' | b'<' | b'{' | b'*' | b'%'));
    (length >= SHORTEST && !stands_in).then_some(at..at + length)
}

/// The rest of a token for Discord: the id of the bot in base 64, the time, the signature.
pub(super) fn rest_of_bot_token(after: &[u8]) -> Option<usize> {
    let mut length = 0;
    for (opening, sizes) in [(&b""[..], 22..=26), (b".", 6..=6), (b".", 27..=40)] {
        let part = after[length..].strip_prefix(opening)?;
        let size = measure_word(part);
        if !sizes.contains(&size) {
            return None;
        }
        length += opening.len() + size;
    }
    has_scrambled_word(&after[..length]).then_some(length)
}
