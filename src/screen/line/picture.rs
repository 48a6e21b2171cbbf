//! Draws the line: the queued messages, the text, and what completes it.

use super::LineState;
use super::offered::lay_out_grid;
use crate::base::text;
use crate::screen::ink::{Ink, Line as InkLine};
use crate::screen::surface::{DrawMoment, Picture, Sketch, draw_typed};

/// Draws the queue, the line, and what completes it.
pub(super) fn draw_picture(state: &LineState) -> Picture {
    let words =
        state.question.as_ref().filter(|open| open.takes_words() && (open.has_focus || state.field.is_empty()));
    let field = words.map_or(&state.field, |open| &open.words).clone();
    let queue: Vec<String> = state.queue.iter().map(|message| message.text.clone()).collect();
    let leaves = state.ended.then(|| InkLine::from((Ink::Dim, "then the chat ends (Ctrl-D)")));
    let listed = state.listed.clone();
    Box::new(move |moment: &DrawMoment| {
        let mut sketch = draw_typed(&field, moment.room);
        let mut lines: Vec<InkLine> = queue.iter().map(|message| draw_queued(message, moment.room)).collect();
        lines.extend(leaves.clone().map(|line| line.cut(moment.room)));
        let above = lines.len();
        lines.append(&mut sketch.lines);
        lines.extend(offers_below(&listed, moment.room, moment.rows.saturating_sub(lines.len())));
        Sketch { lines, cursor: sketch.cursor.map(|(row, column)| (row + above, column)) }
    })
}

/// The rows of a list of offers. What is left out is counted in the last one.
pub(super) fn offers_below(listed: &[String], room: usize, rows: usize) -> Vec<InkLine> {
    const MOST: usize = 8;
    let mut shown = lay_out_grid(listed, room);
    let most = rows.min(MOST);
    if shown.len() > most {
        let left_out = shown.len() - most.saturating_sub(1);
        shown.truncate(most.saturating_sub(1));
        shown.push(format!("… {left_out} more rows; type on to narrow them down"));
    }
    shown.truncate(most);
    shown.iter().map(|row| InkLine::from((Ink::Dim, row.as_str())).cut(room)).collect()
}

fn draw_queued(message: &str, room: usize) -> InkLine {
    let more = message.lines().count().saturating_sub(1);
    let more = if more == 0 { String::new() } else { format!(" (and {more} more lines)") };
    let first = text::one_line(message.lines().next().unwrap_or_default(), 200);
    InkLine::from((Ink::Dim, format!("next: {first}{more}").as_str())).cut(room)
}
