//! Draws the line that the person types.

use super::frame::Sketch;
use crate::base::text;
use crate::screen::ink::{Ink, Inks, Line};

/// The prompt before the line.
pub const PROMPT: &str = "> ";
/// The columns that a long prompt leaves for the text, if the screen has twice as many.
const LEAST: usize = 8;
/// What stands before the further rows of the line.
const INDENT: &str = "  ";

/// The line as it is drawn.
#[derive(Debug, Clone, Copy)]
pub struct TypedLine<'t> {
    /// The prompt.
    pub lead: &'t str,
    pub text: &'t str,
    /// The place of the cursor, a byte of the text.
    pub cursor: usize,
    /// What the line may go on with.
    pub hint: Option<&'t str>,
}

impl TypedLine<'_> {
    /// Draws the rows around the cursor, at most this many.
    pub fn draw(&self, room: usize, most: usize) -> Sketch {
        let lead = text::cut_to_width(self.lead, room.saturating_sub(LEAST).max(room / 2));
        let width = |row: usize| {
            let lead = if row == 0 { text::count_columns(&lead) } else { INDENT.len() };
            (lead, room.saturating_sub(lead).max(1))
        };
        let mut rows = vec![String::new()];
        let mut cursor = None;
        for (at, c) in self.text.char_indices() {
            let shown = text::make_visible(c.encode_utf8(&mut [0; 4])).replace('\t', "    ");
            let row = rows.last().map_or("", String::as_str);
            // Measured together with the row so far: marks and joined emoji take no columns by themselves.
            let is_full = c != '\n' && text::count_columns(&format!("{row}{shown}")) > width(rows.len() - 1).1;
            if is_full {
                rows.push(String::new());
            }
            if at == self.cursor {
                cursor = Some(find_end(&rows));
            }
            match rows.last_mut() {
                Some(_) if c == '\n' => rows.push(String::new()),
                Some(row) => *row += &shown,
                None => {}
            }
        }
        let (mut row, mut column) = cursor.unwrap_or_else(|| find_end(&rows));
        if column >= width(row).1 {
            rows.insert(row + 1, String::new());
            (row, column) = (row + 1, 0);
        }
        let from = (row + 1).saturating_sub(most.max(1));
        let shown = rows.iter().enumerate().skip(from).take(most.max(1));
        let mut lines: Vec<Line> = shown
            .map(|(at, row)| Line::from((Ink::Cyan, if at == 0 { &*lead } else { INDENT })).add(Inks::PLAIN, row))
            .collect();
        if let (Some(hint), Some(last)) = (self.hint, lines.last_mut()) {
            last.push(Ink::Dim, &cut_hint(hint, width(row).1 - column));
        }
        Sketch { lines, cursor: Some((row - from, column + width(row).0)) }
    }
}

/// The rows of a line that was sent.
pub fn draw_sent(text: &str) -> Vec<Line> {
    let shown = text::make_visible(text);
    let leads = std::iter::once(PROMPT).chain(std::iter::repeat(INDENT));
    leads.zip(shown.lines()).map(|(lead, row)| Line::from((Ink::Cyan, lead)).add(Inks::PLAIN, row)).collect()
}

/// The part of a hint that fits in the row.
fn cut_hint(hint: &str, room: usize) -> String {
    let first = hint.lines().next().unwrap_or_default();
    let more = if first.len() < hint.len() { " …" } else { "" };
    text::cut_to_width(&text::make_visible(&format!("{first}{more}")), room).into_owned()
}

/// The end of the last row.
fn find_end(rows: &[String]) -> (usize, usize) {
    (rows.len() - 1, rows.last().map_or(0, |row| text::count_columns(row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_broken_at_the_edge_and_the_cursor_is_where_typing_goes_on() {
        let drawn = |text: &str, cursor, room| {
            let sketch = TypedLine { lead: PROMPT, text, cursor, hint: Some("more words") }.draw(room, 8);
            let rows: Vec<String> = sketch.lines.iter().map(Line::text).collect();
            (rows, sketch.cursor)
        };
        assert_eq!(drawn("abc", 2, 7), (vec!["> abcmo…".to_owned()], Some((0, 4))));
        assert_eq!(drawn("日本語", 9, 6), (vec!["> 日本".to_owned(), "  語m…".to_owned()], Some((1, 4))));
        assert_eq!(drawn("a\nb", 3, 20), (vec!["> a".to_owned(), "  bmore words".to_owned()], Some((1, 3))));
        let (rows, cursor) = drawn(&"x\n".repeat(40), 80, 10);
        assert_eq!((rows.len(), cursor), (8, Some((7, 2))));
        let searched = TypedLine { lead: "(search): ", text: "found", cursor: 5, hint: None }.draw(40, 5);
        assert_eq!((searched.lines[0].text(), searched.cursor), ("(search): found".to_owned(), Some((0, 15))));
    }
}
