//! Parses the commands of a line: lists, pipelines and groups, and their components (`compound`, `simple`, `words`,
//! `document`).
//!
//! One pass over the bytes, without going back, and a bound on the depth: time and memory are linear in the length.
//! A construct that shells read differently, or that is not understood, ends the reading or marks the line as doubtful;
//! everything found until then stays, and the rest is skimmed (`skim`).

use super::ShellScript;

/// The deepest nesting that is followed: the reader calls itself for each level.
const MOST_OPEN: usize = 40;

/// The reason that the reading ended before the end of the line.
pub(super) struct GiveUp(pub &'static str);

pub(super) type ShellReading<T> = Result<T, GiveUp>;

/// Words that end a list of commands where a command could begin.
const CLOSING: [&str; 8] = ["}", "do", "done", "then", "elif", "else", "fi", "esac"];

/// A here-document whose body is yet to come.
pub(super) struct HereDocument {
    pub delimiter: String,
    pub strips_tabs: bool,
    pub is_expanded: bool,
}

#[derive(Default)]
pub(super) struct ShellReader<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) script: ShellScript,
    /// The number of lines around this line (`sh -c "…"`).
    pub(super) depth: usize,
    /// The number of open groups and substitutions.
    open: usize,
    /// Here-documents whose bodies follow the next line feed.
    pub(super) documents: Vec<HereDocument>,
    /// Here-documents of the line around a substitution: shells differ on whose lines come first.
    held: usize,
    /// The beginnings of words that are only known when they run.
    pub(super) stems: Vec<String>,
}

impl<'t> ShellReader<'t> {
    pub fn new(text: &'t str, depth: usize) -> Self {
        Self { text, depth, ..Self::default() }
    }

    /// Reads the whole line.
    pub fn read(mut self) -> ShellScript {
        if let Err(GiveUp(why)) = self.commands() {
            self.doubt(why);
            self.skim();
        }
        self.script
    }

    /// The commands up to the end of the text.
    pub(super) fn commands(&mut self) -> ShellReading<()> {
        self.list()?;
        match self.peek() {
            None if self.documents.is_empty() => Ok(()),
            None => Err(GiveUp("a here-document in it has no end")),
            Some(_) => Err(GiveUp("something in it is closed that was not opened")),
        }
    }

    pub(super) fn doubt(&mut self, why: &'static str) {
        self.script.unresolved.get_or_insert(why);
    }

