//! Draws tool calls: one line when a call ends, and a line with its last output while it runs.

use super::amount::format_elapsed;
use super::fit::{draw_words, indent_line, join_fitting};
use crate::base::text;
use crate::conversation::event::CallTelemetry;
use crate::conversation::message::CallStatus;
use crate::screen::ink::{Ink, Inks, Line};

/// A call that takes at least this long shows its time.
const SHOWN_FROM_MS: u64 = 1000;
/// The most lines of output below a running call.
const LINES_OF_OUTPUT: usize = 5;

/// A call that ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    pub name: &'a str,
    /// The subject of the call, in a few words: `src/main.rs`.
    pub subject: &'a str,
    pub status: CallStatus,
    /// The tool's summary. Only the first line is used.
    pub summary: &'a str,
    pub telemetry: &'a CallTelemetry,
}

/// A running call.
#[derive(Debug, Clone, Copy)]
pub struct RunningCall<'a> {
    /// The helper that made it, `explore#2`; empty for the run itself.
    pub whose: &'a str,
    pub name: &'a str,
    pub subject: &'a str,
    pub elapsed_ms: u64,
    /// The last lines of its output.
    pub output: &'a [String],
}

/// Draws a call that ended: `✓ read_file src/main.rs · 42 lines`. A failure is a word, not only a colour.
pub fn draw_finished(call: &Ended<'_>, room: usize) -> Line {
    let (mark, ink, word) = match call.status {
        CallStatus::Ok => ("✓", Ink::Green, ""),
        // The summary says how the program ended.
        CallStatus::Error if call.telemetry.program_failed() => ("✗", Ink::Yellow, ""),
        CallStatus::Error => ("✗", Ink::Red, "error"),
        CallStatus::Denied => ("✗", Ink::Yellow, "denied"),
        CallStatus::Timeout => ("✗", Ink::Red, "timed out"),
        CallStatus::Cancelled => ("✗", Ink::Yellow, "cancelled"),
    };
    let mut tail = word_outcome(word, call);
    let ran_ms = to_whole(call.telemetry.latency_ms.unwrap_or(0.0));
    if ran_ms >= SHOWN_FROM_MS {
        tail = if tail.is_empty() { String::new() } else { tail + " · " } + &format_elapsed(ran_ms);
    }
    let mut head = Line::from((ink, mark)).add(Inks::PLAIN, " ").add(Ink::Bold, &text::one_line(call.name, room));
    // The tail says how the call ended, so a long subject leaves it two thirds of the room.
    let least = (room / 3).max(head.columns().min(room / 2));
    draw_subject(&mut head, call.subject, room);
    let tail_ink = if ink == Ink::Green { Ink::Dim } else { ink };
    join_fitting(head, draw_words(tail_ink, &tail, room), least, room)
}

/// Draws a call of a helper that ended: `  explore#2 ✓ grep fn main · 3 matches`.
pub fn draw_errand(whose: &str, call: &Ended<'_>, room: usize) -> Line {
    let line = indent_line(draw_words(Ink::Dim, whose, room / 2), room).add(Inks::PLAIN, " ");
    let rest = room.saturating_sub(line.columns());
    line.join(draw_finished(call, rest)).cut(room)
}

/// Draws the lines that a tool shows below the line of its call.
pub fn draw_lines(lines: &str, room: usize) -> Vec<Line> {
    lines.lines().map(|line| indent_line(draw_words(Ink::Dim, line, room), room)).collect()
}

/// Draws a call that begins, for output that is not redrawn: `▸ read_file src/main.rs`.
pub fn draw_label(name: &str, about: &str, room: usize) -> Line {
    draw_words(Ink::Dim, &format!("▸ {name} {about}"), room)
}

/// Draws a line of a command's output, below the line of its call.
pub fn draw_output(line: &str, room: usize) -> Line {
    // A progress bar returns to the start of its line: only the last version of the line is shown.
    let line = line.trim_end_matches('\r');
    let shown = line.rsplit('\r').next().unwrap_or_default();
    // No script needs more bytes per column.
    let shown = text::make_visible(text::take_head(shown, room.saturating_mul(64))).replace('\t', "    ");
    Line::from((Ink::Dim, "  │ ")).add(Ink::Dim, &shown).cut(room)
}

