//! The live area as data: its parts, its rows, and the bytes that turn one state into the next.

use std::fmt::Write;

use crate::screen::ink::{Line, Style};

/// The parts of the live area, from top to bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FramePart {
    /// The end of the answer, which may still change.
    Tail,
    /// The current work: the model thinks, calls run.
    Work,
    /// The plan and the todo list.
    Lists,
    /// A question to the person.
    Question,
    /// The line that the person types.
    Typed,
}

/// The time and the space for drawing a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawMoment {
    /// The columns of a line.
    pub room: usize,
    /// The rows that are left for the part.
    pub rows: usize,
    /// A counter for animation since the part was first shown: ten ticks per second.
    pub tick: usize,
}

/// A drawn part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sketch {
    pub lines: Vec<Line>,
    /// The row and the column of the cursor, if it is in this part.
    pub cursor: Option<(usize, usize)>,
}

impl From<Vec<Line>> for Sketch {
    fn from(lines: Vec<Line>) -> Self {
        Self { lines, cursor: None }
    }
}

/// A function that draws a part.
pub type Picture = Box<dyn FnMut(&DrawMoment) -> Sketch + Send>;

/// The rows on the screen and the position of the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Area {
    pub rows: Vec<FrameRow>,
    /// The row and column of the cursor. `None`: hidden, after the last row.
    pub cursor: Option<(usize, usize)>,
    /// The columns of the screen when it was drawn.
    pub width: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FrameRow {
    pub painted: String,
    pub columns: usize,
}

/// Begins and ends a frame that the terminal shows as a whole, if it supports that (private mode 2026).
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
const HIDE: &str = "\x1b[?25l";
const SHOW: &str = "\x1b[?25h";

impl Area {
    /// Stacks sketches from top to bottom.
    pub fn stack(sketches: Vec<Sketch>, room: usize, width: usize, style: Style) -> Self {
        let mut area = Self { width, ..Self::default() };
        for Sketch { lines, cursor } in sketches {
            if let Some((row, column)) = cursor {
                area.cursor = Some((area.rows.len() + row, column.min(room)));
            }
            area.rows.extend(lines.into_iter().map(|line| {
                let line = line.cut(room);
                FrameRow { columns: line.columns(), painted: line.painted(style) }
            }));
        }
        area
    }

    /// The row and column of the terminal's cursor.
    fn find_cursor(&self) -> (usize, usize) {
        let last = self.rows.len().saturating_sub(1);
        self.cursor.unwrap_or((last, self.rows.last().map_or(0, |row| row.columns)))
    }

    /// The rows of the area above the cursor on a screen of this width. Most terminals rewrap lines when they get
    /// narrower.
    fn count_rows_above(&self, width: usize, reflows: bool) -> usize {
        let (row, column) = self.find_cursor();
        if !reflows || width >= self.width || width == 0 {
            return row;
        }
        let broken = |columns: usize| columns.max(1).div_ceil(width);
        self.rows[..row].iter().map(|row| broken(row.columns)).sum::<usize>() + column / width
    }

    /// The bytes that turn this area into `next`, with `committed` lines above; empty if nothing changes.
    pub fn turned_into(&self, next: &Self, committed: &str, reflows: bool) -> String {
        let same_shape = committed.is_empty() && self.width == next.width && self.rows.len() == next.rows.len();
        if same_shape && self == next {
            return String::new();
        }
        let mut out = String::from(BEGIN);
        out += HIDE;
        if same_shape && !self.rows.is_empty() {
            self.change_rows(next, &mut out);
        } else {
            self.replace(next, committed, reflows, &mut out);
        }
        if next.cursor.is_some() || next.rows.is_empty() {
            out += SHOW;
        }
        out += END;
        out
    }

    /// Redraws only the rows that differ.
    fn change_rows(&self, next: &Self, out: &mut String) {
        let mut at = self.find_cursor().0;
        for (index, (old, new)) in self.rows.iter().zip(&next.rows).enumerate() {
            if old != new {
                move_cursor(at, index, out);
                at = index;
                let _ = write!(out, "\r{}\x1b[K", new.painted);
            }
        }
        let (row, column) = next.find_cursor();
        move_cursor(at, row, out);
        set_column(column, out);
    }

