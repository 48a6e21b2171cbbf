//! Simple commands, functions and redirections in a line.

use super::reader::{GiveUp, HereDocument, ShellReader, ShellReading, is_name};
use super::{Arg, Redirect, Simple};

/// The longest number of a descriptor.
const LONGEST_DESCRIPTOR: usize = 3;

impl ShellReader<'_> {
    /// Reads a simple command or a function; returns true if it was a command.
    pub(super) fn simple(&mut self) -> ShellReading<bool> {
        let (mut argv, mut assigned) = (Vec::new(), Vec::new());
        let from = self.at;
        loop {
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'|' | b')') => break,
                Some(b'&') if self.peek_at(1) != Some(b'>') => break,
                Some(b'(') => match argv.as_slice() {
                    [Arg::Literal(name)] if is_name(name) && assigned.is_empty() => {
                        return self.function().map(|()| false);
                    }
                    _ => return Err(GiveUp("it has a construct that only some shells know")),
                },
                Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => argv.push(self.process()?),
                _ if self.redirect()? => {}
                _ => {
                    let word = self.word()?;
                    match word.assigns.filter(|_| argv.is_empty()) {
                        Some(name) => {
                            let value = word.arg.text().and_then(|text| text.split_once('='));
                            self.stems.extend(value.map(|(_, value)| value.to_owned()));
                            assigned.push(name);
                        }
                        None => argv.push(word.arg),
                    }
                }
            }
        }
        if self.at == from {
            return Err(GiveUp("it is not understood as a command line"));
        }
        self.command_of(argv, assigned);
        Ok(true)
    }

    pub(super) fn command_of(&mut self, argv: Vec<Arg>, assigned: Vec<String>) {
        if argv.first().is_some_and(|program| program.text().is_none()) {
            self.doubt("what stands where a program is named is only known when it runs");
        }
        let names = std::mem::take(&mut self.stems);
        if !argv.is_empty() || !assigned.is_empty() {
            let command = Simple { assigned, names, ..Simple::new(argv, self.depth) };
            self.script.commands.push(command);
        }
    }

    /// `NAME() COMMAND`: the body counts as if it ran here.
    fn function(&mut self) -> ShellReading<()> {
        self.at += 1;
        self.blanks();
        self.expect(b')')?;
        self.blank_lines()?;
        self.read_deeper(|reader| reader.command().map(drop))
    }

    /// `<(…)` and `>(…)`.
    fn process(&mut self) -> ShellReading<Arg> {
        self.at += 2;
        self.substitution()?;
        Ok(Arg::Unknown)
    }

    pub(super) fn redirects(&mut self) -> ShellReading<()> {
        loop {
            self.blanks();
            if !self.redirect()? {
                self.stems.clear();
                return Ok(());
            }
        }
    }

    /// Reads a redirection, if there is one.
    fn redirect(&mut self) -> ShellReading<bool> {
        const OPERATORS: [&str; 12] = ["<<<", "<<-", "<<", "<&", "<>", "<", "&>>", "&>", ">>", ">|", ">&", ">"];
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && matches!(self.peek_at(digits), Some(b'<' | b'>')) {
            if digits > LONGEST_DESCRIPTOR {
                return Err(GiveUp("it is not understood as a command line"));
            }
            self.at += digits;
        }
        // To shells that do not know `&>`, the command ends before it.
        let is_both = self.peek() == Some(b'&') && self.peek_at(1) == Some(b'>');
        if !is_both && !matches!(self.peek(), Some(b'<' | b'>')) {
            return Ok(false);
        }
        let operator = OPERATORS.into_iter().find(|operator| self.take(operator)).unwrap_or_default();
        self.script.has_document |= operator.starts_with("<<");
        if let "<<" | "<<-" = operator {
            let document = HereDocument::begin(self, operator == "<<-")?;
            self.documents.push(document);
            return Ok(true);
        }
        self.blanks();
        let is_process = matches!(self.peek(), Some(b'<' | b'>')) && self.peek_at(1) == Some(b'(');
        let target = if is_process { self.process()? } else { self.word()?.arg };
        let is_descriptor = operator.ends_with('&') && target.text().is_some_and(is_descriptor);
        let reads = matches!(operator, "<" | "<&");
        if operator != "<<<" && !is_process && !is_descriptor && target.text() != Some("/dev/null") {
            self.script.files.push(Redirect { target, writes: !reads });
        }
        if is_both {
            self.blanks();
            if !matches!(self.peek(), None | Some(b'\n' | b';' | b'|' | b')')) {
                self.doubt("`&>` means different things to different shells");
            }
        }
        Ok(true)
    }
}

fn is_descriptor(text: &str) -> bool {
    text == "-" || text.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit())
}
