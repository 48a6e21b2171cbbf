//! Lays pieces out: puts the marks of lists and quotes before their lines, and keeps empty lines of the text.
//!
//! Lines of code start at the first column, even in a list, to make copying easy; only quotes keep their bar.

use super::blocks::{Container, Piece};
use super::code::Code;
use super::inline::{Reader, shown};
use super::table;
use super::wrap::{trimmed, wrap};
use crate::base::text;
use crate::screen::ink::{Ink, Inks, Line, Style};

/// The bullets of items, by the nesting of their list.
const BULLETS: [&str; 3] = ["• ", "◦ ", "▪ "];
const BAR: &str = "│ ";
const LONGEST_RULE: usize = 40;

/// The state of the layout.
#[derive(Debug, Clone)]
pub struct Page {
    width: usize,
    style: Style,
    reader: Reader,
    frames: Vec<Frame>,
    code: Option<Code>,
    /// The kind of the last block drawn.
    last: Option<Kind>,
    /// True if an empty line came since then.
    is_apart: bool,
    /// The number of frames that contain both the last and the next block.
    shared: usize,
}

/// The mark before the lines of a container.
#[derive(Debug, Clone)]
struct Frame {
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
enum Kind {
    Text,
    Heading,
    Table,
}

impl Frame {
    fn new(container: &Container, bullets: usize) -> Self {
        let (kind, mark) = match container {
            Container::Quote => (FrameKind::Quote, BAR.to_owned()),
            Container::Note(label) => (FrameKind::Named, shown(&format!("[^{label}]: ")).into_owned()),
            Container::Item { marker, .. } => match marker.number {
                Some(number) => (FrameKind::Named, format!("{number}{} ", marker.kind)),
                None => (FrameKind::Bullet, BULLETS[bullets % BULLETS.len()].to_owned()),
            },
        };
        Self { kind, columns: text::columns(&mark), mark, is_drawn: kind == FrameKind::Quote }
    }
}

impl Page {
    #[must_use]
    pub fn new(width: usize, style: Style) -> Self {
        Self {
            width: width.max(1),
            style,
            reader: Reader::new(style),
            frames: Vec::new(),
            code: None,
            last: None,
            is_apart: false,
            shared: 0,
        }
    }

    /// Sets the width of later lines.
    pub fn set_width(&mut self, width: usize) {
        self.width = width.max(1);
    }

    /// Draws a piece.
    pub fn draw(&mut self, piece: Piece<'_>, out: &mut Vec<Line>) {
        match piece {
            Piece::Open(container) => {
                let bullets = self.frames.iter().filter(|frame| frame.kind == FrameKind::Bullet).count();
                self.frames.push(Frame::new(container, bullets));
            }
            Piece::Close => self.close(out),
            Piece::Blank => self.is_apart = true,
            Piece::Paragraph(text) => self.paragraph(text, out),
            Piece::Heading(level, text) => self.heading(level, text, out),
            Piece::Rule => {
                let columns = self.width.min(LONGEST_RULE);
                self.place(vec![Line::new().with(Ink::Dim, &"─".repeat(columns))], Kind::Text, out);
            }
            Piece::Code(fence, info) => {
                let code = Code::new(fence, info);
                let top = code.top(info);
                self.code = Some(code);
                self.draw_open_marks(out);
                self.gap(Kind::Text, out);
                let width = self.width;
                wrap(top, width, |line| self.place_unbroken(line, out));
            }
            Piece::CodeLine(line) => {
                if let Some(code) = &mut self.code {
                    let line = code.line(line);
                    self.place_unbroken(line, out);
                }
            }
            Piece::CodeEnd => {
                if let Some(code) = self.code.take() {
                    self.place_unbroken(code.bottom(), out);
                }
            }
            Piece::Html => self.gap(Kind::Text, out),
            Piece::HtmlLine(line) => {
                self.place(vec![Line::new().with(Ink::Dim, &shown(line))], Kind::Text, out);
            }
            Piece::Table(rows) => self.table(rows, out),
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
            self.place(vec![Line::new()], Kind::Text, out);
        }
    }

    fn paragraph(&mut self, text: &str, out: &mut Vec<Line>) {
        let (task, text) = match self.frames.last_mut() {
            Some(frame) if !frame.is_drawn => task(frame, text),
            _ => ("", text),
        };
        let mut lines = self.reader.lines(text, Inks::PLAIN);
        if let Some(first) = lines.first_mut().filter(|_| !task.is_empty()) {
            *first = joined(Line::new().with(Inks::PLAIN, task), std::mem::take(first));
        }
        // A paragraph that only defines addresses shows nothing.
        if !lines.is_empty() {
            self.place(lines, Kind::Text, out);
        }
    }

