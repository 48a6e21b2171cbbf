//! The lines of progress: pure functions from facts to text, fitted to a terminal's columns.

use crate::event::{CallTelemetry, Compressed, RunCompleted, RunStatus};
use crate::ink::{Ink, Style};
use crate::message::CallStatus;
use crate::text;

/// Columns where stderr is no terminal: long enough to read, short enough for a log.
const COLUMNS_OF_A_LOG: usize = 200;
/// The longest reason: a provider's own words fit, a whole web page does not.
const COLUMNS_OF_A_REASON: usize = 1000;

/// The columns a line may take. The last column stays free, because some terminals wrap when it is filled.
pub fn room(width: Option<usize>) -> usize {
    width.map_or(COLUMNS_OF_A_LOG, |width| width.saturating_sub(1).max(1))
}

/// The label of a running call: `read_file src/main.rs`.
pub fn label(name: &str, subject: &str, room: usize) -> String {
    text::one_line(&format!("{name} {subject}"), room)
}

/// The line of running calls, with their last output: `run_command cargo test (and 2 more) │ test a ... ok`.
pub fn running(name: &str, subject: &str, others: usize, output: &str, room: usize) -> String {
    let more = if others == 0 { String::new() } else { format!(" (and {others} more)") };
    let bar = if output.is_empty() { "" } else { " │ " };
    text::one_line(&format!("{name} {subject}{more}{bar}{output}"), room)
}

/// The line of a skill that was loaded or unloaded.
pub fn skill(name: &str, how: &str, tokens: u64, room: usize) -> String {
    text::one_line(&format!("  skill {name} {how}, {tokens} tokens"), room)
}

/// The line of a finished call: `● read_file src/main.rs · 42 lines`. A failure is a word, not only a colour.
pub fn finished(
    name: &str,
    subject: &str,
    status: CallStatus,
    summary: &str,
    telemetry: &CallTelemetry,
    room: usize,
    style: Style,
) -> String {
    let (mark, ink, word) = match status {
        CallStatus::Ok => ("●", Ink::Green, ""),
        CallStatus::Error => ("✗", Ink::Red, "error"),
        CallStatus::Denied => ("✗", Ink::Yellow, "denied"),
        CallStatus::Timeout => ("✗", Ink::Red, "timed out"),
        CallStatus::Cancelled => ("✗", Ink::Yellow, "cancelled"),
    };
    let mut tail = outcome(word, summary);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is out of range saturates")]
    let ran_ms = telemetry.latency_ms.unwrap_or(0.0) as u64;
    if ran_ms >= 1000 {
        tail = if tail.is_empty() { String::new() } else { tail + " · " } + &seconds(ran_ms);
    }
    let (head, tail) = fit(&format!("{mark} {name}"), subject, &tail, room);
    // If not even the mark fits, there is nothing to paint.
    let (mark, head) = head.strip_prefix(mark).map_or(("", head.as_str()), |rest| (mark, rest));
    let tail_ink = if word.is_empty() { Ink::Dim } else { ink };
    format!("{}{head}{}", style.paint(ink, mark), style.paint(tail_ink, &tail))
}

/// `error: no such file`, without repeating the word.
fn outcome(word: &str, summary: &str) -> String {
    if word.is_empty() || summary.to_lowercase().starts_with(word) {
        return summary.to_owned();
    }
    if summary.is_empty() { word.to_owned() } else { format!("{word}: {summary}") }
}

/// Fits `head subject` and ` · tail` into `room` columns. The subject is cut first, down to a third of the line,
/// because the tail says how the call ended; then the tail is cut.
fn fit(head: &str, subject: &str, tail: &str, room: usize) -> (String, String) {
    let whole = text::one_line(&format!("{head} {subject}"), usize::MAX / 8);
    if tail.is_empty() {
        return (text::cut(&whole, room).into_owned(), String::new());
    }
    let tail = format!(" · {}", text::one_line(tail, room));
    let wanted = text::columns(&whole).min((room / 3).max(text::columns(head).min(room / 2)));
    let tail = text::cut(&tail, room - wanted).into_owned();
    let head = text::cut(&whole, room - text::columns(&tail)).into_owned();
    (head, tail)
}

/// `retry 2/5 in 1.2s: HTTP 429 …`
pub fn retry(attempt: u32, attempts: u32, delay_ms: u64, cause: &str, room: usize) -> String {
    text::one_line(&format!("retry {attempt}/{attempts} in {}: {cause}", seconds(delay_ms)), room)
}

/// The line of a compression: `context 81.0k → 49.2k tokens · 12 results shortened, 30 messages summarised`.
pub fn compressed(done: &Compressed, room: usize) -> String {
    let counts = [
        (done.masked, "result", "shortened"),
        (done.summarized, "message", "summarised"),
        (done.unloaded, "skill text", "unloaded"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0).map(|(count, what, how)| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {what}{plural} {how}")
    });
    let counts = counts.collect::<Vec<_>>().join(", ");
    let (before, after) = (tokens(done.tokens_before), tokens(done.tokens_after));
    text::one_line(&format!("  context {before} → {after} tokens · {counts}"), room)
}

/// The reason of a failed run, shown last. It may have several lines.
pub fn failure(run: &RunCompleted) -> String {
    let word = match run.status {
        RunStatus::Completed | RunStatus::Error => "error",
        RunStatus::Limit | RunStatus::Interrupted => "stopped",
    };
    let lines = run.reason.lines().map(|line| text::one_line(line, COLUMNS_OF_A_REASON));
    let reason = lines.collect::<Vec<_>>().join("\n");
    // `stopped by SIGTERM` begins with the word already.
    if reason.starts_with(word) { reason } else { format!("{word}: {reason}") }
}

