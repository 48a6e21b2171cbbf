//! Draws the status line under a turn: its tokens, its cost, and how full the context is.

use super::amount::{format_elapsed, format_tokens};
use crate::base::text;
use crate::config::StatusPart;
use crate::conversation::event::RunCompleted;
use crate::conversation::message::Usage;
use crate::screen::ink::{Ink, Line};

/// The parts to drop if the room is narrow, in this order. The last remaining part is cut.
const GIVE_WAY: [StatusPart; 4] = [StatusPart::Time, StatusPart::Model, StatusPart::Tokens, StatusPart::Context];
/// The number of cells in the context bar.
const CELLS: u64 = 10;

/// The facts of a turn.
#[derive(Debug, Clone, Copy)]
pub struct TurnStatus<'a> {
    pub run: &'a RunCompleted,
    pub model: &'a str,
    /// The replies are scripted and cost nothing.
    pub is_scripted: bool,
    /// `None` if no request was made.
    pub context: Option<ContextLevel>,
}

/// The fill level of the context, in tokens.
#[derive(Debug, Clone, Copy)]
pub struct ContextLevel {
    pub used: u64,
    /// The most that a request may hold.
    pub budget: u64,
    /// The part of the budget, 0 to 1, above which the conversation is compressed.
    pub compress_at: f64,
}

/// Draws these parts in this order: `small · 1.2k in (1.0k cached) / 420 out · $0.0031 · ▓▓▓▓░░░░│░ 41 % · 4.2 s`. The
/// line is empty if all parts are.
pub fn draw_status(facts: &TurnStatus<'_>, parts: &[StatusPart], room: usize) -> Line {
    let mut parts: Vec<(StatusPart, Line)> =
        parts.iter().filter_map(|part| Some((*part, draw_part(*part, facts, room)?))).collect();
    for least in GIVE_WAY {
        if parts.len() > 1 && join_parts(&parts).columns() > room {
            parts.retain(|(part, _)| *part != least);
        }
    }
    join_parts(&parts).cut(room)
}

fn join_parts(parts: &[(StatusPart, Line)]) -> Line {
    let mut line = Line::new();
    for (_, part) in parts {
        if !line.spans.is_empty() {
            line.push(Ink::Dim, " · ");
        }
        line.append(part.clone());
    }
    line
}

fn draw_part(part: StatusPart, facts: &TurnStatus<'_>, room: usize) -> Option<Line> {
    let words = match part {
        StatusPart::Model => text::one_line(facts.model, room),
        StatusPart::Tokens => format_usage(&facts.run.usage),
        StatusPart::Cost => format_cost(facts),
        StatusPart::Context => return facts.context.filter(|context| context.budget > 0).map(draw_bar),
        StatusPart::Time => format_elapsed(facts.run.duration_ms),
    };
    (!words.is_empty()).then(|| Line::from((Ink::Dim, words)))
}

/// Formats the tokens: `1.2k in (1.0k cached) / 420 out`; nothing if there are none, as of a scripted model.
fn format_usage(usage: &Usage) -> String {
    if usage.total() == 0 {
        return String::new();
    }
    let about = if usage.estimated { "~" } else { "" };
    let cached = match usage.cached_input_tokens {
        0 => String::new(),
        cached => format!(" ({} cached)", format_tokens(cached)),
    };
    format!(
        "{about}{} in{cached} / {about}{} out",
        format_tokens(usage.input_tokens),
        format_tokens(usage.output_tokens)
    )
}

/// Formats the cost, with a mark if part of it is estimated; nothing if nothing was spent.
fn format_cost(facts: &TurnStatus<'_>) -> String {
    let usage = &facts.run.usage;
    let about = if usage.estimated || usage.cost_about { "~" } else { "" };
    match facts.run.cost_usd {
        Some(amount) => format!("{about}${amount:.4}"),
        None if usage.total() > 0 && !facts.is_scripted => "cost unknown".to_owned(),
        None => String::new(),
    }
}