    fn replace(&self, next: &Self, committed: &str, reflows: bool, out: &mut String) {
        if !self.rows.is_empty() {
            move_cursor(self.count_rows_above(next.width, reflows), 0, out);
            out.push_str("\r\x1b[J");
        }
        out.push_str(committed);
        for (index, row) in next.rows.iter().enumerate() {
            if index > 0 {
                out.push_str("\r\n");
            }
            out.push_str(&row.painted);
        }
        if let Some((row, column)) = next.cursor {
            move_cursor(next.rows.len().saturating_sub(1), row, out);
            set_column(column, out);
        }
    }
}

/// Moves the cursor between rows.
fn move_cursor(from: usize, to: usize, out: &mut String) {
    let _ = match from.cmp(&to) {
        std::cmp::Ordering::Greater => write!(out, "\x1b[{}A", from - to),
        std::cmp::Ordering::Less => write!(out, "\x1b[{}B", to - from),
        std::cmp::Ordering::Equal => Ok(()),
    };
}

fn set_column(column: usize, out: &mut String) {
    let _ = if column == 0 { write!(out, "\r") } else { write!(out, "\r\x1b[{column}C") };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::ink::Inks;

    fn area(rows: &[&str], cursor: Option<(usize, usize)>, width: usize) -> Area {
        let lines: Vec<Line> = rows.iter().map(|row| Line::from((Inks::PLAIN, *row))).collect();
        Area::stack(vec![Sketch { lines, cursor }], width - 1, width, Style::default())
    }

    /// The contents and the cursor of a screen after these bytes.
    fn screen(columns: u16, pieces: &[String]) -> (String, (u16, u16)) {
        let size = |size: u16| std::num::NonZeroU16::new(size).expect("a size");
        let mut parser = vt100::Parser::new(size(12), size(columns), 100);
        for piece in pieces {
            parser.process(piece.as_bytes());
        }
        (parser.screen().contents(), parser.screen().cursor_position())
    }

    #[test]
    fn one_area_becomes_another_and_what_is_committed_stands_above() {
        let none = Area { width: 20, ..Area::default() };
        let one = area(&["thinking"], None, 20);
        let typed = area(&["tail", "thinking more", "> abc"], Some((2, 4)), 20);
        let other = area(&["tail", "thinking less", "> ab"], Some((2, 3)), 20);
        let pieces = [
            none.turned_into(&one, "first\r\n", true),
            one.turned_into(&typed, "second\r\n", true),
            typed.turned_into(&other, "", true),
        ];
        let (shown, cursor) = screen(20, &pieces);
        assert_eq!(shown, "first\nsecond\ntail\nthinking less\n> ab");
        assert_eq!(cursor, (4, 3));
        let all = [pieces.concat(), other.turned_into(&none, "third\r\n", true)];
        assert_eq!(screen(20, &all).0, "first\nsecond\nthird");
        assert_eq!(other.turned_into(&other.clone(), "", true), "");
    }

    #[test]
    fn only_rows_that_differ_are_drawn_again() {
        let before = area(&["a long row that stays", "1"], None, 40);
        let after = area(&["a long row that stays", "2"], None, 40);
        let bytes = before.turned_into(&after, "", true);
        assert!(!bytes.contains("stays"), "{bytes:?}");
    }

    #[test]
    fn a_narrower_screen_has_broken_the_rows_anew() {
        let wide = area(&["0123456789012345", "0123456789"], Some((1, 9)), 20);
        let narrow = area(&["01234", "0123"], Some((1, 2)), 8);
        // Two rows of the first line, and one that the cursor's own line had before it.
        assert!(wide.turned_into(&narrow, "", true).contains("\x1b[3A"));
        assert!(wide.turned_into(&narrow, "", false).contains("\x1b[1A"));
    }
}
