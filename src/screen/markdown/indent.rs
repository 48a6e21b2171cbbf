//! The indentation of lines, in spaces and tabs.

use std::borrow::Cow;

use crate::base::text;

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
pub fn expand_first_tabs(line: &str) -> Cow<'_, str> {
    let is_mark = |c: char| matches!(c, ' ' | '\t' | '>' | '-' | '+' | '*' | '.' | ')' | '0'..='9');
    expand_tabs(line, line.find(|c| !is_mark(c)).unwrap_or(line.len()))
}

/// Expands the tabs in the first `end` bytes of a line, as an editor shows them.
pub fn expand_tabs(line: &str, end: usize) -> Cow<'_, str> {
    const STOP: usize = 4;
    if !line[..end].contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len() + 16);
    let mut columns = 0;
    for part in line[..end].split_inclusive('\t') {
        let text = part.trim_end_matches('\t');
        out += text;
        columns += text::count_columns(text);
        if text.len() < part.len() {
            let free = STOP - columns % STOP;
            out.extend(std::iter::repeat_n(' ', free));
            columns += free;
        }
    }
    Cow::Owned(out + &line[end..])
}
