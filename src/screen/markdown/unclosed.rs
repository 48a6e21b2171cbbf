//! Closes the marks of unfinished text, so it already looks as it will once the rest arrives.

/// Closes the open marks of a paragraph. The result is drawn only until more text arrives, so a guess is enough.
pub fn close_marks(text: &mut String) {
    text.truncate(text.trim_end().len());
    if text.rsplit_once("](").is_some_and(|(_, address)| !address.contains([')', ' ', '\n'])) {
        text.push(')');
    }
    let mut open: Vec<&str> = Vec::new();
    let (mut at, mut before) = (0, ' ');
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if !matches!(c, '\\' | '*' | '_' | '~' | '`') {
            (at, before) = (at + c.len_utf8(), c);
            continue;
        }
        let run = rest.len() - rest.trim_start_matches(c).len();
        match c {
            '\\' => at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            // The text after this mark has not arrived.
            _ if run == rest.len() && before.is_whitespace() => {
                text.truncate(text[..at].trim_end().len());
                break;
            }
            '`' => match code_end(&rest[run..], run) {
                Some(end) => at += run + end,
                None => {
                    let fence = "`".repeat(run);
                    *text += &fence;
                    break;
                }
            },
            _ => {
                let after = rest[run..].chars().next().unwrap_or(' ');
                read_marks(&mut open, c, run, before, after);
                at += run;
            }
        }
        before = c;
    }
    text.extend(open.into_iter().rev());
}

/// The end of inline code that was opened by this many backticks: after as many again.
fn code_end(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = text[at..].find('`') {
        let rest = &text[at + start..];
        let run = rest.len() - rest.trim_start_matches('`').len();
        at += start + run;
        if run == ticks {
            return Some(at);
        }
    }
    None
}

/// Reads a run of one mark: each part of it closes an open mark of the same kind, or opens one.
fn read_marks(open: &mut Vec<&'static str>, c: char, run: usize, before: char, after: char) {
    let names: &[&str] = match c {
        '*' => &["**", "*"],
        '_' => &["__", "_"],
        _ => &["~~"],
    };
    let may_close = !before.is_whitespace();
    let in_word = c == '_' && before.is_alphanumeric();
    let may_open = !after.is_whitespace() && !in_word;
    let mut left = run;
    while let Some(name) = names.iter().find(|name| name.len() <= left) {
        match open.iter().rposition(|mark| mark == name) {
            Some(at) if may_close => open.truncate(at),
            _ if may_open => open.push(name),
            _ => {}
        }
        left -= name.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_closed_innermost_first() {
        for (text, expected) in [
            ("plain", "plain"),
            ("**bold", "**bold**"),
            ("**bold and *both", "**bold and *both***"),
            ("***both", "***both***"),
            ("**done** and `code", "**done** and `code`"),
            ("``a ` b", "``a ` b``"),
            ("~~gone ", "~~gone~~"),
            ("a **", "a"),
            ("a `", "a"),
            ("2 * 3", "2 * 3"),
            ("snake_case", "snake_case"),
            ("\\*not", "\\*not"),
            ("`*` and *a", "`*` and *a*"),
            ("see [this](http://a.b/c", "see [this](http://a.b/c)"),
            ("see [this](http://a.b) (or", "see [this](http://a.b) (or"),
            ("", ""),
        ] {
            let mut closed = text.to_owned();
            close_marks(&mut closed);
            assert_eq!(closed, expected, "{text:?}");
        }
    }
}
