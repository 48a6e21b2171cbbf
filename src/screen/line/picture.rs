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
/// The most rows of the queue, and the most while a question is open.
const MOST_QUEUED: usize = 4;
const MOST_QUEUED_AT_QUESTION: usize = 2;

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
    let (is_prompt, asks) = (state.is_prompt, state.question.is_some());
    Box::new(move |moment: &DrawMoment| {
        // Most of the screen is the question's.
        let (all, spared, most_queued) = if asks {
            (moment.rows / 3, 0, MOST_QUEUED_AT_QUESTION)
        } else {
            (moment.rows, FREE_ROWS, MOST_QUEUED)
        };
        let most = all.saturating_sub(spared).max(1);
        let mut lines = draw_queue(&queue, moment.room, most_queued.min(most - 1));
        lines.extend(leaves.clone().map(|line| line.cut(moment.room)));
        // The row with the cursor always has its place.
        lines.truncate(most - 1);
        let above = lines.len();
        let lead = lead.as_deref().unwrap_or(PROMPT);
        let typed = TypedLine { lead, text: &text, cursor, hint: hint.as_deref() };
        let free = most - above;
        let mut sketch = typed.draw(moment.room, if is_prompt && !asks { free } else { free.min(MOST_ROWS) });
        lines.append(&mut sketch.lines);
        lines.extend(offers_below(&listed, moment.room, all.saturating_sub(lines.len())));
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

/// The first messages of the queue, and the number of the others.
fn draw_queue(queue: &[String], room: usize, most: usize) -> Vec<InkLine> {
    let shown = if queue.len() > most { most.saturating_sub(1) } else { queue.len() };
    let mut lines: Vec<InkLine> = queue[..shown].iter().map(|message| draw_queued(message, room)).collect();
    if queue.len() > shown {
        lines.push(InkLine::from((Ink::Dim, format!("… {} more queued", queue.len() - shown))).cut(room));
    }
    lines
}

fn draw_queued(message: &str, room: usize) -> InkLine {
    let more = message.lines().count().saturating_sub(1);
    let more = if more == 0 { String::new() } else { format!(" (and {more} more lines)") };
    let first = text::one_line(message.lines().next().unwrap_or_default(), 200);
    InkLine::from((Ink::Dim, format!("next: {first}{more}").as_str())).cut(room)
}

#[cfg(test)]
mod tests {
    use super::super::asked::{AskedQuestion, OpenQuestion};
    use super::super::state::LineSettings;
    use super::*;

    #[test]
    fn a_long_queue_is_counted_and_the_row_with_the_cursor_is_always_drawn() {
        let mut state = LineState::new(LineSettings::default());
        state.field.set_text("half");
        state.queue = (1..=9).map(|number| format!("q{number}").into()).collect();
        let drawn = |state: &LineState, rows| {
            let sketch = draw_picture(state)(&DrawMoment { room: 40, rows, tick: 0 });
            let cursor = sketch.cursor.map(|(row, _)| row + 1);
            assert_eq!(cursor, Some(sketch.lines.len()));
            sketch.lines.iter().map(InkLine::text).collect::<Vec<_>>()
        };
        assert_eq!(drawn(&state, 9), ["next: q1", "next: q2", "next: q3", "… 6 more queued", "> half"]);
        assert_eq!(drawn(&state, 4), ["… 9 more queued", "> half"]);
        assert_eq!(drawn(&state, 1), ["> half"]);
        state.question = Some(OpenQuestion::new(AskedQuestion::default()).0);
        assert_eq!(drawn(&state, 9), ["next: q1", "… 8 more queued", "> half"]);
        assert_eq!(drawn(&state, 3), ["> half"]);
    }
}
