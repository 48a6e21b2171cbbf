//! The interface to the rest of the program: text goes in as it arrives, lines come out once they are final.

use super::blocks::Blocks;
use super::page::PageLayout;
use super::unclosed;
use super::wrap::wrap_line;
use crate::base::text;
use crate::screen::ink::{Ink, Line, Style};

/// The most bytes of an unfinished block that are parsed to draw its end.
const LONGEST_SKETCH: usize = 8 * 1024;

/// Draws a Markdown text. Each byte is parsed once, however small the pieces are.
#[derive(Debug, Default)]
pub struct Printer {
    width: usize,
    style: Style,
    blocks: Blocks,
    page: PageLayout,
    /// The unfinished line.
    line: String,
    /// True if the last piece ended with a carriage return: then a line feed that follows belongs to it.
    is_returned: bool,
}

impl Printer {
    /// Creates a printer for lines of `width` columns. Without colours, marks that carry meaning stay; without links,
    /// addresses are shown.
    pub fn new(width: usize, style: Style) -> Self {
        Self { width, style, page: PageLayout::new(width, style), ..Self::default() }
    }

    /// Sets the width, from the next line on.
    pub fn set_width(&mut self, width: usize) {
        self.width = width;
        self.page.set_width(width);
    }

    /// Takes the next piece of text and returns the lines that are now final: complete lines of a code block, and other
    /// blocks that have ended. Lines of code may be wider than the width.
    pub fn push(&mut self, text: &str) -> Vec<Line> {
        let mut out = Vec::with_capacity(text.len() / 32);
        let mut rest = text;
        if self.is_returned && !rest.is_empty() {
            rest = rest.strip_prefix('\n').unwrap_or(rest);
            self.is_returned = false;
        }
        while let Some(end) = rest.bytes().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, after) = rest.split_at(end);
            if self.line.is_empty() {
                self.blocks.line(line, &mut |piece| self.page.draw(piece, &mut out));
            } else {
                self.line += line;
                self.end_line(&mut out);
            }
            rest = match after.strip_prefix('\r') {
                Some("") => {
                    self.is_returned = true;
                    ""
                }
                Some(after) => after.strip_prefix('\n').unwrap_or(after),
                None => &after[1..],
            };
        }
        self.line += rest;
        out
    }

    /// Draws the end of the text that [`Self::push`] has not returned yet: at most `rows` lines, none wider than the
    /// width. A table with more rows is summed up in one line until it ends.
    pub fn tail(&self, rows: usize) -> Vec<Line> {
        if let Some(table) = self.blocks.table() {
            let known = table.lines().count().saturating_sub(2);
            if known > rows || table.len() > LONGEST_SKETCH {
                let told = Line::new().add(Ink::Dim, &format!("… a table, {known} rows so far"));
                return vec![told.cut(self.width.max(1))];
            }
        }
        let mut blocks = self.blocks.sketch(LONGEST_SKETCH);
        let mut page = self.page.clone();
        let mut out = Vec::new();
        let mut line = text::take_tail(&self.line, LONGEST_SKETCH).to_owned();
        if !is_undecided(&line, blocks.in_code()) {
            if !blocks.in_code() && line.trim_start().starts_with(['#', '|']) {
                unclosed::close_marks(&mut line);
            }
            blocks.line(&line, &mut |piece| page.draw(piece, &mut out));
        }
        if let Some(paragraph) = blocks.paragraph() {
            unclosed::close_marks(paragraph);
        }
        let in_code = blocks.in_code();
        blocks.finish(&mut |piece| page.draw(piece, &mut out));
        if in_code {
            // The block has not ended, so its closing fence is not shown.
            out.pop();
        }
        let mut lines = Vec::with_capacity(out.len());
        for line in out {
            wrap_line(line, self.width.max(1), |part| lines.push(part));
        }
        lines.split_off(lines.len().saturating_sub(rows))
    }

    /// Ends the text and returns its remaining lines. The next piece begins another text.
    pub fn finish(&mut self) -> Vec<Line> {
        let mut out = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut out);
        }
        self.blocks.finish(&mut |piece| self.page.draw(piece, &mut out));
        *self = Self::new(self.width, self.style);
        out
    }

    fn end_line(&mut self, out: &mut Vec<Line>) {
        self.blocks.line(&self.line, &mut |piece| self.page.draw(piece, out));
        self.line.clear();
    }
}

/// True if the start of a line could still become a mark that changes the line above it.
fn is_undecided(line: &str, in_code: bool) -> bool {
    let line = line.trim();
    if in_code {
        return line.is_empty() || line.bytes().all(|byte| matches!(byte, b'`' | b'~'));
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line[digits..].bytes().all(|byte| b"-=*_+#>`~|:.)[] \t".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn lines_are_returned_once_they_stand() {
        let mut printer = Printer::new(20, Style::default());
        for (piece, committed, tail) in [
            ("Hel", vec![], vec!["Hel"]),
            ("lo **wor", vec![], vec!["Hello **wor**"]),
            ("ld**\n\n", vec!["Hello **world**"], vec![]),
            ("- one\n", vec![], vec!["", "• one"]),
            ("- tw", vec![], vec!["", "• one", "• tw"]),
            ("o\n", vec!["", "• one"], vec!["• two"]),
        ] {
            let lines = printer.push(piece);
            assert_eq!(texts(&lines), committed, "{piece:?}");
            assert_eq!(texts(&printer.tail(5)), tail, "{piece:?}");
        }
    }
}
