//! The words of a line: where they end, and their value after the shell's expansion.
//!
//! Only constructs that every shell reads alike are taken literally. A word that the shell would expand is
//! unknown; one whose expansion could run or change something makes the whole line doubtful.

use super::Arg;

/// A word taken apart.
pub(super) struct Word {
    pub arg: Arg,
    /// The command lines of its substitutions.
    pub substitutions: Vec<String>,
    /// Its expansion does more than a lookup, or is not understood.
    pub is_doubtful: bool,
}

/// Characters without a meaning to any shell outside quotes. (`=` has one at the beginning of a command.)
pub(in super::super) fn is_plain(c: char) -> bool {
    // Some shells take these bytes for blanks wherever they stand.
    const TAKEN_FOR_BLANKS: [u8; 2] = [0x85, 0xa0];
    let letter = c.is_alphanumeric() && !c.encode_utf8(&mut [0; 4]).bytes().any(|b| TAKEN_FOR_BLANKS.contains(&b));
    letter || "-_./,:=+@%".contains(c)
}

/// A word after expansion.
pub(super) fn word(raw: &str) -> Word {
    // The text that `find` and `xargs` replace.
    const PLACEHOLDER: &str = "{}";
    if raw == PLACEHOLDER {
        return Word { arg: Arg::Literal(raw.to_owned()), substitutions: Vec::new(), is_doubtful: false };
    }
    let mut reader = Reader::new(raw);
    reader.read();
    reader.end()
}

/// The body of a here-document whose delimiter is not quoted, after expansion.
pub(super) fn body(text: &str) -> Word {
    let mut reader = Reader::new(text);
    reader.read_body();
    reader.end()
}

struct Reader<'t> {
    rest: &'t str,
    text: String,
    is_known: bool,
    found: Vec<String>,
    is_doubtful: bool,
}

impl<'t> Reader<'t> {
    fn new(rest: &'t str) -> Self {
        Self { rest, text: String::new(), is_known: true, found: Vec::new(), is_doubtful: false }
    }

    fn end(self) -> Word {
        Word {
            arg: if self.is_known { Arg::Literal(self.text) } else { Arg::Unknown },
            substitutions: self.found,
            is_doubtful: self.is_doubtful,
        }
    }

    fn read_body(&mut self) {
        while let Some(c) = self.take() {
            match c {
                '$' if self.rest.is_empty()
                    || self.rest.starts_with(|c: char| c.is_whitespace() || c == '"' || c == '\'') =>
                {
                    self.text.push(c);
                }
                '$' => self.dollar(),
                '`' => self.backquoted(),
                '\\' => drop(self.take()),
                c => self.text.push(c),
            }
        }
    }

    fn read(&mut self) {
        while let Some(c) = self.take() {
            match c {
                '\'' => match self.rest.split_once('\'') {
                    Some((inner, rest)) => {
                        self.text.push_str(inner);
                        self.rest = rest;
                    }
                    None => return self.give_up(),
                },
                '"' => self.double_quoted(),
                '\\' => match self.take() {
                    Some('\n') | None => return self.give_up(),
                    Some(c) => self.text.push(c),
                },
                '$' => self.dollar(),
                '`' => self.backquoted(),
                '*' | '?' | '[' | ']' | '{' | '}' | '~' | '!' | '^' => {
                    self.text.push(c);
                    // Not expanded wherever it stands, but that depends on the shell.
                    self.is_known = false;
                }
                // `#` begins a comment only at the beginning of a word, and comments are not words.
                '#' => self.text.push(c),
                c if is_plain(c) => self.text.push(c),
                _ => return self.give_up(),
            }
        }
    }

    fn double_quoted(&mut self) {
        while let Some(c) = self.take() {
            match c {
                '"' => return,
                '$' => self.dollar(),
                '`' => self.backquoted(),
                '\\' => match self.take() {
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.text.push(c),
                    Some('\n') | None => return self.give_up(),
                    Some(c) => self.text.extend(['\\', c]),
                },
                c => self.text.push(c),
            }
        }
        self.give_up();
    }

    /// Reads what follows a `$`.
    fn dollar(&mut self) {
        self.is_known = false;
        let name_end =
            |text: &str| text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
        match self.rest.chars().next() {
            Some('(') if self.rest.starts_with("((") => self.give_up(),
            Some('(') => match closing(&self.rest[1..]) {
                Some(end) => {
                    self.found.push(self.rest[1..=end].to_owned());
                    self.rest = &self.rest[end + 2..];
                }
                None => self.give_up(),
            },
            Some('{') => {
                let inner = &self.rest[1..];
                match inner.strip_prefix(|c: char| c.is_ascii_alphabetic() || c == '_').map(name_end) {
                    Some(end) if inner[end + 1..].starts_with('}') => self.rest = &inner[end + 2..],
                    _ => self.give_up(),
                }
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.rest = &self.rest[name_end(self.rest)..],
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => self.rest = &self.rest[1..],
            // `$'…'`, `$"…"`, `$[…]` and a lone `$`: shells read them differently.
            _ => self.give_up(),
        }
    }

    fn backquoted(&mut self) {
        self.is_known = false;
        match self.rest.split_once('`') {
            Some((inner, rest)) if !inner.contains('\\') => {
                self.found.push(inner.to_owned());
                self.rest = rest;
            }
            _ => self.give_up(),
        }
    }

    /// The rest is not parsed as the shell would; but substitutions are still collected.
    fn give_up(&mut self) {
        (self.is_known, self.is_doubtful) = (false, true);
        let mut rest = std::mem::take(&mut self.rest);
        while let Some(at) = rest.find("$(") {
            rest = &rest[at + 2..];
            let end = closing(rest).unwrap_or(rest.len());
            self.found.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }
}

/// The position of the `)` that closes a parenthesis opened before `text`; respects quotes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut chars = text.char_indices();
    let mut in_double = Vec::new();
    let mut is_quoted = false;
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' => is_quoted = !is_quoted,
            '\'' if !is_quoted => drop(chars.find(|(_, c)| *c == '\'')),
            '$' if is_quoted && text[at + 1..].starts_with('(') => {
                chars.next();
                in_double.push(depth);
                depth += 1;
                is_quoted = false;
            }
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => {
                if depth == 0 {
                    return Some(at);
                }
                depth -= 1;
                if in_double.last() == Some(&depth) {
                    in_double.pop();
                    is_quoted = true;
                }
            }
            _ => {}
        }
    }
    None
}

