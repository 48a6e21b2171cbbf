//! Draws the status line under a turn: its tokens, its cost, and how full the context is.

use super::amount::{format_elapsed, format_tokens};
use super::fit::append_line;
use crate::base::text;
use crate::config::StatusPart;
use crate::conversation::event::RunCompleted;
use crate::conversation::message::Usage;
use crate::screen::ink::{Ink, Inks, Line};

/// The parts to drop if the room is narrow, in this order. The last remaining part is cut.
const GIVE_WAY: [StatusPart; 4] = [StatusPart::Time, StatusPart::Model, StatusPart::Tokens, StatusPart::Context];
/// The number of cells in the context bar.
const CELLS: u64 = 10;

/// The facts of a turn.
#[derive(Debug, Clone, Copy)]
pub struct TurnStatus<'a> {
    pub model: &'a str,
    pub usage: Usage,
    pub cost: TurnCost,
    /// `None` if no request was made.
    pub context: Option<ContextLevel>,
    pub duration_ms: u64,
}

/// The cost of a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TurnCost {
    /// The replies were scripted.
    Nothing,
    /// The prices of the model are unknown.
    Unknown,
    Dollars {
        amount: f64,
        /// True if part of it is estimated.
        about: bool,
    },
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

impl TurnStatus<'_> {
    /// Takes the facts from a turn that ended, except the model's name and the context.
    pub fn from_run(run: &RunCompleted, is_scripted: bool) -> Self {
        let cost = match run.cost_usd {
            Some(amount) => TurnCost::Dollars { amount, about: run.usage.estimated || run.usage.cost_about },
            None if run.usage.total() > 0 && !is_scripted => TurnCost::Unknown,
            None => TurnCost::Nothing,
        };
        Self { model: "", usage: run.usage, cost, context: None, duration_ms: run.duration_ms }
    }
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
        append_line(&mut line, part.clone());
    }
    line
}

fn draw_part(part: StatusPart, facts: &TurnStatus<'_>, room: usize) -> Option<Line> {
    let dim = |text: &str| Line::from((Ink::Dim, text));
    match part {
        StatusPart::Model => Some(dim(&text::one_line(facts.model, room))).filter(|line| !line.spans.is_empty()),
        // A scripted model uses no tokens.
        StatusPart::Tokens => {
            Some(facts.usage).filter(|usage| usage.total() > 0).map(|usage| dim(&format_usage(&usage)))
        }
        StatusPart::Cost => format_cost(facts.cost).map(|cost| dim(&cost)),
        StatusPart::Context => {
            facts.context.filter(|context| context.budget > 0).map(|context| draw_bar(&context))
        }
        StatusPart::Time => Some(dim(&format_elapsed(facts.duration_ms))),
    }
}

/// Formats the tokens: `1.2k in (1.0k cached) / 420 out`.
fn format_usage(usage: &Usage) -> String {
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

fn format_cost(cost: TurnCost) -> Option<String> {
    match cost {
        TurnCost::Nothing => None,
        TurnCost::Unknown => Some("cost unknown".to_owned()),
        TurnCost::Dollars { amount, about } => Some(format!("{}${amount:.4}", if about { "~" } else { "" })),
    }
}

/// Draws the context bar: `▓▓▓▓░░░░│░ 41 %`, with a mark where compression begins.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an error of one cell is acceptable"
)]
fn draw_bar(context: &ContextLevel) -> Line {
    let part = context.used as f64 / context.budget as f64;
    let cells = |part: f64| (part.clamp(0.0, 1.0) * CELLS as f64).round() as u64;
    let (full, mark) = (cells(part), cells(context.compress_at));
    let is_late = part >= context.compress_at;
    let ink = if is_late { Ink::Yellow } else { Ink::Dim };
    let mut line = Line::new();
    for cell in 0..CELLS {
        match cell {
            cell if cell == mark => line.push(Ink::Dim, "│"),
            cell if cell < full => line.push(ink, "▓"),
            _ => line.push(Ink::Dim, "░"),
        }
    }
    line.push(Inks::from(ink), &format!(" {} %", (part * 100.0).round() as u64));
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::event::RunResult;
    use crate::conversation::event::RunStatus;

    const ALL: [StatusPart; 5] =
        [StatusPart::Model, StatusPart::Tokens, StatusPart::Cost, StatusPart::Context, StatusPart::Time];

    fn facts() -> TurnStatus<'static> {
        TurnStatus {
            model: "small",
            usage: Usage { input_tokens: 1234, cached_input_tokens: 1024, output_tokens: 420, ..Usage::default() },
            cost: TurnCost::Dollars { amount: 0.0031, about: false },
            context: Some(ContextLevel { used: 41_000, budget: 100_000, compress_at: 0.8 }),
            duration_ms: 4210,
        }
    }

    #[test]
    fn the_parts_stand_in_their_order_and_the_least_important_go_first() {
        use StatusPart::{Cost, Time};
        let shown = |parts: &[StatusPart], room| draw_status(&facts(), parts, room).text();
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
        let nothing = TurnStatus { usage: Usage::default(), cost: TurnCost::Nothing, context: None, ..facts() };
        assert_eq!(draw_status(&nothing, &ALL, 80).text(), "small · 4.2 s");
        let mut unsure = TurnStatus { cost: TurnCost::Unknown, context: None, ..facts() };
        unsure.usage.estimated = true;
        unsure.usage.cached_input_tokens = 0;
        assert_eq!(draw_status(&unsure, &ALL, 80).text(), "small · ~1.2k in / ~420 out · cost unknown · 4.2 s");
        let about = TurnStatus { cost: TurnCost::Dollars { amount: 1.5, about: true }, ..facts() };
        assert_eq!(draw_status(&about, &[StatusPart::Cost], 80).text(), "~$1.5000");
    }

    #[test]
    fn a_cost_is_told_from_one_that_is_not_known() {
        let of = |cost_usd, change: fn(&mut Usage), is_scripted| {
            let mut usage = facts().usage;
            change(&mut usage);
            let run = RunCompleted {
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
            };
            TurnStatus::from_run(&run, is_scripted).cost
        };
        let dollars = |amount, about| TurnCost::Dollars { amount, about };
        assert_eq!(of(Some(0.5), |_| {}, false), dollars(0.5, false));
        assert_eq!(of(Some(0.5), |usage| usage.cost_about = true, false), dollars(0.5, true));
        assert_eq!(of(Some(0.5), |usage| usage.estimated = true, false), dollars(0.5, true));
        assert_eq!(of(None, |_| {}, false), TurnCost::Unknown);
        assert_eq!(of(None, |_| {}, true), TurnCost::Nothing);
        assert_eq!(of(None, |usage| *usage = Usage::default(), false), TurnCost::Nothing);
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
            let line = draw_status(&TurnStatus { context, ..facts() }, &[StatusPart::Context], 80);
            assert_eq!(line.text(), expected);
        }
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        for room in 1..100 {
            let line = draw_status(&TurnStatus { model: "日本語日本語", ..facts() }, &ALL, room);
            assert!(line.columns() <= room, "{line:?} in {room}");
        }
    }
}
