//! Checks that every block is closed, and the length of its chains, neither of which the parser does; and writes comments
//! so that it trims what Go trims.

use std::borrow::Cow;

use super::GoProblem;

/// The most `else if` and `else with` of a template. The parser recurses for each.
const MOST_CHAINED: usize = 100;

/// An open block: its word, its position, and true if its `else` was seen.
struct OpenGoBlock<'s> {
    word: &'s str,
    at: usize,
    had_else: bool,
}

/// Refuses text that the parser would misread.
pub(super) fn check_tags(source: &str) -> Result<(), GoProblem> {
    let mut open: Vec<OpenGoBlock<'_>> = Vec::new();
    let mut chained = 0;
    for (at, inside) in find_tags(source) {
        let wrong = |message: String| Err(GoProblem { at, message });
        let mut words = inside.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let starts_with_word = inside.starts_with(char::is_alphabetic);
        let word = words.next().filter(|_| starts_with_word).unwrap_or_default();
        match word {
            "define" if !open.is_empty() => {
                return wrong("`{{define}}` is allowed only at the top level".to_owned());
            }
            "if" | "range" | "with" | "define" | "block" => open.push(OpenGoBlock { word, at, had_else: false }),
            "end" if open.pop().is_none() => return wrong("this `{{end}}` closes nothing".to_owned()),
            "else" => {
                let Some(block) = open.last_mut().filter(|block| matches!(block.word, "if" | "range" | "with"))
                else {
                    return wrong("`{{else}}` belongs into `{{if}}`, `{{range}}` or `{{with}}`".to_owned());
                };
                if block.had_else {
                    return wrong(format!("`{{{{{}}}}}` has an `{{{{else}}}}` already", block.word));
                }
                let goes_on = words.next();
                block.had_else = goes_on.is_none();
                chained += usize::from(goes_on.is_some());
                if chained > MOST_CHAINED {
                    return wrong(format!("a template has at most {MOST_CHAINED} `{{{{else if}}}}`"));
                }
            }
            "break" | "continue" if !open.iter().any(|block| block.word == "range") => {
                return wrong(format!("`{{{{{word}}}}}` belongs into `{{{{range}}}}`"));
            }
            _ => {}
        }
    }
    let Some(OpenGoBlock { word, at, .. }) = open.pop() else { return Ok(()) };
    Err(GoProblem { at, message: format!("no `{{{{end}}}}` closes this `{{{{{word}}}}}`") })
}

/// Writes an empty text, as long as the comment, for each comment that trims the spaces before it alone: the parser would
/// trim those after it as well. Positions stay as they are.
pub(super) fn mend_comments(source: &str) -> Cow<'_, str> {
    let mut mended = Cow::Borrowed(source);
    let mut at = 0;
    while let Some(open) = source[at..].find("{{").map(|open| at + open) {
        let start = open + 2;
        let inside = source[start..].trim_start_matches('-').trim_start();
        if !inside.starts_with("/*") {
            at = find_end(source, start);
            continue;
        }
        let begin = source.len() - inside.len();
        let Some(end) = inside.find("*/").map(|end| begin + end + 2) else { break };
        if source[start..].starts_with('-') && source[end..].trim_start().starts_with("}}") {
            let blank = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
            let blanks: String = source[begin + 2..end].bytes().map(blank).collect();
            mended.to_mut().replace_range(begin..end, &format!("\"\"{blanks}"));
        }
        at = end;
    }
    mended
}

/// The positions of all `{{`, with the text after each, without the marks that trim spaces. Comments are left out.
fn find_tags(source: &str) -> Vec<(usize, &str)> {
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(open) = source[at..].find("{{").map(|open| at + open) {
        let start = match source[open + 2..].strip_prefix('-') {
            Some(rest) if rest.starts_with(char::is_whitespace) => open + 3,
            _ => open + 2,
        };
        let rest = &source[start..];
        let inside = rest.trim_start();
        if inside.starts_with("/*") {
            let Some(end) = rest.find("*/") else { break };
            at = start + end + 2;
            continue;
        }
        let end = find_end(source, start);
        tags.push((open, source[start..end].trim_start()));
        at = end;
    }
    tags
}

/// The position of the `}}` that ends the tag whose content begins at `start`, skipping texts.
fn find_end(source: &str, start: usize) -> usize {
    let bytes = source.as_bytes();
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'}' if bytes.get(at + 1) == Some(&b'}') => return at,
            quote @ (b'"' | b'`' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' && quote != b'`' { 2 } else { 1 };
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    bytes.len()
}
