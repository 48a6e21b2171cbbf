//! The editor's line on a screen whose width changes. Most terminals then rewrap lines, which the editing crate does
//! not know: it would leave the rows above the one that it takes for the first.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::strokes::Entered;
use crate::base::text;

/// The width that the line was drawn for, in columns; 0 while none is drawn.
#[derive(Debug, Default)]
pub(super) struct Width(AtomicUsize);

impl Width {
    /// Nothing is drawn yet.
    pub fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Follows the screen to the width `now`. True if the line, which is drawn for another one, must be drawn as a
    /// whole; on a terminal that `reflows` its rows are taken away first. `whole` is the prompt and the line, `cursor`
    /// a byte of it.
    pub fn follow(&self, now: usize, reflows: bool, whole: &str, cursor: usize) -> bool {
        let Some(before) = self.change(now) else { return false };
        if reflows {
            write_terminal(&taken_away(whole, cursor, before, now));
        }
        true
    }

    /// The line is about to be drawn for this width. Returns the width for which it was drawn, if that is another
    /// one.
    fn change(&self, now: usize) -> Option<usize> {
        let before = self.0.swap(now, Ordering::Relaxed);
        Some(before).filter(|before| *before != 0 && *before != now)
    }
}

/// Leaves the rows of a line whose cursor was not on its last one.
pub(super) fn leave_line(prompt: &str, Entered { line, pos }: &Entered, width: usize) {
    let row = |text: &str| find_row(&format!("{prompt}{text}"), width);
    write_terminal(&"\n".repeat(row(line).saturating_sub(row(&line[..*pos]))));
}

/// Writes to the terminal. Errors are ignored: the line is read even if it cannot be drawn.
fn write_terminal(bytes: &str) {
    let mut stderr = io::stderr();
    let _ = stderr.write_all(bytes.as_bytes()).and_then(|()| stderr.flush());
}

/// The bytes that erase a line which was drawn at the width `before` and rewrapped at the width `now`, and put the
/// cursor where the crate expects it: as many rows below the first as before. `whole` is the prompt and the line,
/// `cursor` a byte of it.
fn taken_away(whole: &str, cursor: usize, before: usize, now: usize) -> String {
    let ahead = whole.get(..cursor).unwrap_or(whole);
    let (last, row) = (find_row(whole, before), find_row(ahead, before));
    format!("{}\r\x1b[J{}{}", move_up(find_row(ahead, now)), "\n".repeat(last), move_up(last.saturating_sub(row)))
}

/// The row in which a text ends, counted from 0.
fn find_row(text: &str, width: usize) -> usize {
    let rows: usize = text.split('\n').map(|line| text::count_columns(line) / width.max(1) + 1).sum();
    rows - 1
}

fn move_up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_broken_line_go_and_the_cursor_is_where_it_was() {
        for (whole, cursor, before, now, expected) in [
            ("> short", 7, 80, 40, "\r\x1b[J"),
            ("> 0123456789", 12, 80, 6, "\x1b[2A\r\x1b[J"),
            ("> 0123456789", 12, 6, 80, "\r\x1b[J\n\n"),
            ("> 0123456789", 2, 6, 80, "\r\x1b[J\n\n\x1b[2A"),
            ("> one\ntwo", 5, 80, 40, "\r\x1b[J\n\x1b[1A"),
        ] {
            assert_eq!(taken_away(whole, cursor, before, now), expected, "{whole:?} {cursor} {before} {now}");
        }
    }

    #[test]
    fn a_width_changes_only_under_a_line_that_is_drawn() {
        let width = Width::default();
        assert_eq!([width.change(80), width.change(80), width.change(40)], [None, None, Some(80)]);
        width.forget();
        assert_eq!(width.change(80), None);
    }
}
