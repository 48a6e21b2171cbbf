//! Draws the line of the current work.

use super::amount::{estimate_tokens, format_elapsed, format_tokens};
use super::fit::{draw_words, join_fitting};
use crate::screen::ink::{Ink, Inks, Line};

/// The frames of the animation.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Work other than calls.
#[derive(Debug, Clone, PartialEq)]
pub enum CurrentWork {
    /// The model is answering a request.
    Thinking,
    /// The model reasons, and the reasoning is not shown in full; its bytes so far.
    Reasoning(usize),
    /// A failed request will be retried.
    Retry {
        /// The number of the next attempt.
        attempt: u32,
        /// The maximum number of attempts.
        attempts: u32,
        delay_ms: u64,
        cause: String,
    },
    /// The conversation is being compressed.
    Compressing,
    /// A role is asked beside the conversation.
    Role(String),
}

/// Draws work that has taken `elapsed_ms`: `⠋ thinking · 4.2 s · 38 tokens/s`. `rate` counts the tokens of the answer
/// per second, once enough have arrived, and `frame` the frames of the animation.
pub fn draw_work(work: &CurrentWork, rate: Option<u64>, frame: usize, elapsed_ms: u64, room: usize) -> Line {
    let line = Line::from((Ink::Cyan, FRAMES[frame % FRAMES.len()])).add(Inks::PLAIN, " ");
    let time = format_elapsed(elapsed_ms);
    let (head, tail) = match work {
        CurrentWork::Thinking => {
            let rate = rate.map(|rate| format!(" · {rate} tokens/s")).unwrap_or_default();
            ("thinking".to_owned(), time + &rate)
        }
        CurrentWork::Reasoning(bytes) => {
            let tokens = format_tokens(estimate_tokens(*bytes));
            ("reasoning".to_owned(), format!("{tokens} tokens · {time} · /last shows it"))
        }
        CurrentWork::Retry { attempt, attempts, delay_ms, cause } => {
            let left_ms = delay_ms.saturating_sub(elapsed_ms);
            return line.join(draw_retry(*attempt, *attempts, left_ms, cause, room)).cut(room);
        }
        CurrentWork::Compressing => ("making room in the context".to_owned(), time),
        CurrentWork::Role(role) => (format!("{role} thinking"), time),
    };
    // The kind of work is more important than its time.
    let line = line.join(draw_words(Inks::PLAIN, &head, room));
    join_fitting(line, draw_words(Ink::Dim, &tail, room), room, room)
}

/// Draws a retry: `retry 2/5 in 1.2 s: HTTP 429 …`; without a time once the wait is over.
pub fn draw_retry(attempt: u32, attempts: u32, delay_ms: u64, cause: &str, room: usize) -> Line {
    let when = if delay_ms == 0 { String::new() } else { format!(" in {}", format_elapsed(delay_ms)) };
    draw_words(Ink::Yellow, &format!("retry {attempt}/{attempts}{when}: {cause}"), room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_waited_for_and_since_when() {
        let cause = || "HTTP 429\nslow down".to_owned();
        let failed = |delay_ms| CurrentWork::Retry { attempt: 2, attempts: 5, delay_ms, cause: cause() };
        for (work, rate, frame, ms, expected) in [
            (CurrentWork::Thinking, None, 0, 420, "⠋ thinking · 420 ms"),
            (CurrentWork::Thinking, Some(38), 1, 4210, "⠙ thinking · 4.2 s · 38 tokens/s"),
            (
                CurrentWork::Reasoning(4938),
                Some(38),
                10,
                8000,
                "⠋ reasoning · 1.2k tokens · 8.0 s · /last shows it",
            ),
            (failed(4000), None, 0, 900, "⠋ retry 2/5 in 3.1 s: HTTP 429 slow down"),
            (failed(800), None, 0, 900, "⠋ retry 2/5: HTTP 429 slow down"),
            (CurrentWork::Compressing, None, 0, 1500, "⠋ making room in the context · 1.5 s"),
            (CurrentWork::Role("planner".to_owned()), None, 0, 1500, "⠋ planner thinking · 1.5 s"),
        ] {
            assert_eq!(draw_work(&work, rate, frame, ms, 80).text(), expected);
        }
    }

    #[test]
    fn what_is_done_outranks_how_long_it_takes_and_nothing_is_too_wide() {
        let shown = |room| draw_work(&CurrentWork::Thinking, Some(38), 0, 4210, room).text();
        assert_eq!(shown(20), "⠋ thinking · 4.2 s…");
        assert_eq!(shown(10), "⠋ thinking");
        for room in 1..60 {
            for work in [
                CurrentWork::Thinking,
                CurrentWork::Reasoning(4_000_000),
                CurrentWork::Retry { attempt: 2, attempts: 5, delay_ms: 100_001, cause: "日本語".repeat(4) },
                CurrentWork::Role("日本語".to_owned()),
            ] {
                let line = draw_work(&work, Some(1), 3, 100_000, room);
                assert!(line.columns() <= room, "{line:?} in {room}");
            }
        }
    }
}
