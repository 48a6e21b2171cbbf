//! Reads the words of a line: finds their ends, and their values after the shell's expansion.
//!
//! Only constructs that every shell reads alike are taken literally. A word that the shell would expand is
//! unknown; one whose expansion could do more than look something up makes the whole line doubtful.

use super::reader::{GiveUp, ShellReader, ShellReading, is_name};
use super::{Arg, DEEPEST};
use crate::base::open_command::decode_quoted;

const UNCLOSED: GiveUp = GiveUp("a quote in it is not closed");
const DOES_MORE: &str = "it has an expansion that does more than look something up";

/// The parts of a word.
pub(super) struct Word {
    pub arg: Arg,
    /// The variable that it sets, if it comes before a command.
    pub assigns: Option<String>,
}

/// A word while it is read.
#[derive(Default)]
struct Growing {
    text: String,
    is_known: bool,
    is_quoted: bool,
    /// True if braces or a pattern in it make other words of it.
    is_expanded: bool,
    /// True if there was a `=` in it.
    is_divided: bool,
    assigns: Option<String>,
    /// The text before the first part that is only known when it runs.
    stem: Option<String>,
    /// The text since the home directory was named, unless something unknown came between.
    after_home: Option<String>,
    /// The same, where something unknown followed it.
    in_home: Vec<String>,
    /// The whole text, unless something else than a pattern is unknown in it.
    pattern: Option<String>,
}

/// Characters without a meaning to any shell outside quotes. (`=` has one at the beginning of a command.)
pub(super) fn is_plain(c: char) -> bool {
    // Some shells treat these bytes as spaces everywhere.
    const TAKEN_FOR_BLANKS: [u8; 2] = [0x85, 0xa0];
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || "-_./,:=+@%!^]}#".contains(c);
    }
    // A reader of the line may take marks of other scripts for separators.
    c.is_alphanumeric() && !c.encode_utf8(&mut [0; 4]).bytes().any(|byte| TAKEN_FOR_BLANKS.contains(&byte))
}

impl Growing {
    fn forget(&mut self) {
        self.is_known = false;
        self.stem.get_or_insert_with(|| std::mem::take(&mut self.text));
        self.in_home.extend(self.after_home.take());
    }

    fn expand_unknown(&mut self) {
        self.forget();
        self.pattern = None;
    }

    /// It may be this text, which no rule takes for a literal one.
    fn name_possibly(&mut self, text: &str) {
        self.forget();
        self.pattern.iter_mut().for_each(|pattern| pattern.push_str(text));
    }

    /// What follows lies in the home directory.
    fn enter_home(&mut self) {
        self.expand_unknown();
        self.after_home = Some(String::new());
    }

    fn push(&mut self, c: char) {
        self.pattern.iter_mut().for_each(|pattern| pattern.push(c));
        if self.is_known {
            self.text.push(c);
        } else if let Some(text) = &mut self.after_home {
            text.push(c);
        }
    }
}