    /// Runs `read` one level deeper.
    pub(super) fn read_deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> ShellReading<T>) -> ShellReading<T> {
        if self.open >= MOST_OPEN {
            return Err(GiveUp("it is nested too deep to follow"));
        }
        self.open += 1;
        let read = read(self);
        self.open -= 1;
        read
    }

    /// The commands of a substitution, up to its closing parenthesis.
    pub(super) fn substitution(&mut self) -> ShellReading<()> {
        let around = std::mem::take(&mut self.documents);
        let stems = std::mem::take(&mut self.stems);
        self.held += around.len();
        self.read_deeper(Self::list)?;
        self.expect(b')')?;
        if !self.documents.is_empty() {
            return Err(GiveUp("a here-document begins in a substitution and ends after it"));
        }
        self.held -= around.len();
        (self.documents, self.stems) = (around, stems);
        Ok(())
    }

    // -------------------------------------------------------------------------------------------- lists

    /// Reads commands up to something that closes them, which is left in place.
    pub(super) fn list(&mut self) -> ShellReading<()> {
        loop {
            self.blank_lines()?;
            if self.ends_list() {
                return Ok(());
            }
            let is_first = self.script.commands.is_empty();
            self.and_or()?;
            self.blanks();
            match self.peek() {
                Some(b';') if !matches!(self.peek_at(1), Some(b';' | b'&')) => self.at += 1,
                Some(b'&') => {
                    self.at += 1;
                    self.script.enters_first &= !is_first;
                }
                Some(b'\n') => self.line_feed()?,
                _ if self.ends_list() => return Ok(()),
                _ => return Err(GiveUp("it is not understood as a command line")),
            }
        }
    }

    fn ends_list(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => matches!(self.peek_at(1), Some(b';' | b'&')),
            _ => CLOSING.contains(&self.peek_word()),
        }
    }

    fn and_or(&mut self) -> ShellReading<()> {
        let is_first = self.open == 0 && self.script.commands.is_empty();
        let is_plain = self.pipeline()?;
        self.blanks();
        if is_first && is_plain && self.script.commands.len() == 1 {
            self.script.enters_first = !self.rest().starts_with("||");
        }
        loop {
            self.blanks();
            if !self.take("&&") && !self.take("||") {
                return Ok(());
            }
            self.blank_lines()?;
            self.pipeline()?;
        }
    }

    /// Reads a pipeline; returns true if it was one simple command.
    fn pipeline(&mut self) -> ShellReading<bool> {
        let mut is_plain = true;
        while self.take_word("!") {
            self.blanks();
            is_plain = false;
        }
        is_plain &= self.command()?;
        loop {
            self.blanks();
            if self.peek() != Some(b'|') || self.peek_at(1) == Some(b'|') {
                return Ok(is_plain);
            }
            is_plain = false;
            self.at += 1;
            self.take("&");
            self.blank_lines()?;
            let from = self.script.commands.len();
            self.command()?;
            self.script.commands.iter_mut().skip(from).for_each(|command| command.is_fed = true);
        }
    }

    /// Reads a command; returns true if it was a simple one.
    pub(super) fn command(&mut self) -> ShellReading<bool> {
        let word = self.peek_word();
        if CLOSING.contains(&word) {
            return Err(GiveUp("it is not understood as a command line"));
        }
        match word {
            "{" => self.read_after(word, |reader| {
                reader.list()?;
                reader.expect_word("}")
            })?,
            "if" => self.read_after(word, Self::condition)?,
            "while" | "until" => self.read_after(word, |reader| {
                reader.list()?;
                reader.loop_body()
            })?,
            "for" => self.read_after(word, Self::count_item)?,
            "case" => self.read_after(word, Self::cases)?,
            "[[" => self.read_after(word, Self::test)?,
            "function" | "select" | "coproc" => {
                return Err(GiveUp("it has a construct that only some shells know"));
            }
            _ if self.peek() == Some(b'(') => {
                if self.peek_at(1) == Some(b'(') {
                    self.doubt("`((` means different things to different shells");
                }
                self.at += 1;
                self.read_deeper(Self::list)?;
                self.expect(b')')?;
            }
            _ => return self.simple(),
        }
        self.redirects()?;
        Ok(false)
    }

    /// Reads the part after a word of the grammar.
    fn read_after(&mut self, word: &str, read: impl FnOnce(&mut Self) -> ShellReading<()>) -> ShellReading<()> {
        self.at += word.len();
        self.read_deeper(read)
    }

    // -------------------------------------------------------------------------------------------- bytes

    pub(super) fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek_char(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn take_char(&mut self) -> Option<char> {
        let c = self.peek_char()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn take(&mut self, what: &str) -> bool {
        let is_there = self.rest().starts_with(what);
        self.at += if is_there { what.len() } else { 0 };
        is_there
    }

    pub(super) fn expect(&mut self, byte: u8) -> ShellReading<()> {
        if self.peek() != Some(byte) {
            return Err(GiveUp("something in it is opened that is not closed"));
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn expect_word(&mut self, word: &str) -> ShellReading<()> {
        if self.take_word(word) { Ok(()) } else { Err(GiveUp("something in it is opened that is not closed")) }
    }

    /// Takes a word of the grammar, if it comes next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.peek_word() == word && self.take(word)
    }

    /// The bytes up to the end of a word, which may be a word of the grammar.
    pub(super) fn peek_word(&self) -> &'t str {
        const LONGEST: usize = 64;
        let rest = self.rest();
        let length = rest.bytes().take(LONGEST).take_while(|byte| !b" \t\n;&|<>()".contains(byte)).count();
        rest.get(..length).unwrap_or_default()
    }

    /// Skips spaces, joined lines and comments.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                Some(b'#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    pub(super) fn blank_lines(&mut self) -> ShellReading<()> {
        self.blanks();
        while self.peek() == Some(b'\n') {
            self.line_feed()?;
            self.blanks();
        }
        Ok(())
    }

    /// The end of a line, and the here-documents that begin after it.
    pub(super) fn line_feed(&mut self) -> ShellReading<()> {
        self.at += 1;
        if self.held > 0 {
            return Err(GiveUp("a here-document begins around a substitution that has several lines"));
        }
        for document in std::mem::take(&mut self.documents) {
            document.read(self)?;
        }
        Ok(())
    }
}

/// True if it can be the name of a variable or a function.
pub(super) fn is_name(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && word.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}
