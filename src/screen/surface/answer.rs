//! The model's answer as it streams: finished lines, and an end that may still change.

use crate::base::text;
use crate::screen::ink::{Inks, Line, Style};
use crate::screen::markdown::Printer;

/// An answer on its way to the screen.
pub(super) enum ScreenAnswer {
    /// Shown as the model wrote it.
    Raw(Raw),
    /// Laid out as Markdown.
    Laid(Box<Printer>),
}

/// Text by lines. Only the unfinished line may change.
#[derive(Debug, Default)]
pub(super) struct Raw {
    open: String,
}

impl ScreenAnswer {
    /// Begins an answer with lines of `width` columns.
    pub fn new(markdown: bool, width: usize, style: Style) -> Self {
        if markdown { Self::Laid(Box::new(Printer::new(width, style))) } else { Self::Raw(Raw::default()) }
    }

    /// Adds text. Returns the lines that it finished.
    pub fn push(&mut self, text: &str) -> Vec<Line> {
        match self {
            Self::Raw(raw) => raw.push(text),
            Self::Laid(printer) => printer.push(text),
        }
    }

    /// Draws the unfinished end in at most `rows` lines of `room` columns.
    pub fn tail(&mut self, room: usize, rows: usize) -> Vec<Line> {
        match self {
            Self::Raw(raw) => raw.tail(room, rows),
            Self::Laid(printer) => {
                printer.set_width(room);
                printer.tail(rows)
            }
        }
    }

    /// Ends the answer. Returns the lines that were not finished.
    pub fn finish(self) -> Vec<Line> {
        match self {
            Self::Raw(raw) if raw.open.is_empty() => Vec::new(),
            Self::Raw(raw) => vec![raw.line()],
            Self::Laid(mut printer) => printer.finish(),
        }
    }
}

impl Raw {
    fn push(&mut self, text: &str) -> Vec<Line> {
        let mut lines = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.open += piece.strip_suffix('\n').unwrap_or(piece);
            if piece.ends_with('\n') {
                lines.push(self.line());
                self.open.clear();
            }
        }
        lines
    }

    fn line(&self) -> Line {
        Line::from((Inks::PLAIN, text::make_visible(self.open.trim_end_matches('\r'))))
    }

    /// The end of the unfinished line, broken as the screen will break it.
    fn tail(&self, room: usize, rows: usize) -> Vec<Line> {
        /// An upper bound on the bytes per column, for characters that take no column.
        const BYTES_PER_COLUMN: usize = 16;
        let end = text::take_tail(&self.open, room.saturating_mul(rows).saturating_mul(BYTES_PER_COLUMN));
        if end.is_empty() {
            return Vec::new();
        }
        let mut lines = Line::from((Inks::PLAIN, text::make_visible(end).replace('\t', "    "))).break_rows(room);
        lines.split_off(lines.len().saturating_sub(rows))
    }
}
