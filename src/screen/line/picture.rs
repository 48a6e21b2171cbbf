//! Draws the line: the queued messages, the text, and what completes it.

use super::offered::lay_out_grid;
use super::recall::HistorySearch;
use super::state::LineState;
use crate::base::text;
use crate::screen::ink::{Ink, Line as InkLine};
use crate::screen::surface::{DrawMoment, PROMPT, Picture, Sketch, TypedLine};

/// The most rows of the line while other parts of the screen need room too.
const MOST_ROWS: usize = 8;
/// The rows that it leaves free otherwise.
const FREE_ROWS: usize = 2;

/// Draws the queue, the line, and what completes it.
pub(super) fn draw_picture(state: &LineState) -> Picture {
    let words =
        state.question.as_ref().filter(|open| open.takes_words() && (open.has_focus || state.field.is_empty()));
    let field = words.map_or(&state.field, |open| &open.words);
    let (text, cursor) = (field.text().to_owned(), field.cursor());
    let hint = state.hint().map(str::to_owned);
    let lead = state.search.as_ref().map(HistorySearch::lead);
    let queue: Vec<String> = state.queue.iter().map(|message| message.text.clone()).collect();
    let leaves = state.ended.then(|| InkLine::from((Ink::Dim, "then the chat ends (Ctrl-D)")));
    let listed = state.listed.clone();
    let is_prompt = state.is_prompt;
    Box::new(move |moment: &DrawMoment| {
        let mut lines: Vec<InkLine> = queue.iter().map(|message| draw_queued(message, moment.room)).collect();
        lines.extend(leaves.clone().map(|line| line.cut(moment.room)));
        let above = lines.len();
        let lead = lead.as_deref().unwrap_or(PROMPT);
        let typed = TypedLine { lead, text: &text, cursor, hint: hint.as_deref() };
        let free = moment.rows.saturating_sub(above + FREE_ROWS);
        let mut sketch = typed.draw(moment.room, if is_prompt { free } else { free.min(MOST_ROWS) });
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
