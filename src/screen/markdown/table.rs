//! Draws tables, fitted to a width. Columns are as wide as needed, or shrunk, the widest first, until all fit. Cells
//! are wrapped, never cut. If not even the longest words fit side by side, each row becomes a list of its cells.

use pulldown_cmark::Alignment;

use super::inline::TableCells;
use super::wrap::{trim_line, widest_word, wrap_line};
use crate::screen::ink::{Ink, Inks, Line};

/// The separator between two columns.
const GAP: &str = " │ ";
const GAP_COLUMNS: usize = 3;
/// A word wider than this may be broken to make room.
const LONGEST_WORD: usize = 12;

/// Draws a table.
pub fn draw_table(mut table: TableCells, width: usize) -> Vec<Line> {
    let columns = table.rows.first().map_or(0, Vec::len);
    for row in &mut table.rows {
        row.resize(columns, Line::new());
    }
    if let Some(head) = table.rows.first_mut() {
        head.iter_mut().flat_map(|cell| &mut cell.spans).for_each(|span| span.inks = span.inks.add(Ink::Bold));
    }
    match choose_widths(&table.rows, columns, width) {
        Some(widths) => draw_grid(table, &widths),
        None => draw_list(table, width),
    }
}

/// The width of each column; `None` if they do not fit side by side.
fn choose_widths(rows: &[Vec<Line>], columns: usize, width: usize) -> Option<Vec<usize>> {
    let widest = |measure: &dyn Fn(&Line) -> usize| -> Vec<usize> {
        (0..columns).map(|column| rows.iter().map(|row| measure(&row[column])).max().unwrap_or(0).max(1)).collect()
    };
    let wanted = widest(&|cell| cell.columns());
    let room = width.checked_sub(columns.saturating_sub(1) * GAP_COLUMNS)?;
    if wanted.iter().sum::<usize>() <= room {
        return Some(wanted);
    }
    let needed = widest(&|cell| widest_word(&cell.text()).min(LONGEST_WORD));
    if needed.iter().sum::<usize>() > room {
        return None;
    }
    Some(shrink_columns(&wanted, &needed, room))
}

/// Shrinks columns from their wanted widths down to no less than they need: all shrunk columns get the same width,
/// except for the remainder.
fn shrink_columns(wanted: &[usize], needed: &[usize], room: usize) -> Vec<usize> {
    let at = |most: usize| -> Vec<usize> {
        wanted.iter().zip(needed).map(|(wanted, needed)| (*wanted).min(most.max(*needed))).collect()
    };
    // Binary search for the largest common width at which all fit.
    let (mut fits, mut floods) = (0, room + 1);
    while floods - fits > 1 {
        let middle = usize::midpoint(fits, floods);
        if at(middle).iter().sum::<usize>() <= room { fits = middle } else { floods = middle }
    }
    let mut widths = at(fits);
    let mut left = room - widths.iter().sum::<usize>();
    for (width, wanted) in widths.iter_mut().zip(wanted) {
        if left > 0 && *width < *wanted && *width >= fits {
            *width += 1;
            left -= 1;
        }
    }
    widths
}

/// Draws the cells side by side, below a head and a rule.
fn draw_grid(table: TableCells, widths: &[usize]) -> Vec<Line> {
    let rows = table.rows.into_iter();
    let rows: Vec<Vec<Line>> = rows.map(|row| row_lines(row, widths, &table.alignments)).collect();
    let is_tall = rows.iter().any(|row| row.len() > 1);
    let mut lines = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        // Rules separate rows of several lines.
        if index == 1 || index > 1 && is_tall {
            lines.push(draw_rule(widths));
        }
        lines.extend(row);
    }
    lines
}

fn row_lines(row: Vec<Line>, widths: &[usize], alignments: &[Alignment]) -> Vec<Line> {
    let mut cells: Vec<_> =
        row.into_iter().zip(widths).map(|(cell, width)| wrap_cell(cell, *width).into_iter()).collect();
    let height = cells.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    let mut lines = Vec::with_capacity(height);
    for _ in 0..height {
        let mut line = Line::new();
        for (column, cell) in cells.iter_mut().enumerate() {
            if column > 0 {
                line.push(Ink::Dim, GAP);
            }
            let part = cell.next().unwrap_or_default();
            let free = widths[column].saturating_sub(part.columns());
            let before = match alignments.get(column) {
                Some(Alignment::Right) => free,
                Some(Alignment::Center) => free / 2,
                _ => 0,
            };
            line.push(Inks::PLAIN, &" ".repeat(before));
            line.append(part);
            if column + 1 < widths.len() {
                line.push(Inks::PLAIN, &" ".repeat(free - before));
            }
        }
        lines.push(trim_line(line));
    }
    lines
}

fn wrap_cell(cell: Line, width: usize) -> Vec<Line> {
    let mut parts = Vec::with_capacity(1);
    wrap_line(cell, width, |part| parts.push(part));
    parts
}

fn draw_rule(widths: &[usize]) -> Line {
    let columns: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    Line::new().add(Ink::Dim, &columns.join("─┼─"))
}

/// Draws each row as lines of `head: cell`, with an empty line between rows.
fn draw_list(table: TableCells, width: usize) -> Vec<Line> {
    let mut rows = table.rows.into_iter();
    let head = rows.next().unwrap_or_default();
    let mut lines = Vec::new();
    if rows.len() == 0 {
        return head.into_iter().flat_map(|cell| wrap_cell(cell, width)).collect();
    }
    for row in rows {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        for (name, cell) in head.iter().zip(row) {
            let mut line = name.clone();
            if !name.spans.is_empty() {
                line.push(Ink::Bold, ":");
                line.push(Inks::PLAIN, " ");
            }
            line.append(cell);
            lines.extend(wrap_cell(line, width));
        }
    }
    lines
}
