//! Fits lines into the columns of a terminal: decides what is shortened first, and where a long line is broken.

use std::ops::Range;

use crate::base::text;
use crate::screen::ink::{Ink, Inks, Line, Span};

/// The columns of a line if stderr is not a terminal: long enough to read, short enough for a log.
const COLUMNS_OF_A_LOG: usize = 200;

/// The columns of a line. The last column stays free, because some terminals wrap when it is filled.
pub fn count_columns(width: Option<usize>) -> usize {
    width.map_or(COLUMNS_OF_A_LOG, |width| width.saturating_sub(1).max(1))
}

/// Fits `head · tail` into `room` columns. The head is shortened first, down to `least` columns, because the tail says
/// how it ended; then the tail.
pub(super) fn join_fitting(head: Line, tail: Line, least: usize, room: usize) -> Line {
    if tail.spans.is_empty() {
        return head.cut(room);
    }
    let mut after = Line::from((Ink::Dim, " · "));
    append_line(&mut after, tail);
    let kept = head.columns().min(least).min(room);
    let after = after.cut(room - kept);
    let mut line = head.cut(room - after.columns());
    append_line(&mut line, after);
    line
}

/// Adds the spans of `more` at the end of `line`.
pub(super) fn append_line(line: &mut Line, more: Line) {
    for span in more.spans {
        line.push_span(span);
    }
}

/// Draws a text on one line of at most `room` columns.
pub(super) fn draw_words(inks: impl Into<Inks>, words: &str, room: usize) -> Line {
    Line::new().add(inks, &text::one_line(words, room))
}

/// Indents a line by two columns, below the line that it belongs to.
pub(super) fn indent_line(line: Line, room: usize) -> Line {
    let mut whole = Line::from((Ink::Dim, "  "));
    append_line(&mut whole, line);
    whole.cut(room)
}

/// Chooses the part of a checklist of `all` items to show in `rows` lines, and counts the items left out after it. The
/// items before `first`, which have ended, are dropped before the others.
pub(super) fn choose_window(all: usize, first: usize, rows: usize) -> (Range<usize>, usize) {
    let start = first.min(all.saturating_sub(rows));
    let rest = all - start;
    // One row shows the count of items left out, unless it is the only row.
    let shown = if rest <= rows { rest } else { rows.saturating_sub(1).max(1) };
    (start..start + shown, rest - shown)
}

/// Breaks `line` anywhere into rows of at most `width` columns; a wider character gets a row to itself.
pub(super) fn break_rows(line: &Line, width: usize) -> Vec<Line> {
    if line.columns() <= width {
        return vec![line.clone()];
    }
    let (mut rows, mut row, mut used) = (Vec::new(), Line::new(), 0);
    for Span { text: piece, inks, link } in &line.spans {
        let span = |text: &str| Span { text: text.to_owned(), inks: *inks, link: link.clone() };
        let mut start = 0;
        for (at, c) in piece.char_indices() {
            let taken = text::count_columns(c.encode_utf8(&mut [0; 4]));
            if used > 0 && used + taken > width {
                row.push_span(span(&piece[start..at]));
                rows.push(std::mem::take(&mut row));
                (start, used) = (at, 0);
            }
            used += taken;
        }
        row.push_span(span(&piece[start..]));
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_gives_way_to_its_least_and_then_the_tail() {
        let fitted = |room| {
            let (head, tail) = (Line::from((Ink::Bold, "0123456789")), Line::from((Ink::Dim, "abcdef")));
            join_fitting(head, tail, 4, room).text()
        };
        for (room, expected) in [
            (30, "0123456789 · abcdef"),
            (19, "0123456789 · abcdef"),
            (18, "01234567… · abcdef"),
            (13, "012… · abcdef"),
            (12, "012… · abcd…"),
            (4, "012…"),
            (1, "…"),
            (0, ""),
        ] {
            assert_eq!(fitted(room), expected, "{room}");
        }
    }

    #[test]
    fn of_a_checklist_the_items_in_hand_are_shown() {
        for (all, first, rows, expected) in [
            (5, 3, 5, (0..5, 0)),
            (5, 3, 4, (1..5, 0)),
            (5, 3, 2, (3..5, 0)),
            (5, 3, 1, (3..4, 1)),
            (5, 0, 3, (0..2, 3)),
            (5, 5, 2, (3..5, 0)),
        ] {
            assert_eq!(choose_window(all, first, rows), expected, "{all} {first} {rows}");
        }
    }

    #[test]
    fn a_long_line_is_broken_into_rows_that_hold_all_of_it() {
        let line = Line::new().add(Ink::Red, "日本e\u{301}x").add(Ink::Bold, "yz");
        let rows: Vec<String> = break_rows(&line, 4).iter().map(Line::text).collect();
        assert_eq!(rows, ["日本", "e\u{301}xyz"]);
    }
}