    fn heading(&mut self, level: usize, text: &str, out: &mut Vec<Line>) {
        let bold = Inks::from(Ink::Bold);
        let inks = match level {
            1 => bold.with(Ink::Underline),
            2 => bold,
            3 => bold.with(Ink::Italic),
            _ => Ink::Italic.into(),
        };
        let mut lines = self.reader.lines(text, inks);
        // Without colours, the marks show the level.
        if let Some(first) = lines.first_mut().filter(|_| !self.style.colours) {
            let mark = format!("{} ", "#".repeat(level));
            *first = joined(Line::new().with(Inks::PLAIN, &mark), std::mem::take(first));
        }
        self.place(lines, Kind::Heading, out);
    }

    fn table(&mut self, rows: &str, out: &mut Vec<Line>) {
        let table = self.reader.table(rows);
        if table.rows.is_empty() {
            return self.paragraph(rows, out);
        }
        let room = self.room();
        self.place(table::lines(table, room), Kind::Table, out);
    }

    /// The columns for text within the frames.
    fn room(&self) -> usize {
        let marks: usize = self.frames.iter().map(|frame| frame.columns).sum();
        // If the marks would take more than half of the width, they become part of the text.
        if marks * 2 > self.width { self.width } else { self.width - marks }
    }

    /// Draws lines, wrapped to the width, after their marks.
    fn place(&mut self, mut lines: Vec<Line>, kind: Kind, out: &mut Vec<Line>) {
        self.gap(kind, out);
        if self.frames.is_empty() {
            return lines.into_iter().for_each(|line| wrap(line, self.width, |part| out.push(part)));
        }
        let room = self.room();
        let is_narrow = room == self.width;
        if is_narrow {
            let marks: String = self.frames.iter().filter(|f| !f.is_drawn).map(|f| f.mark.as_str()).collect();
            if let Some(first) = lines.first_mut() {
                *first = joined(Line::new().with(Inks::PLAIN, &marks), std::mem::take(first));
            }
        }
        for line in lines {
            wrap(line, room, |part| {
                let before = if is_narrow { Line::new() } else { self.marks() };
                self.frames.iter_mut().for_each(|frame| frame.is_drawn = true);
                out.push(trimmed(joined(before, part)));
            });
        }
    }

    /// Draws a line without wrapping it, at the first column or after the bars of quotes.
    fn place_unbroken(&self, line: Line, out: &mut Vec<Line>) {
        let bars = BAR.repeat(self.frames.iter().filter(|frame| frame.kind == FrameKind::Quote).count());
        out.push(trimmed(joined(Line::new().with(Ink::Dim, &bars), line)));
    }

    /// The marks before the next line.
    fn marks(&self) -> Line {
        let mut line = Line::new();
        for frame in &self.frames {
            match frame.kind {
                FrameKind::Quote => line.push(Ink::Dim, BAR),
                _ if !frame.is_drawn => line.push(Inks::PLAIN, &frame.mark),
                _ => line.push(Inks::PLAIN, &" ".repeat(frame.columns)),
            }
        }
        line
    }

    /// Draws the empty line before a block, if it needs one.
    fn gap(&mut self, kind: Kind, out: &mut Vec<Line>) {
        let is_new = self.frames.iter().any(|frame| !frame.is_drawn);
        let stands_off = kind == Kind::Heading || kind == Kind::Table || self.last == Some(Kind::Table);
        if self.last.is_some() && (self.is_apart || stands_off && !is_new) {
            let bars: String = self.frames[..self.shared.min(self.frames.len())]
                .iter()
                .map(
                    |frame| {
                        if frame.kind == FrameKind::Quote { BAR.to_owned() } else { " ".repeat(frame.columns) }
                    },
                )
                .collect();
            out.push(Line::new().with(Ink::Dim, bars.trim_end()));
        }
        self.last = Some(kind);
        self.is_apart = false;
        self.shared = self.frames.len();
    }
}

/// Turns the mark of an item into a box if its text begins with one. Returns the box if it could not replace the mark,
/// and the rest of the text.
fn task<'t>(frame: &mut Frame, text: &'t str) -> (&'static str, &'t str) {
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

fn joined(mut before: Line, after: Line) -> Line {
    if before.spans.is_empty() {
        return after;
    }
    after.spans.into_iter().for_each(|span| before.push_span(span));
    before
}
