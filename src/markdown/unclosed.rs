//! Text that stops in the middle: what it has opened is closed, so that it looks as it will when the rest is there.

/// Closes what the text of a paragraph has opened. It is drawn once, so a guess will do.
pub fn close(text: &mut String) {
    text.truncate(text.trim_end().len());
    if text.rsplit_once("](").is_some_and(|(_, address)| !address.contains([')', ' ', '\n'])) {
        text.push(')');
    }
    let mut open: Vec<&str> = Vec::new();
    let (mut at, mut before) = (0, ' ');
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let run = rest.len() - rest.trim_start_matches(c).len();
        let is_last = run == rest.len();
        match c {
            '\\' => at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            // What it would be a mark of has not come.
            '*' | '_' | '~' | '`' if is_last && before.is_whitespace() => {
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
            '*' | '_' | '~' => {
                let after = rest[run..].chars().next().unwrap_or(' ');
                read_marks(&mut open, c, run, (before, after));
                at += run;
            }
            _ => at += c.len_utf8(),
        }
        before = c;
    }
    text.extend(open.into_iter().rev());
}

/// Where the code ends that so many backticks opened: behind as many.
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

/// Reads a run of one mark: each part of it closes what the same one has opened, or opens something.
fn read_marks(open: &mut Vec<&'static str>, c: char, run: usize, (before, after): (char, char)) {
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
