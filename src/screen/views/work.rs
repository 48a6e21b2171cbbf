//! Draws the line of the current work.

use super::amount::{format_elapsed, format_tokens};
use super::fit::{append_line, draw_words, join_fitting};
use crate::screen::ink::{Ink, Inks, Line};

/// The frames of the animation.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The current work.
#[derive(Debug, Clone, Copy)]
pub enum CurrentWork<'a> {
    /// The model is answering a request.
    Thinking {
        /// Tokens of the answer per second, once enough have arrived.
        rate: Option<u64>,
    },
    /// The model reasons, and the reasoning is not shown in full.
    Reasoning {
        /// An estimate.
        tokens: u64,
    },
    /// A failed request will be retried.
    Retry {
        /// The number of the next attempt.
        attempt: u32,
        /// The maximum number of attempts.
        attempts: u32,
        left_ms: u64,
        cause: &'a str,
    },
    /// The conversation is being compressed.
    Compressing,
    /// A role is asked beside the conversation.
    Role { role: &'a str },
}

/// Draws work that has taken `elapsed_ms`: `⠋ thinking · 4.2 s · 38 tokens/s`. `frame` counts the frames of the
/// animation.
pub fn draw_work(work: CurrentWork<'_>, frame: usize, elapsed_ms: u64, room: usize) -> Line {
    let time = format_elapsed(elapsed_ms);
    let (head, tail) = match work {
        CurrentWork::Thinking { rate } => {
            let rate = rate.map(|rate| format!(" · {rate} tokens/s")).unwrap_or_default();
            ("thinking".to_owned(), time + &rate)
        }
        CurrentWork::Reasoning { tokens: count } => {
            ("reasoning".to_owned(), format!("{} tokens · {time} · /last shows it", format_tokens(count)))
        }
        CurrentWork::Retry { attempt, attempts, left_ms, cause } => {
            let mut line = draw_picture(frame);
            append_line(&mut line, draw_retry(attempt, attempts, left_ms, cause, room));
            return line.cut(room);
        }
        CurrentWork::Compressing => ("making room in the context".to_owned(), time),
        CurrentWork::Role { role } => (format!("{role} thinking"), time),
    };
    let mut line = draw_picture(frame);
    append_line(&mut line, draw_words(Inks::PLAIN, &head, room));
    // The kind of work is more important than its time.
    join_fitting(line, draw_words(Ink::Dim, &tail, room), room, room)
}

/// Draws a retry: `retry 2/5 in 1.2 s: HTTP 429 …`; without a time once the wait is over.
pub fn draw_retry(attempt: u32, attempts: u32, delay_ms: u64, cause: &str, room: usize) -> Line {
    let when = if delay_ms == 0 { String::new() } else { format!(" in {}", format_elapsed(delay_ms)) };
    draw_words(Ink::Yellow, &format!("retry {attempt}/{attempts}{when}: {cause}"), room)
}

fn draw_picture(frame: usize) -> Line {
    Line::from((Ink::Cyan, FRAMES[frame % FRAMES.len()])).add(Inks::PLAIN, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_waited_for_and_since_when() {
        let failed =
            |left_ms| CurrentWork::Retry { attempt: 2, attempts: 5, left_ms, cause: "HTTP 429\nslow down" };
        for (work, frame, ms, expected) in [
            (CurrentWork::Thinking { rate: None }, 0, 420, "⠋ thinking · 420 ms"),
            (CurrentWork::Thinking { rate: Some(38) }, 1, 4210, "⠙ thinking · 4.2 s · 38 tokens/s"),
            (
                CurrentWork::Reasoning { tokens: 1234 },
                10,
                8000,
                "⠋ reasoning · 1.2k tokens · 8.0 s · /last shows it",
            ),
            (failed(3100), 0, 900, "⠋ retry 2/5 in 3.1 s: HTTP 429 slow down"),
            (failed(0), 0, 900, "⠋ retry 2/5: HTTP 429 slow down"),
            (CurrentWork::Compressing, 0, 1500, "⠋ making room in the context · 1.5 s"),
            (CurrentWork::Role { role: "planner" }, 0, 1500, "⠋ planner thinking · 1.5 s"),
        ] {
            assert_eq!(draw_work(work, frame, ms, 80).text(), expected);
        }
    }

    #[test]
    fn what_is_done_outranks_how_long_it_takes_and_nothing_is_too_wide() {
        let shown = |room| draw_work(CurrentWork::Thinking { rate: Some(38) }, 0, 4210, room).text();
        assert_eq!(shown(20), "⠋ thinking · 4.2 s…");
        assert_eq!(shown(10), "⠋ thinking");
        for room in 1..60 {
            for work in [
                CurrentWork::Thinking { rate: Some(1) },
                CurrentWork::Reasoning { tokens: 1_000_000 },
                CurrentWork::Retry {
                    attempt: 2, attempts: 5, left_ms: 1, cause: "日本語日本語日本語日本語"
                },
                CurrentWork::Role { role: "日本語" },
            ] {
                let line = draw_work(work, 3, 100_000, room);
                assert!(line.columns() <= room, "{line:?} in {room}");
            }
        }
    }
}
