//! Lays pieces out: puts the marks of lists and quotes before their lines, and keeps empty lines of the text.
//!
//! Lines of code start at the first column, even in a list, to make copying easy; only quotes keep their bar.

use std::borrow::Cow;

use super::blocks::{Container, MarkdownPiece};
use super::code::Code;
use super::inline::{InlineReader, show_text};
use super::table;
use super::wrap::{trim_line, wrap_line};
use crate::base::text;
use crate::screen::ink::{Ink, Inks, Line, Style};

/// The bullets of items, by the nesting of their list.
const BULLETS: [&str; 3] = ["• ", "◦ ", "▪ "];
const BAR: &str = "│ ";
const LONGEST_RULE: usize = 40;

/// The state of the layout.
#[derive(Debug, Clone, Default)]
pub struct PageLayout {
    width: usize,
    style: Style,
    reader: InlineReader,
    frames: Vec<ContainerMark>,
    code: Option<Code>,
    /// The kind of the last block drawn.
    last: Option<BlockKind>,
    /// True if an empty line came since then.
    is_apart: bool,
    /// The number of frames that contain both the last and the next block.
    shared: usize,
}

/// The mark before the lines of a container.
#[derive(Debug, Clone)]
struct ContainerMark {
    kind: FrameKind,
    /// The mark before the first line.
    mark: String,
    columns: usize,
    is_drawn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Quote,
    Bullet,
    /// A numbered item, or a footnote.
    Named,
}

/// The kind of a block, which decides the empty lines around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Heading,
    Table,
}

impl ContainerMark {
    fn new(container: &Container, bullets: usize) -> Self {
        let (kind, mark) = match container {
            Container::Quote => (FrameKind::Quote, BAR.to_owned()),
            Container::Note(label) => (FrameKind::Named, show_text(&format!("[^{label}]: ")).into_owned()),
            Container::Item { marker, .. } => match marker.number {
                Some(number) => (FrameKind::Named, format!("{number}{} ", marker.kind)),
                None => (FrameKind::Bullet, BULLETS[bullets % BULLETS.len()].to_owned()),
            },
        };
        Self { kind, columns: text::count_columns(&mark), mark, is_drawn: kind == FrameKind::Quote }
    }

    /// The mark before later lines: a bar, or spaces.
    fn continuation(&self) -> Cow<'_, str> {
        if self.kind == FrameKind::Quote { BAR.into() } else { " ".repeat(self.columns).into() }
    }
}

impl PageLayout {
    pub fn new(width: usize, style: Style) -> Self {
        Self { width: width.max(1), style, reader: InlineReader::new(style), ..Self::default() }
    }

    /// Sets the width of later lines.
    pub fn set_width(&mut self, width: usize) {
        self.width = width.max(1);
    }

    /// Draws a piece.
    pub fn draw(&mut self, piece: MarkdownPiece<'_>, out: &mut Vec<Line>) {
        match piece {
            MarkdownPiece::Open(container) => {
                let bullets = self.frames.iter().filter(|frame| frame.kind == FrameKind::Bullet).count();
                self.frames.push(ContainerMark::new(container, bullets));
            }
            MarkdownPiece::Close => self.close(out),
            MarkdownPiece::Blank => self.is_apart = true,
            MarkdownPiece::Paragraph(text) => self.paragraph(text, out),
            MarkdownPiece::Heading(level, text) => self.heading(level, text, out),
            MarkdownPiece::Rule => {
                let columns = self.width.min(LONGEST_RULE);
                self.place(vec![Line::new().add(Ink::Dim, &"─".repeat(columns))], BlockKind::Text, out);
            }
            MarkdownPiece::Code(fence, info) => {
                let code = Code::new(fence, info);
                self.draw_open_marks(out);
                self.gap(BlockKind::Text, out);
                wrap_line(code.top(info), self.width, |line| self.place_unbroken(line, out));
                self.code = Some(code);
            }
            MarkdownPiece::CodeLine(line) => {
                if let Some(code) = &mut self.code {
                    let line = code.line(line);
                    self.place_unbroken(line, out);
                }
            }
            MarkdownPiece::CodeEnd => {
                if let Some(code) = self.code.take() {
                    self.place_unbroken(code.bottom(), out);
                }
            }
            MarkdownPiece::Html => self.gap(BlockKind::Text, out),
            MarkdownPiece::HtmlLine(line) => {
                self.place(vec![Line::new().add(Ink::Dim, &show_text(line))], BlockKind::Text, out);
            }
            MarkdownPiece::Table(rows) => self.table(rows, out),
        }
    }

    /// Ends a container. An item without text is drawn as its mark.
    fn close(&mut self, out: &mut Vec<Line>) {
        self.draw_open_marks(out);
        self.frames.pop();
        self.shared = self.shared.min(self.frames.len());
    }

    /// Draws the marks of items that have no text beside them.
    fn draw_open_marks(&mut self, out: &mut Vec<Line>) {
        if self.frames.iter().any(|frame| !frame.is_drawn) {
            self.place(vec![Line::new()], BlockKind::Text, out);
        }
    }