impl ShellReader<'_> {
    /// Reads the word that begins here.
    pub(super) fn word(&mut self) -> ShellReading<Word> {
        let from = self.at;
        let mut word = Growing { is_known: true, pattern: Some(String::new()), ..Growing::default() };
        while let Some(c) = self.peek_char() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' | '"' => {
                    self.at += 1;
                    word.is_quoted = true;
                    if c == '"' { self.double_quoted(&mut word)? } else { self.single_quoted(&mut word)? }
                }
                '\\' => self.read_escape(&mut word)?,
                '$' | '`' => {
                    self.at += 1;
                    self.expand(c, &mut word, false)?;
                }
                _ => self.plain(c, &mut word, from)?,
            }
        }
        if self.at == from {
            return Err(GiveUp("it is not understood as a command line"));
        }
        // The text that `find` and `xargs` replace, and the test.
        if let "{}" | "[" = &self.text[from..self.at] {
            return Ok(Word { arg: Arg::Literal(self.text[from..self.at].to_owned()), assigns: None });
        }
        let stem = word.stem.filter(|stem| !stem.is_empty());
        let begins_at_home = stem.is_none() && word.in_home.is_empty();
        self.stems.extend(stem);
        // A calculation would run it.
        let raw = if word.is_expanded { &self.text[from..self.at] } else { "" };
        let expanded: String = raw.chars().filter(|c| !['\'', '"', '\\'].contains(c)).collect();
        let is_subscript = |text: &str| ["[$(", "[`"].iter().any(|subscript| text.contains(subscript));
        if word.is_known && is_subscript(&word.text) || is_subscript(&expanded) {
            self.doubt(DOES_MORE);
        }
        self.script.in_home.extend(word.in_home.iter().chain(&word.after_home).cloned());
        let arg = match word.after_home {
            _ if word.is_known => Arg::Literal(word.text),
            Some(path) if begins_at_home => Arg::InHome(path),
            _ => word.pattern.map_or(Arg::Unknown, Arg::Pattern),
        };
        Ok(Word { arg, assigns: word.assigns })
    }

    fn plain(&mut self, c: char, word: &mut Growing, from: usize) -> ShellReading<()> {
        let before = &self.text[from..self.at];
        self.at += c.len_utf8();
        match c {
            '~' if before.is_empty() || before.ends_with(['=', ':']) => {
                self.script.names_home = true;
                word.enter_home();
            }
            '*' | '?' | '[' | '{' => {
                word.is_expanded = true;
                word.forget();
                word.pattern.iter_mut().for_each(|pattern| pattern.push(c));
            }
            '~' => word.push(c),
            '=' if !word.is_divided && !word.is_quoted => {
                let name = before.strip_suffix('+').unwrap_or(before);
                word.is_divided = true;
                word.assigns = is_name(name).then(|| name.to_owned());
                word.push(c);
            }
            c if is_plain(c) => word.push(c),
            _ => return Err(GiveUp("it has a character that shells read in different ways")),
        }
        Ok(())
    }

    fn read_escape(&mut self, word: &mut Growing) -> ShellReading<()> {
        self.at += 1;
        let c = self.take_char().ok_or(UNCLOSED)?;
        word.is_quoted = true;
        if c == '\n' {
            return Err(GiveUp("a word in it is spread over two lines"));
        }
        word.push(c);
        Ok(())
    }

    fn single_quoted(&mut self, word: &mut Growing) -> ShellReading<()> {
        let length = self.rest().find('\'').ok_or(UNCLOSED)?;
        self.quoted_text(&self.rest()[..length])?;
        self.rest()[..length].chars().for_each(|c| word.push(c));
        self.at += length + 1;
        Ok(())
    }

    /// Gives up if a here-document could begin at a line feed in quotes, on which shells differ.
    fn quoted_text(&self, text: &str) -> ShellReading<()> {
        if text.contains('\n') && !self.documents.is_empty() {
            return Err(GiveUp("a here-document begins before a quote that has several lines"));
        }
        Ok(())
    }

    fn double_quoted(&mut self, word: &mut Growing) -> ShellReading<()> {
        let from = self.at;
        while let Some(c) = self.take_char() {
            match c {
                '"' => return self.quoted_text(&self.text[from..self.at]),
                '$' | '`' => self.expand(c, word, true)?,
                '\\' => match self.take_char().ok_or(UNCLOSED)? {
                    '\n' => {}
                    c => {
                        if !matches!(c, '$' | '`' | '"' | '\\') {
                            word.push('\\');
                        }
                        word.push(c);
                    }
                },
                c => word.push(c),
            }
        }
        Err(UNCLOSED)
    }

    /// The body of a here-document whose delimiter is not quoted.
    pub(super) fn body(&mut self) -> ShellReading<()> {
        let mut word = Growing::default();
        while let Some(c) = self.take_char() {
            match c {
                '$' | '`' => self.expand(c, &mut word, true)?,
                '\\' => {
                    self.take_char();
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads what follows a `$` or a backquote.
    fn expand(&mut self, c: char, word: &mut Growing, is_quoted: bool) -> ShellReading<()> {
        if c == '$' { self.dollar(word, is_quoted) } else { self.read_backquotes(word) }
    }

    /// Reads what follows a `$`.
    fn dollar(&mut self, word: &mut Growing, is_quoted: bool) -> ShellReading<()> {
        let is_home = begins_with_variable(self.rest(), "HOME");
        let is_here = begins_with_variable(self.rest(), "PWD") || self.rest().starts_with("(pwd)");
        match self.peek() {
            Some(b'(') if self.peek_at(1) == Some(b'(') => {
                self.at += 2;
                self.read_deeper(Self::arithmetic)?;
            }
            Some(b'(') => {
                self.at += 1;
                self.substitution()?;
            }
            Some(b'{') => {
                self.at += 1;
                self.read_deeper(Self::parameter)?;
            }
            Some(c) if c.is_ascii_alphabetic() || c == b'_' => self.variable(),
            Some(c) if c.is_ascii_digit() || b"@*#?-$!".contains(&c) => self.at += 1,
            Some(b'\'') if !is_quoted => {
                self.at += 1;
                let length = self.rest().find('\'').ok_or(UNCLOSED)?;
                let inner = &self.rest()[..length];
                if inner.ends_with('\\') {
                    return Err(GiveUp("`$'…'` ends at different places in different shells"));
                }
                self.quoted_text(inner)?;
                self.at += length + 1;
                // Not every shell knows these quotes, but they may name it.
                word.name_possibly(&decode_quoted(inner).0);
                return Ok(());
            }
            Some(b'"') if !is_quoted => {}
            Some(b'[') => self.doubt(DOES_MORE),
            _ => {
                word.push('$');
                return Ok(());
            }
        }
        if is_home {
            word.enter_home();
        } else if is_here {
            word.name_possibly(".");
        } else {
            word.expand_unknown();
        }
        Ok(())
    }

    /// The name of a variable.
    fn variable(&mut self) {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.script.names_home |= &rest[..end] == "HOME";
        self.at += end;
    }

    /// Reads the part after `${`: a variable, and an operator that only uses its value.
    fn parameter(&mut self) -> ShellReading<()> {
        const OPERATORS: [&str; 14] =
            [":-", ":+", ":?", "-", "+", "?", "##", "#", "%%", "%", "//", "/", "^^", ",,"];
        self.take("#");
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == b'_' => self.variable(),
            Some(c) if c.is_ascii_digit() || b"@*?$".contains(&c) => self.at += 1,
            _ => self.doubt(DOES_MORE),
        }
        let is_known = self.peek() == Some(b'}') || OPERATORS.into_iter().any(|operator| self.take(operator));
        if !is_known {
            self.doubt(DOES_MORE);
        }
        let mut inner = Growing::default();
        while let Some(c) = self.take_char() {
            match c {
                '}' => return Ok(()),
                '$' | '`' => self.expand(c, &mut inner, true)?,
                // If there are quotes inside, their end depends on the shell.
                '\'' | '"' | '\\' | '{' | '\n' => return Err(GiveUp(DOES_MORE)),
                _ => {}
            }
        }
        Err(GiveUp("something in it is opened that is not closed"))
    }

    /// Reads the part after `$((`.
    fn arithmetic(&mut self) -> ShellReading<()> {
        let mut open = 0_usize;
        self.script.calculates = true;
        let mut inner = Growing::default();
        while let Some(c) = self.take_char() {
            match c {
                ')' if open == 0 && self.take(")") => return Ok(()),
                ')' if open == 0 => break,
                '$' | '`' => self.expand(c, &mut inner, true)?,
                '\'' | '"' | '\\' | ';' | '\n' => break,
                '(' => open += 1,
                ')' => open -= 1,
                '[' => self.doubt(DOES_MORE),
                _ => {}
            }
        }
        Err(GiveUp("a calculation in it is not understood"))
    }

    fn read_backquotes(&mut self, word: &mut Growing) -> ShellReading<()> {
        if self.rest().starts_with("pwd`") {
            word.name_possibly(".");
        } else {
            word.expand_unknown();
        }
        let mut inner = String::new();
        while let Some(c) = self.take_char() {
            match c {
                '`' => {
                    self.quoted_text(&inner)?;
                    return self.read_part(&inner, ShellReader::commands);
                }
                '\\' => {
                    self.doubt("what is escaped in backquotes is read in different ways");
                    let next = self.take_char().ok_or(UNCLOSED)?;
                    if !matches!(next, '`' | '\\' | '$') {
                        inner.push(c);
                    }
                    inner.push(next);
                }
                c => inner.push(c),
            }
        }
        Err(UNCLOSED)
    }

    /// Reads a part of the line as a separate line. The commands in it belong to this line.
    pub(super) fn read_part<'p>(
        &mut self,
        text: &'p str,
        read: fn(&mut ShellReader<'p>) -> ShellReading<()>,
    ) -> ShellReading<()> {
        if self.depth >= DEEPEST {
            return Err(GiveUp("commands in commands, too deep to follow"));
        }
        let mut inner = ShellReader::new(text, self.depth + 1);
        let read = read(&mut inner);
        self.script.absorb(inner.script);
        read
    }
}

/// True if what follows a `$` is this variable, and nothing that changes its value.
fn begins_with_variable(text: &str, name: &str) -> bool {
    let is_longer = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let bare = text.strip_prefix('{').and_then(|text| text.strip_prefix(name));
    bare.is_some_and(|rest| rest.starts_with('}')) || text.strip_prefix(name).is_some_and(|rest| !is_longer(rest))
}
