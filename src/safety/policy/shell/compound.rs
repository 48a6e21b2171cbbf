//! Conditions, loops, cases and tests in a line.

use super::reader::{GiveUp, ShellReader, ShellReading, is_name};
use super::{Arg, Simple};

impl ShellReader<'_> {
    pub(super) fn condition(&mut self) -> ShellReading<()> {
        loop {
            self.list()?;
            self.expect_word("then")?;
            self.list()?;
            if self.take_word("else") {
                self.list()?;
                return self.expect_word("fi");
            }
            if !self.take_word("elif") {
                return self.expect_word("fi");
            }
        }
    }

    pub(super) fn loop_body(&mut self) -> ShellReading<()> {
        self.expect_word("do")?;
        self.list()?;
        self.expect_word("done")
    }

    pub(super) fn count_item(&mut self) -> ShellReading<()> {
        self.blanks();
        let name = self.peek_word().to_owned();
        if !is_name(&name) {
            return Err(GiveUp("a loop in it is not understood"));
        }
        self.at += name.len();
        self.script.commands.push(Simple { assigned: vec![name], ..Simple::default() });
        self.blank_lines()?;
        if self.take_word("in") {
            self.words_of_loop()?;
        } else {
            self.take(";");
        }
        self.blank_lines()?;
        self.loop_body()
    }

    fn words_of_loop(&mut self) -> ShellReading<()> {
        loop {
            self.blanks();
            if self.take(";") {
                return Ok(());
            }
            if self.peek() == Some(b'\n') {
                return self.line_feed();
            }
            let arg = self.word()?.arg;
            let stems = std::mem::take(&mut self.stems);
            if let Some(command) = self.script.commands.last_mut() {
                command.names.extend(stems);
                command.names.extend(arg.text().map(str::to_owned));
            }
        }
    }

    pub(super) fn cases(&mut self) -> ShellReading<()> {
        self.blanks();
        self.word()?;
        self.blank_lines()?;
        self.expect_word("in")?;
        loop {
            self.blank_lines()?;
            if self.take_word("esac") {
                return Ok(());
            }
            self.take("(");
            loop {
                self.blanks();
                self.word()?;
                self.blanks();
                if !self.take("|") {
                    break;
                }
            }
            self.expect(b')')?;
            self.stems.clear();
            self.list()?;
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) && self.peek_word() != "esac" {
                return Err(GiveUp("a `case` in it is not understood"));
            }
        }
    }

    /// Reads `[[ … ]]`. Shells that do not know it take it for a program that does not exist, whose words `&&` ends.
    pub(super) fn test(&mut self) -> ShellReading<()> {
        let mut argv = vec![Arg::Literal("[[".to_owned())];
        loop {
            self.blank_lines()?;
            if self.take_word("]]") {
                self.command_of(argv, Vec::new());
                return Ok(());
            }
            match self.peek() {
                Some(b'&') if self.take("&&") => {}
                Some(b'<' | b'>' | b'&' | b'|' | b'(' | b')' | b';') | None => {
                    return Err(GiveUp("`[[ … ]]` means different things to different shells"));
                }
                Some(_) => argv.push(self.word()?.arg),
            }
        }
    }
}
