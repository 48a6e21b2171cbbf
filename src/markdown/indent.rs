//! What a line begins with: blanks, and tabs as the blanks that they stand for.

use std::borrow::Cow;

/// A line without the blanks that it begins with, and how many those are.
#[must_use]
pub fn indented(line: &str) -> (&str, usize) {
    let text = line.trim_start_matches(' ');
    (text, line.len() - text.len())
}

/// True of a line of blanks and tabs, and of none.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// What follows the mark of a quote: one blank belongs to it.
#[must_use]
pub fn after_quote(rest: &str) -> &str {
    rest.strip_prefix(' ').unwrap_or(rest)
}

/// What of a line stands within a container that needs so many columns.
#[must_use]
pub fn held(line: &str, indent: usize, needed: usize) -> Option<&str> {
    (indent >= needed || is_blank(line)).then(|| &line[indent.min(needed)..])
}

/// A line whose tabs between and before marks are the blanks that they stand for.
#[must_use]
pub fn without_tabs(line: &str) -> Cow<'_, str> {
    let is_mark = |c: char| matches!(c, ' ' | '\t' | '>' | '-' | '+' | '*' | '.' | ')' | '0'..='9');
    let start = line.find(|c| !is_mark(c)).unwrap_or(line.len());
    if !line[..start].contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len() + 16);
    for c in line[..start].chars() {
        match c {
            '\t' => (0..4 - out.len() % 4).for_each(|_| out.push(' ')),
            c => out.push(c),
        }
    }
    Cow::Owned(out + &line[start..])
}
