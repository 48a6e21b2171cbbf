//! Draws remarks: single lines that are written once.

use super::amount::format_tokens;
use super::fit::{draw_words, indent_line};
use crate::base::text;
use crate::conversation::event::{Compressed, DecidedBy, PermissionVerdict, RunCompleted, RunStatus};
use crate::screen::ink::{Ink, Line};

/// The longest reason, in columns: enough for a provider's message, not for a whole web page.
const COLUMNS_OF_A_REASON: usize = 1000;

/// Draws a skill that was loaded or unloaded.
pub fn draw_skill(name: &str, how: &str, count: u64, room: usize) -> Line {
    indent_line(draw_words(Ink::Dim, &format!("skill {name} {how}, {count} tokens"), room), room)
}

/// Draws a compression: `context 81.0k → 49.2k tokens · 12 texts shortened, 30 messages summarised`.
pub fn draw_compression(done: &Compressed, room: usize) -> Line {
    let counts = [
        (done.masked, "text", "shortened"),
        (done.summarized, "message", "summarised"),
        (done.unloaded, "skill text", "unloaded"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0).map(|(count, what, how)| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {what}{plural} {how}")
    });
    let counts = counts.collect::<Vec<_>>().join(", ");
    let (before, after) = (format_tokens(done.tokens_before), format_tokens(done.tokens_after));
    indent_line(draw_words(Ink::Dim, &format!("context {before} → {after} tokens · {counts}"), room), room)
}

/// Draws a permission that was given or refused.
pub fn draw_permission(name: &str, verdict: PermissionVerdict, by: DecidedBy, room: usize) -> Line {
    let resolved = format!("{verdict:?} by {by:?}").to_lowercase();
    indent_line(draw_words(Ink::Dim, &format!("{name} {resolved}"), room), room)
}

/// Draws a warning in one full line, which the screen may fold. `whose` names the helper it happened in, if any.
pub fn draw_warning(whose: &str, message: &str) -> Line {
    let colon = if whose.is_empty() { "" } else { ": " };
    draw_words(Ink::Yellow, &format!("warning: {whose}{colon}{message}"), usize::MAX / 8)
}

/// Draws the reason of a failed run, which is shown last. It may have several lines, folded to `room` if given.
pub fn draw_failure(run: &RunCompleted, room: Option<usize>) -> Vec<Line> {
    let word = match run.status {
        RunStatus::Completed | RunStatus::Error => "error",
        RunStatus::Limit | RunStatus::Interrupted => "stopped",
    };
    let lines = run.reason.lines().map(|line| text::one_line(line, COLUMNS_OF_A_REASON));
    let reason = lines.collect::<Vec<_>>().join("\n");
    // `stopped by SIGTERM` begins with the word already.
    let reason = if reason.starts_with(word) { reason } else { format!("{word}: {reason}") };
    let folded = room.map_or(reason.as_str().into(), |room| text::fold_to_width(&reason, room));
    folded.lines().map(|line| Line::from((Ink::Red, line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::event::CompressionReason;
    use crate::conversation::event::RunResult;
    use crate::conversation::message::Usage;

    #[test]
    fn a_remark_is_one_line() {
        let done = Compressed {
            reason: CompressionReason::Threshold,
            strategy: "staged".to_owned(),
            tokens_before: 81_000,
            tokens_after: 49_200,
            budget: 100_000,
            masked: 12,
            summarized: 1,
            unloaded: 0,
            usage: Usage::default(),
            cost_usd: None,
        };
        let allowed = |room| draw_permission("run_command", PermissionVerdict::Allowed, DecidedBy::Person, room);
        for (line, expected) in [
            (
                draw_compression(&done, 80),
                "  context 81.0k → 49.2k tokens · 12 texts shortened, 1 message summarised",
            ),
            (draw_skill("brew", "loaded", 120, 80), "  skill brew loaded, 120 tokens"),
            (allowed(80), "  run_command allowed by person"),
            (draw_warning("", "odd\nindeed\u{1b}"), "warning: odd indeed␛"),
            (draw_warning("explore#2", "odd"), "warning: explore#2: odd"),
        ] {
            assert_eq!(line.text(), expected);
        }
        for room in 1..80 {
            for line in [draw_compression(&done, room), draw_skill("日本語", "loaded", 120, room), allowed(room)]
            {
                assert!(line.columns() <= room, "{line:?} in {room}");
            }
        }
    }

    #[test]
    fn a_reason_keeps_its_lines_and_begins_with_a_word() {
        let failed = |status, reason: &str, room| {
            let run = RunCompleted {
                status,
                exit_code: 8,
                reason: reason.to_owned(),
                result: RunResult::Missing,
                outputs: None,
                usage: Usage::default(),
                cost_usd: None,
                turns: 1,
                steps: 50,
                requests: 50,
                tool_calls: 49,
                denied: 0,
                duration_ms: 4210,
            };
            draw_failure(&run, room).iter().map(Line::text).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(failed(RunStatus::Limit, "50 steps\nwere taken", None), "stopped: 50 steps\nwere taken");
        assert_eq!(failed(RunStatus::Interrupted, "stopped by SIGTERM", None), "stopped by SIGTERM");
        assert_eq!(failed(RunStatus::Error, "no such model", Some(14)), "error: no such\nmodel");
    }
}