    fn paragraph(&mut self, text: &str, out: &mut Vec<Line>) {
        let (task, text) = match self.frames.last_mut() {
            Some(frame) if !frame.is_drawn => draw_task_box(frame, text),
            _ => ("", text),
        };
        let mut lines = self.reader.lines(text, Inks::PLAIN);
        if let Some(first) = lines.first_mut().filter(|_| !task.is_empty()) {
            *first = Line::from((Inks::PLAIN, task)).join(std::mem::take(first));
        }
        // A paragraph that only defines addresses shows nothing.
        if !lines.is_empty() {
            self.place(lines, BlockKind::Text, out);
        }
    }

    fn heading(&mut self, level: usize, text: &str, out: &mut Vec<Line>) {
        let bold = Inks::from(Ink::Bold);
        let inks = match level {
            1 => bold.add(Ink::Underline),
            2 => bold,
            3 => bold.add(Ink::Italic),
            _ => Ink::Italic.into(),
        };
        let mut lines = self.reader.lines(text, inks);
        // Without colours, the marks show the level.
        if let Some(first) = lines.first_mut().filter(|_| !self.style.colours) {
            *first = Line::from((Inks::PLAIN, "#".repeat(level) + " ")).join(std::mem::take(first));
        }
        self.place(lines, BlockKind::Heading, out);
    }

    fn table(&mut self, rows: &str, out: &mut Vec<Line>) {
        let table = self.reader.table(rows);
        if table.rows.is_empty() {
            return self.paragraph(rows, out);
        }
        let room = self.room();
        self.place(table::draw_table(table, room), BlockKind::Table, out);
    }

    /// The columns for text within the frames.
    fn room(&self) -> usize {
        let marks: usize = self.frames.iter().map(|frame| frame.columns).sum();
        // If the marks would take more than half of the width, they become part of the text.
        if marks * 2 > self.width { self.width } else { self.width - marks }
    }

    /// Draws lines, wrapped to the width, after their marks.
    fn place(&mut self, mut lines: Vec<Line>, kind: BlockKind, out: &mut Vec<Line>) {
        self.gap(kind, out);
        if self.frames.is_empty() {
            return lines.into_iter().for_each(|line| wrap_line(line, self.width, |part| out.push(part)));
        }
        let room = self.room();
        let is_narrow = room == self.width;
        if is_narrow {
            let marks: String = self.frames.iter().filter(|f| !f.is_drawn).map(|f| f.mark.as_str()).collect();
            if let Some(first) = lines.first_mut() {
                *first = Line::from((Inks::PLAIN, marks)).join(std::mem::take(first));
            }
        }
        for line in lines {
            wrap_line(line, room, |part| {
                let before = if is_narrow { Line::new() } else { self.marks() };
                self.frames.iter_mut().for_each(|frame| frame.is_drawn = true);
                out.push(trim_line(before.join(part)));
            });
        }
    }

    /// Draws a line without wrapping it, at the first column or after the bars of quotes.
    fn place_unbroken(&self, line: Line, out: &mut Vec<Line>) {
        let bars = BAR.repeat(self.frames.iter().filter(|frame| frame.kind == FrameKind::Quote).count());
        out.push(trim_line(Line::from((Ink::Dim, bars)).join(line)));
    }

    /// The marks before the next line.
    fn marks(&self) -> Line {
        let mut line = Line::new();
        for frame in &self.frames {
            let inks = if frame.kind == FrameKind::Quote { Ink::Dim.into() } else { Inks::PLAIN };
            line.push(inks, &if frame.is_drawn { frame.continuation() } else { frame.mark.as_str().into() });
        }
        line
    }

    /// Draws the empty line before a block, if it needs one.
    fn gap(&mut self, kind: BlockKind, out: &mut Vec<Line>) {
        let is_new = self.frames.iter().any(|frame| !frame.is_drawn);
        let stands_off =
            kind == BlockKind::Heading || kind == BlockKind::Table || self.last == Some(BlockKind::Table);
        if self.last.is_some() && (self.is_apart || stands_off && !is_new) {
            let shared = self.frames.iter().take(self.shared);
            let bars: String = shared.map(ContainerMark::continuation).collect();
            out.push(Line::from((Ink::Dim, bars.trim_end())));
        }
        self.last = Some(kind);
        self.is_apart = false;
        self.shared = self.frames.len();
    }
}

/// Turns the mark of an item into a box if its text begins with one. Returns the box if it could not replace the mark,
/// and the rest of the text.
fn draw_task_box<'t>(frame: &mut ContainerMark, text: &'t str) -> (&'static str, &'t str) {
    let boxes = [("[ ] ", "☐ "), ("[x] ", "☑ "), ("[X] ", "☑ ")];
    let Some((written, drawn)) = boxes.into_iter().find(|(written, _)| text.starts_with(written)) else {
        return ("", text);
    };
    let text = &text[written.len()..];
    if frame.kind == FrameKind::Bullet {
        drawn.clone_into(&mut frame.mark);
        return ("", text);
    }
    (drawn, text)
}