/// The words of a line as written, without operators and the bodies of here-documents; `None` where shells
/// disagree: comments, joined lines.
pub(super) fn split(line: &str) -> Option<Vec<&str>> {
    let mut split = Split { line, chars: line.char_indices(), words: Vec::new(), documents: Vec::new() };
    let mut start = None;
    let mut opens_document = None;
    while let Some((at, c)) = split.chars.next() {
        if matches!(c, ' ' | '\t' | '\n' | '|' | '&' | ';' | '<' | '>' | '(' | ')') {
            if let Some(begun) = start.take() {
                split.word(begun, at, c, &mut opens_document)?;
            }
            let rest = &line[at + 1..];
            if c == '<' && rest.starts_with('<') {
                split.chars.next();
                let strips_tabs = rest[1..].starts_with('-');
                if strips_tabs {
                    split.chars.next();
                }
                opens_document = Some(strips_tabs);
            } else if c == '\n' {
                split.skip_documents(at + 1)?;
            }
            continue;
        }
        match c {
            '#' if start.is_none() => return None,
            '\\' => drop(split.chars.next().filter(|(_, c)| *c != '\n')?),
            '\'' => drop(split.chars.find(|(_, c)| *c == '\'')?),
            '"' => skip_quoted(line, &mut split.chars)?,
            '`' => drop(split.chars.find(|(_, c)| *c == '`')?),
            '$' if line[at + 1..].starts_with('(') => {
                let inner = at + 2;
                let end = inner + closing(&line[inner..])?;
                split.chars.find(|(at, _)| *at == end)?;
            }
            '$' if line[at + 1..].starts_with('{') => drop(split.chars.find(|(_, c)| *c == '}')?),
            _ => {}
        }
        start = start.or(Some(at));
    }
    if let Some(begun) = start {
        split.word(begun, line.len(), '\n', &mut opens_document)?;
    }
    (opens_document.is_none() && split.documents.is_empty()).then_some(split.words)
}

struct Split<'l> {
    line: &'l str,
    chars: std::str::CharIndices<'l>,
    words: Vec<&'l str>,
    /// Delimiters of the here-documents that begin after this line, and whether tabs before them do not count.
    documents: Vec<(String, bool)>,
}

impl<'l> Split<'l> {
    /// A word that ended before `next`.
    fn word(&mut self, from: usize, to: usize, next: char, opens_document: &mut Option<bool>) -> Option<()> {
        const LONGEST_DESCRIPTOR: usize = 3;
        let raw: &'l str = &self.line[from..to];
        if let Some(strips_tabs) = opens_document.take() {
            let delimiter: String = raw.chars().filter(|c| !matches!(c, '\'' | '"')).collect();
            let is_read_alike = delimiter.chars().all(|c| is_plain(c) || c == ' ');
            self.documents.push(Some((delimiter, strips_tabs)).filter(|_| is_read_alike)?);
        } else if matches!(next, '<' | '>') && raw.bytes().all(|byte| byte.is_ascii_digit()) {
            return (raw.len() <= LONGEST_DESCRIPTOR).then_some(());
        }
        self.words.push(raw);
        Some(())
    }

    fn skip_documents(&mut self, mut from: usize) -> Option<()> {
        if self.documents.is_empty() {
            return Some(());
        }
        for (delimiter, strips_tabs) in std::mem::take(&mut self.documents) {
            loop {
                let rest: &str = self.line.get(from..).filter(|rest| !rest.is_empty())?;
                let text = rest.split('\n').next().unwrap_or(rest);
                from = (from + text.len() + 1).min(self.line.len());
                if text.trim_start_matches(|c| strips_tabs && c == '\t') == delimiter {
                    break;
                }
            }
        }
        let mut chars = self.line.char_indices();
        while chars.offset() < from {
            chars.next();
        }
        self.chars = chars;
        Some(())
    }
}

fn skip_quoted(line: &str, chars: &mut std::str::CharIndices<'_>) -> Option<()> {
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some(()),
            '\\' => drop(chars.next()?),
            '$' if line[at + 1..].starts_with('(') => {
                let inner = at + 2;
                let end = inner + closing(&line[inner..])?;
                chars.find(|(at, _)| *at == end)?;
            }
            _ => {}
        }
    }
    None
}