/// The cost of a run: `1.2k in (1.0k cached) · 420 out · $0.0031 · 4.2s`.
pub fn footer(run: &RunCompleted, is_scripted: bool, room: usize) -> String {
    let usage = &run.usage;
    let about = if usage.estimated { "~" } else { "" };
    let cached = match usage.cached_input_tokens {
        0 => String::new(),
        cached => format!(" ({} cached)", tokens(cached)),
    };
    // A scripted model uses no tokens.
    let used = match usage.total() {
        0 => String::new(),
        _ => format!(
            "{about}{} in{cached} · {about}{} out · ",
            tokens(usage.input_tokens),
            tokens(usage.output_tokens)
        ),
    };
    let about = if usage.estimated || usage.cost_about { "~" } else { "" };
    let cost = match run.cost_usd {
        Some(cost) => format!("{about}${cost:.4} · "),
        None if usage.total() > 0 && !is_scripted => "cost unknown · ".to_owned(),
        None => String::new(),
    };
    text::one_line(&format!("{used}{cost}{}", seconds(run.duration_ms)), room)
}

fn tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// `340ms`, `1.2s`, `2m05s`
fn seconds(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        _ => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Usage;

    fn call(subject: &str, status: CallStatus, summary: &str, ms: u32, room: usize) -> String {
        let telemetry = CallTelemetry { latency_ms: Some(ms.into()), ..CallTelemetry::default() };
        finished("read_file", subject, status, summary, &telemetry, room, Style::default())
    }

    #[test]
    fn a_call_is_one_line_that_says_how_it_ended() {
        use CallStatus::{Cancelled, Denied, Error, Ok, Timeout};
        for (subject, status, summary, ms, expected) in [
            ("a.rs", Ok, "42 lines", 3, "● read_file a.rs · 42 lines"),
            ("a.rs", Ok, "", 3, "● read_file a.rs"),
            ("", Ok, "", 3, "● read_file"),
            ("a.rs", Ok, "42 lines", 2345, "● read_file a.rs · 42 lines · 2.3s"),
            ("a.rs", Error, "no such\nfile", 3, "✗ read_file a.rs · error: no such file"),
            ("a.rs", Error, "Error: no", 3, "✗ read_file a.rs · Error: no"),
            ("a.rs", Denied, "nobody to ask", 3, "✗ read_file a.rs · denied: nobody to ask"),
            ("a.rs", Timeout, "after 120s", 3, "✗ read_file a.rs · timed out: after 120s"),
            ("a.rs", Cancelled, "", 125_000, "✗ read_file a.rs · cancelled · 2m05s"),
            ("a\u{1b}[31m", Ok, "x\u{202e}y", 3, "● read_file a␛[31m · x<U+202E>y"),
        ] {
            assert_eq!(call(subject, status, summary, ms, 80), expected);
        }
    }

    #[test]
    fn the_subject_gives_way_before_the_outcome_and_nothing_is_wider_than_the_terminal() {
        assert_eq!(
            call("src/a/very/long/path/to/a/file.rs", CallStatus::Ok, "42 lines", 0, 39),
            "● read_file src/a/very/long… · 42 lines"
        );
        assert_eq!(
            call("日本語のとても長い名前.txt", CallStatus::Ok, "3 lines", 0, 30),
            "● read_file 日本語… · 3 lines"
        );
        for room in 1..60 {
            for text in ["x", "日本語日本語日本語日本語", "a long name with many words in it, and more"]
            {
                let line = call(text, CallStatus::Error, text, 5000, room);
                assert!(text::columns(&line) <= room, "{line:?} in {room}");
            }
        }
    }

    #[test]
    fn what_a_run_cost_is_one_line_and_a_reason_keeps_its_lines() {
        let mut run = RunCompleted {
            status: RunStatus::Limit,
            exit_code: 8,
            reason: "50 steps\nwere taken".to_owned(),
            result: "x".into(),
            outputs: None,
            usage: Usage { input_tokens: 1234, cached_input_tokens: 1024, output_tokens: 420, ..Usage::default() },
            cost_usd: Some(0.0031),
            turns: 1,
            steps: 50,
            tool_calls: 49,
            denied: 0,
            duration_ms: 4210,
        };
        assert_eq!(failure(&run), "stopped: 50 steps\nwere taken");
        let mut shown = |change: fn(&mut RunCompleted), is_scripted| {
            change(&mut run);
            footer(&run, is_scripted, 80)
        };
        assert_eq!(shown(|_| {}, false), "1.2k in (1.0k cached) · 420 out · $0.0031 · 4.2s");
        let about = shown(|run| run.usage.cost_about = true, false);
        assert_eq!(about, "1.2k in (1.0k cached) · 420 out · ~$0.0031 · 4.2s");
        let unknown = shown(|run| run.cost_usd = None, false);
        assert_eq!(unknown, "1.2k in (1.0k cached) · 420 out · cost unknown · 4.2s");
        assert_eq!(shown(|_| {}, true), "1.2k in (1.0k cached) · 420 out · 4.2s");
        assert_eq!(retry(2, 5, 1200, "HTTP 429", 80), "retry 2/5 in 1.2s: HTTP 429");
    }
}