/// Draws running calls in at most `rows` lines: one for each call, with the last lines of its output below it. If rows
/// are few, output is dropped before calls, and the calls that are not shown are counted.
pub fn draw_running(calls: &[RunningCall<'_>], room: usize, rows: usize) -> Vec<Line> {
    if calls.len() > rows {
        let shown = rows.saturating_sub(1);
        let more = calls.len() - shown;
        let plural = if more == 1 { "" } else { "s" };
        let rest = draw_words(Ink::Dim, &format!("… {more} more call{plural}"), room);
        let heads = calls[..shown].iter().map(|call| draw_head(call, room));
        return heads.chain([rest]).take(rows).collect();
    }
    let mut lines = Vec::new();
    for (call, share) in calls.iter().zip(share_rows(calls, rows - calls.len())) {
        lines.push(draw_head(call, room));
        lines.extend(call.output[call.output.len() - share..].iter().map(|line| draw_output(line, room)));
    }
    lines
}

/// The number of lines of output for each call: as many as fit, shared evenly.
fn share_rows(calls: &[RunningCall<'_>], mut rows: usize) -> Vec<usize> {
    let mut shares = vec![0; calls.len()];
    for round in 0..LINES_OF_OUTPUT {
        for (share, call) in shares.iter_mut().zip(calls) {
            if call.output.len() > round && rows > 0 {
                *share += 1;
                rows -= 1;
            }
        }
    }
    shares
}

/// Draws the first line of a running call: `▸ run_command cargo test · 3.2 s`.
fn draw_head(call: &RunningCall<'_>, room: usize) -> Line {
    let mut head = Line::from((Ink::Cyan, "▸")).add(Inks::PLAIN, " ");
    if !call.whose.is_empty() {
        head.push(Ink::Dim, &text::one_line(call.whose, room));
        head.push(Inks::PLAIN, " ");
    }
    head.push(Ink::Bold, &text::one_line(call.name, room));
    draw_subject(&mut head, call.subject, room);
    let time = if call.elapsed_ms < SHOWN_FROM_MS { String::new() } else { format_elapsed(call.elapsed_ms) };
    join_fitting(head, draw_words(Ink::Dim, &time, room), room / 2, room)
}

fn draw_subject(head: &mut Line, subject: &str, room: usize) {
    if !subject.is_empty() {
        head.push(Inks::PLAIN, " ");
        head.push(Inks::PLAIN, &text::one_line(subject, room));
    }
}

/// The outcome in words: `error: no such file`, without repeating a word that the summary begins with.
fn word_outcome(word: &str, call: &Ended<'_>) -> String {
    let summary = call.summary.lines().next().unwrap_or_default();
    if word.is_empty() {
        return count_tests(call, summary).unwrap_or_else(|| summary.to_owned());
    }
    if summary.is_empty() {
        return word.to_owned();
    }
    if summary.to_lowercase().starts_with(word) { summary.to_owned() } else { format!("{word}: {summary}") }
}

/// The number of tests that passed, if the output of the command contained it: `214 passed`. An exit code of 0 is left
/// out.
fn count_tests(call: &Ended<'_>, summary: &str) -> Option<String> {
    let passed = find_metric(call, "tests_passed")?;
    let failed = find_metric(call, "tests_failed").filter(|failed| *failed > 0);
    let failed = failed.map(|failed| format!(", {failed} failed")).unwrap_or_default();
    let words = format!("{passed} passed{failed}");
    let is_well = find_metric(call, "exit_code") == Some(0);
    Some(if is_well { words } else { format!("{summary}, {words}") })
}

fn find_metric(call: &Ended<'_>, name: &str) -> Option<u64> {
    call.telemetry.metrics.get(name).map(|number| to_whole(*number))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is out of range saturates")]
fn to_whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(subject: &str, status: CallStatus, summary: &str, ms: u32, room: usize) -> String {
        let telemetry = CallTelemetry { latency_ms: Some(ms.into()), ..CallTelemetry::default() };
        draw_finished(&Ended { name: "read_file", subject, status, summary, telemetry: &telemetry }, room).text()
    }

    #[test]
    fn a_call_is_one_line_that_says_how_it_ended() {
        use CallStatus::{Cancelled, Denied, Error, Ok, Timeout};
        for (subject, status, summary, ms, expected) in [
            ("a.rs", Ok, "42 lines", 3, "✓ read_file a.rs · 42 lines"),
            ("a.rs", Ok, "42 lines\nbelow", 3, "✓ read_file a.rs · 42 lines"),
            ("a.rs", Ok, "", 3, "✓ read_file a.rs"),
            ("", Ok, "", 3, "✓ read_file"),
            ("a.rs", Ok, "42 lines", 2345, "✓ read_file a.rs · 42 lines · 2.3 s"),
            ("a.rs", Error, "no such\tfile", 3, "✗ read_file a.rs · error: no such file"),
            ("a.rs", Error, "Error: no", 3, "✗ read_file a.rs · Error: no"),
            ("a.rs", Denied, "nobody to ask", 3, "✗ read_file a.rs · denied: nobody to ask"),
            ("a.rs", Timeout, "after 120s", 3, "✗ read_file a.rs · timed out: after 120s"),
            ("a.rs", Cancelled, "", 125_000, "✗ read_file a.rs · cancelled · 2 min 05 s"),
            ("a\u{1b}[31m", Ok, "x\u{202e}y", 3, "✓ read_file a␛[31m · x<U+202E>y"),
        ] {
            assert_eq!(call(subject, status, summary, ms, 80), expected);
        }
    }

    #[test]
    fn a_command_says_how_it_exited_unless_its_tests_say_it_better() {
        for (summary, code, metrics, expected) in [
            ("exit 0", None, vec![("exit_code", 0.0)], "✓ run_command make · exit 0"),
            ("exit 1", Some(CallTelemetry::EXIT), vec![("exit_code", 1.0)], "✗ run_command make · exit 1"),
            ("killed by SIGSEGV", Some(CallTelemetry::SIGNAL), vec![], "✗ run_command make · killed by SIGSEGV"),
            ("exit 0", None, vec![("exit_code", 0.0), ("tests_passed", 214.0)], "✓ run_command make · 214 passed"),
            (
                "exit 101",
                Some(CallTelemetry::EXIT),
                vec![("exit_code", 101.0), ("tests_passed", 213.0), ("tests_failed", 1.0)],
                "✗ run_command make · exit 101, 213 passed, 1 failed",
            ),
        ] {
            let metrics = metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            let error_code = code.map(str::to_owned);
            let telemetry = CallTelemetry { error_code, metrics, ..CallTelemetry::default() };
            let status = if code.is_none() { CallStatus::Ok } else { CallStatus::Error };
            let (name, subject) = ("run_command", "make");
            let call = Ended { name, subject, status, summary, telemetry: &telemetry };
            assert_eq!(draw_finished(&call, 80).text(), expected);
        }
    }

    #[test]
    fn the_subject_gives_way_before_the_outcome() {
        assert_eq!(
            call("src/a/very/long/path/to/a/file.rs", CallStatus::Ok, "42 lines", 0, 39),
            "✓ read_file src/a/very/long… · 42 lines"
        );
        assert_eq!(
            call("日本語のとても長い名前.txt", CallStatus::Ok, "3 lines", 0, 30),
            "✓ read_file 日本語… · 3 lines"
        );
    }

    fn of<'a>(subject: &'a str, elapsed_ms: u64, output: &'a [String]) -> RunningCall<'a> {
        RunningCall { whose: "", name: "run_command", subject, elapsed_ms, output }
    }

    fn lines(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn shown(calls: &[RunningCall<'_>], room: usize, rows: usize) -> String {
        draw_running(calls, room, rows).iter().map(Line::text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_running_call_has_its_last_lines_below_it_and_calls_stand_side_by_side() {
        let (seven, one) = (lines("1 2 3 4 5 6 7"), lines("only"));
        let test = of("cargo test", 3210, &seven);
        assert_eq!(shown(&[test], 40, 10), "▸ run_command cargo test · 3.2 s\n  │ 3\n  │ 4\n  │ 5\n  │ 6\n  │ 7");
        let both = [test, of("make", 20, &one)];
        let expected = "▸ run_command cargo test · 3.2 s\n  │ 6\n  │ 7\n▸ run_command make\n  │ only";
        assert_eq!(shown(&both, 40, 5), expected);
        assert_eq!(shown(&both, 40, 2), "▸ run_command cargo test · 3.2 s\n▸ run_command make");
        assert_eq!(
            draw_lines("✓ look\n▸ write\tit", 40).iter().map(Line::text).collect::<Vec<_>>(),
            ["  ✓ look", "  ▸ write it"]
        );
        let helper = RunningCall { whose: "explore#2", name: "grep", ..of("main", 1000, &[]) };
        assert_eq!(shown(&[helper], 40, 9), "▸ explore#2 grep main · 1.0 s");
    }

    #[test]
    fn calls_beyond_the_rows_are_counted() {
        let calls = [of("a", 0, &[]), of("b", 0, &[]), of("c", 0, &[])];
        assert_eq!(shown(&calls, 40, 2), "▸ run_command a\n… 2 more calls");
        assert_eq!(shown(&calls, 40, 1), "… 3 more calls");
        assert_eq!(shown(&calls, 40, 0), "");
    }

    #[test]
    fn output_is_harmless_and_a_progress_bar_is_shown_as_it_stands() {
        for (line, expected) in [
            ("a\tb\r", "  │ a    b"),
            ("10 %\r20 %\r30 %", "  │ 30 %"),
            ("10 %\r20 %\r\r", "  │ 20 %"),
            ("\u{1b}[2Jx", "  │ ␛[2Jx"),
        ] {
            assert_eq!(draw_output(line, 40).text(), expected, "{line:?}");
        }
    }

    #[test]
    fn nothing_is_wider_or_higher_than_its_room() {
        for room in 1..60 {
            for words in ["x", "日本語日本語日本語日本語", "a long name with many words in it, and more"]
            {
                let telemetry = CallTelemetry { latency_ms: Some(5000.0), ..CallTelemetry::default() };
                let (subject, summary, status) = (words, words, CallStatus::Error);
                let ended = Ended { name: words, subject, status, summary, telemetry: &telemetry };
                let output = vec![words.to_owned(); 9];
                let call = RunningCall { whose: words, name: words, ..of(words, 5000, &output) };
                let mut all = vec![
                    draw_finished(&ended, room),
                    draw_errand(words, &ended, room),
                    draw_label(words, words, room),
                ];
                for rows in 0..9 {
                    let live = draw_running(&[call, call], room, rows);
                    assert!(live.len() <= rows, "{live:?} in {rows}");
                    all.extend(live);
                }
                for line in all {
                    assert!(line.columns() <= room && !line.text().contains('\n'), "{line:?} in {room}");
                }
            }
        }
    }
}
