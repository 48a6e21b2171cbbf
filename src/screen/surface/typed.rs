//! Draws the line that the person types.

use super::frame::Sketch;
use crate::base::text;
use crate::screen::ink::{Ink, Inks, Line};
use crate::screen::terminal::TextField;

/// The prompt before the line.
pub const PROMPT: &str = "> ";
/// The most rows of the line that are shown.
const ROWS: usize = 8;

/// Draws the rows of the line around the cursor.
pub fn draw_typed(field: &TextField, room: usize) -> Sketch {
    let (before, after) = field.split();
    let width = room.saturating_sub(PROMPT.len()).max(1);
    let mut rows = vec![String::new()];
    let mut cursor = None;
    for (at, c) in before.chars().chain(after.chars()).enumerate() {
        let shown = text::make_visible(c.encode_utf8(&mut [0; 4])).replace('\t', "    ");
        let row = rows.last().map_or("", String::as_str);
        // Measured together with the row so far: marks and joined emoji take no columns by themselves.
        let is_full = c != '\n' && text::count_columns(&format!("{row}{shown}")) > width;
        if is_full {
            rows.push(String::new());
        }
        if at == before.chars().count() {
            cursor = Some(find_end(&rows));
        }
        match rows.last_mut() {
            Some(_) if c == '\n' => rows.push(String::new()),
            Some(row) => *row += &shown,
            None => {}
        }
    }
    let mut cursor = cursor.unwrap_or_else(|| find_end(&rows));
    if cursor.1 >= width {
        rows.insert(cursor.0 + 1, String::new());
        cursor = (cursor.0 + 1, 0);
    }
    let from = (cursor.0 + 1).saturating_sub(ROWS);
    let shown = rows.iter().enumerate().skip(from).take(ROWS);
    let lines = shown.map(|(index, row)| {
        let lead = if index == 0 { PROMPT } else { "  " };
        Line::from((Ink::Cyan, lead)).add(Inks::PLAIN, row)
    });
    Sketch { lines: lines.collect(), cursor: Some((cursor.0 - from, cursor.1 + PROMPT.len())) }
}

/// The end of the last row.
fn find_end(rows: &[String]) -> (usize, usize) {
    (rows.len() - 1, rows.last().map_or(0, |row| text::count_columns(row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::terminal::Key;

    #[test]
    fn the_line_is_broken_at_the_edge_and_the_cursor_is_where_typing_goes_on() {
        let shown = |before: &str, after: &str, room| {
            let mut field = TextField::from_text(before);
            field.insert(after);
            for _ in after.chars() {
                field.press(&Key::Left);
            }
            let sketch = draw_typed(&field, room);
            let rows: Vec<String> = sketch.lines.iter().map(Line::text).collect();
            (rows, sketch.cursor)
        };
        assert_eq!(shown("ab", "c", 10), (vec!["> abc".to_owned()], Some((0, 4))));
        assert_eq!(shown("日本語", "", 6), (vec!["> 日本".to_owned(), "  語".to_owned()], Some((1, 4))));
        assert_eq!(shown("a\nb", "", 10), (vec!["> a".to_owned(), "  b".to_owned()], Some((1, 3))));
        let (rows, cursor) = shown(&"x\n".repeat(40), "", 10);
        assert_eq!((rows.len(), cursor), (ROWS, Some((ROWS - 1, 2))));
    }
}
