//! Fits lines into the columns and rows of a terminal: decides what is shortened or dropped first.

use crate::base::text;
use crate::screen::ink::{Ink, Inks, Line};

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
    let kept = head.columns().min(least).min(room);
    let after = Line::from((Ink::Dim, " · ")).join(tail).cut(room - kept);
    head.cut(room - after.columns()).join(after)
}

/// Draws a text on one line of at most `room` columns.
pub(super) fn draw_words(inks: impl Into<Inks>, words: &str, room: usize) -> Line {
    Line::from((inks, text::one_line(words, room)))
}

/// Indents a line by two columns, below the line that it belongs to.
pub(super) fn indent_line(line: Line, room: usize) -> Line {
    Line::from((Ink::Dim, "  ")).join(line).cut(room)
}

/// Puts a title and the lines of a checklist into `rows`; none without items. If they do not fit, the items that have
/// ended at the beginning are dropped first; those left out at the end are counted.
pub(super) fn fit_checklist<T>(
    title: Line,
    items: &[T],
    has_ended: impl Fn(&T) -> bool,
    draw_item: impl Fn(&T) -> Line,
    room: usize,
    rows: usize,
) -> Vec<Line> {
    if items.is_empty() {
        return Vec::new();
    }
    let below = rows.saturating_sub(1);
    let first = items.iter().take_while(|item| has_ended(item)).count();
    let rest = &items[first.min(items.len().saturating_sub(below))..];
    // One row shows the count of items left out, unless it is the only row.
    let (shown, left_out) = rest.split_at(if rest.len() <= below { rest.len() } else { below.max(2) - 1 });
    let count = format!("… {} more", left_out.len());
    let count = (!left_out.is_empty()).then(|| indent_line(draw_words(Ink::Dim, &count, room), room));
    std::iter::once(title).chain(shown.iter().map(draw_item)).chain(count).take(rows).collect()
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
        for (first, rows, expected) in [
            (3, 6, "t 0 1 2 3 4"),
            (3, 5, "t 1 2 3 4"),
            (3, 3, "t 3 4"),
            (3, 2, "t 3"),
            (3, 0, ""),
            (0, 4, "t 0 1   … 3 more"),
            (5, 3, "t 3 4"),
        ] {
            let (title, draw) =
                (Line::from((Ink::Dim, "t")), |item: &u32| Line::from((Ink::Dim, item.to_string())));
            let lines = fit_checklist(title, &[0, 1, 2, 3, 4], |item| *item < first, draw, 40, rows);
            let shown = lines.iter().map(Line::text).collect::<Vec<_>>().join(" ");
            assert_eq!(shown, expected, "{first} {rows}");
        }
    }
}
