//! Text that came from outside, made fit to be shown, cut or compared.

use std::borrow::Cow;
use std::fmt::Write;

/// The longest start of `text` that has at most `bytes` bytes and ends between characters.
#[must_use]
pub fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The longest end of `text` that has at most `bytes` bytes and begins between characters.
#[must_use]
pub fn tail(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// `text` with whatever could move a cursor, colour a screen or reorder a line made visible: control characters as
/// their pictures (`␛`), bidirectional controls and line separators as `<U+202E>`. Line feeds and tabs stay.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            // The Unicode control pictures mirror C0 from U+2400 on.
            '\0'..='\x1f' if is_unsafe(c) => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
            '\x7f' => out.push('\u{2421}'),
            c if is_unsafe(c) => {
                let _ = write!(out, "<U+{:04X}>", c as u32);
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{061c}'
        | '\u{2028}'
        | '\u{2029}' => true,
        c => c.is_control(),
    }
}

/// `text` on one line and at most `width` characters, for lists and progress.
#[must_use]
pub fn one_line(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if count > 0 {
            out.push(' ');
            count += 1;
        }
        for c in word.chars() {
            if count + 1 >= width {
                out.push('…');
                return visible(&out).into_owned();
            }
            out.push(c);
            count += 1;
        }
    }
    visible(&out).into_owned()
}

/// The candidates nearest to `name`, best first, at most three; none when nothing is near.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const NEAR: f64 = 0.7;
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}
