//! The indentation of lines, in spaces and tabs.

use std::borrow::Cow;

/// Splits off the spaces at the start of a line. Returns the rest and the number of spaces.
pub fn strip_indent(line: &str) -> (&str, usize) {
    let text = line.trim_start_matches(' ');
    (text, line.len() - text.len())
}

/// True for an empty line, or one of spaces and tabs.
pub fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// The text after the mark of a quote, to which one space belongs.
pub fn after_quote(rest: &str) -> &str {
    rest.strip_prefix(' ').unwrap_or(rest)
}

/// The part of a line inside a container that is indented by `needed` columns; `None` if the line is outside.
pub fn strip_container(line: &str, indent: usize, needed: usize) -> Option<&str> {
    (indent >= needed || is_blank(line)).then(|| &line[indent.min(needed)..])
}

/// Expands the tabs before and between the marks at the start of a line.
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