/// Draws the context bar: `▓▓▓▓░░░░│░ 41 %`, with a mark where compression begins.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an error of one cell is acceptable")]
fn draw_bar(context: ContextLevel) -> Line {
    let part = context.used as f64 / context.budget as f64;
    let cells = |part: f64| (part.clamp(0.0, 1.0) * CELLS as f64).round() as u64;
    let (full, mark) = (cells(part), cells(context.compress_at));
    let ink = if part >= context.compress_at { Ink::Yellow } else { Ink::Dim };
    let mut line = Line::new();
    for cell in 0..CELLS {
        match cell {
            cell if cell == mark => line.push(Ink::Dim, "│"),
            cell if cell < full => line.push(ink, "▓"),
            _ => line.push(Ink::Dim, "░"),
        }
    }
    line.add(ink, &format!(" {} %", (part * 100.0).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::event::RunResult;
    use crate::conversation::event::RunStatus;

    const ALL: [StatusPart; 5] =
        [StatusPart::Model, StatusPart::Tokens, StatusPart::Cost, StatusPart::Context, StatusPart::Time];

    fn run(cost_usd: Option<f64>, change: fn(&mut Usage)) -> RunCompleted {
        let (input_tokens, cached_input_tokens, output_tokens) = (1234, 1024, 420);
        let mut usage = Usage { input_tokens, cached_input_tokens, output_tokens, ..Usage::default() };
        change(&mut usage);
        RunCompleted {
            status: RunStatus::Completed,
            exit_code: 0,
            reason: String::new(),
            result: RunResult::Missing,
            outputs: None,
            usage,
            cost_usd,
            turns: 1,
            steps: 1,
            requests: 1,
            tool_calls: 0,
            denied: 0,
            duration_ms: 4210,
        }
    }

    fn facts(run: &RunCompleted) -> TurnStatus<'_> {
        let context = Some(ContextLevel { used: 41_000, budget: 100_000, compress_at: 0.8 });
        TurnStatus { run, model: "small", is_scripted: false, context }
    }

    #[test]
    fn the_parts_stand_in_their_order_and_the_least_important_go_first() {
        use StatusPart::{Cost, Time};
        let run = run(Some(0.0031), |_| {});
        let shown = |parts: &[StatusPart], room| draw_status(&facts(&run), parts, room).text();
        for (parts, room, expected) in [
            (&ALL[..], 80, "small · 1.2k in (1.0k cached) / 420 out · $0.0031 · ▓▓▓▓░░░░│░ 41 % · 4.2 s"),
            (&ALL, 70, "small · 1.2k in (1.0k cached) / 420 out · $0.0031 · ▓▓▓▓░░░░│░ 41 %"),
            (&ALL, 60, "1.2k in (1.0k cached) / 420 out · $0.0031 · ▓▓▓▓░░░░│░ 41 %"),
            (&ALL, 39, "$0.0031 · ▓▓▓▓░░░░│░ 41 %"),
            (&ALL, 20, "$0.0031"),
            (&ALL, 5, "$0.0…"),
            (&[Time, Cost], 80, "4.2 s · $0.0031"),
            (&[Time], 4, "4.2…"),
            (&[], 80, ""),
        ] {
            assert_eq!(shown(parts, room), expected, "{parts:?} {room}");
        }
    }

    #[test]
    fn what_is_not_known_is_said_or_left_out() {
        let nothing = run(None, |usage| *usage = Usage::default());
        let nothing = TurnStatus { context: None, ..facts(&nothing) };
        assert_eq!(draw_status(&nothing, &ALL, 80).text(), "small · 4.2 s");
        let unsure = run(None, |usage| {
            usage.estimated = true;
            usage.cached_input_tokens = 0;
        });
        let unsure = TurnStatus { context: None, ..facts(&unsure) };
        assert_eq!(draw_status(&unsure, &ALL, 80).text(), "small · ~1.2k in / ~420 out · cost unknown · 4.2 s");
    }

    #[test]
    fn a_cost_is_told_from_one_that_is_not_known() {
        let of = |cost_usd, change: fn(&mut Usage), is_scripted| {
            let run = run(cost_usd, change);
            draw_status(&TurnStatus { is_scripted, ..facts(&run) }, &[StatusPart::Cost], 80).text()
        };
        assert_eq!(of(Some(0.5), |_| {}, false), "$0.5000");
        assert_eq!(of(Some(0.5), |usage| usage.cost_about = true, false), "~$0.5000");
        assert_eq!(of(Some(0.5), |usage| usage.estimated = true, false), "~$0.5000");
        assert_eq!(of(None, |_| {}, false), "cost unknown");
        assert_eq!(of(None, |_| {}, true), "");
        assert_eq!(of(None, |usage| *usage = Usage::default(), false), "");
    }

    #[test]
    fn the_bar_has_a_mark_where_compression_begins() {
        for (used, compress_at, expected) in [
            (0, 0.8, "░░░░░░░░│░ 0 %"),
            (50, 0.8, "▓▓▓▓▓░░░│░ 50 %"),
            (85, 0.8, "▓▓▓▓▓▓▓▓│░ 85 %"),
            (100, 0.8, "▓▓▓▓▓▓▓▓│▓ 100 %"),
            (130, 0.5, "▓▓▓▓▓│▓▓▓▓ 130 %"),
            (10, 1.0, "▓░░░░░░░░░ 10 %"),
        ] {
            let context = Some(ContextLevel { used, budget: 100, compress_at });
            let run = run(None, |_| {});
            let line = draw_status(&TurnStatus { context, ..facts(&run) }, &[StatusPart::Context], 80);
            assert_eq!(line.text(), expected);
        }
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let run = run(Some(0.0031), |_| {});
        for room in 1..100 {
            let line = draw_status(&TurnStatus { model: "日本語日本語", ..facts(&run) }, &ALL, room);
            assert!(line.columns() <= room, "{line:?} in {room}");
        }
    }
}
