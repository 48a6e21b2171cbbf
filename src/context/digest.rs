//! What stands in the place of an old result: what was called, how it ended, how much there was, the lines that tell
//! something, and the id by which `recall` reads the whole. Made in code, so it costs nothing and invents nothing.

use std::fmt::Write;

use serde_json::Value;

use crate::json;
use crate::message::{CallStatus, Message, ToolCall, ToolMessage};
use crate::text;

use super::calls;

/// The longest line of a digest, in columns.
const COLUMNS: usize = 160;
/// Arguments that are shorter than this stay.
const LONG_ARGUMENT: usize = 400;

/// Lines that a digest keeps.
struct Kept {
    head: usize,
    telling: usize,
    tail: usize,
}

/// The digest of a result, in the frame that results have.
pub fn of_result(call: Option<&ToolCall>, answer: &ToolMessage, id: Option<&str>) -> Message {
    let body = inner(&answer.content);
    let mut out = format!("<result tool=\"{}\" untrusted>\n", answer.name);
    let subject = call.map(calls::subject).unwrap_or_default();
    let subject = text::one_line(&subject, COLUMNS);
    let named = if subject.is_empty() { answer.name.clone() } else { format!("{} {subject}", answer.name) };
    let (lines, bytes) = (body.lines().count(), body.len());
    let _ = writeln!(
        out,
        "[{}{}]",
        note(id),
        format_args!("{named}: {}, {lines} lines, {bytes} bytes", word(answer.status))
    );
    let failed = answer.status != CallStatus::Ok;
    let kept = if failed { Kept { head: 2, telling: 8, tail: 6 } } else { Kept { head: 3, telling: 5, tail: 2 } };
    for line in telling_lines(body, &kept) {
        out += &line;
        out.push('\n');
    }
    out += "</result>";
    Message::Tool(ToolMessage { content: out, images: Vec::new(), ..answer.clone() })
}

/// The arguments of a call with their long texts taken out; `None` where there are none.
pub fn of_arguments(call: &ToolCall, id: Option<&str>) -> Option<ToolCall> {
    let mut arguments = json::object(&call.arguments).ok()?;
    let mut shortened = false;
    for value in arguments.values_mut() {
        if let Value::String(argument) = value
            && argument.len() > LONG_ARGUMENT
        {
            let head = text::head(argument, LONG_ARGUMENT / 4);
            *value = Value::String(format!("{head} [{}{} bytes in all]", note(id), argument.len()));
            shortened = true;
        }
    }
    shortened.then(|| ToolCall { arguments: Value::Object(arguments).to_string(), ..call.clone() })
}

/// A text that is too long, by its beginning and its end.
pub fn of_text(whole: &str, most: usize, id: Option<&str>) -> String {
    if whole.len() <= most {
        return whole.to_owned();
    }
    let (head, tail) = (text::head(whole, most * 2 / 3), text::tail(whole, most / 3));
    format!("{head}\n[{}{} bytes in all]\n{tail}", note(id), whole.len())
}

/// The sentence that says what happened, the same everywhere.
fn note(id: Option<&str>) -> String {
    id.map_or("shortened; ".to_owned(), |id| format!("shortened; recall id={id} reads the whole; "))
}

/// The text between the two tags of a result; other encodings as they are.
pub fn inner(content: &str) -> &str {
    let Some(opened) = content.strip_prefix("<result ") else { return content };
    let body = opened.split_once('\n').map_or(opened, |(_, body)| body);
    body.strip_suffix("</result>").unwrap_or(body).trim_end()
}

/// The first lines, those that tell of a failure or a match, the last ones; with a mark where lines are missing.
fn telling_lines(body: &str, kept: &Kept) -> Vec<String> {
    let lines: Vec<&str> = body.lines().collect();
    let last = lines.len().saturating_sub(kept.tail);
    let telling = (kept.head..last).filter(|at| tells(lines[*at])).take(kept.telling);
    let mut wanted: Vec<usize> = (0..kept.head.min(lines.len())).chain(telling).chain(last..lines.len()).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut out = Vec::new();
    let mut next = 0;
    for at in wanted {
        if at > next {
            out.push("…".to_owned());
        }
        next = at + 1;
        out.push(text::cut(lines[at], COLUMNS).into_owned());
    }
    out
}

/// Whether a line is one that somebody would look for.
fn tells(line: &str) -> bool {
    const WORDS: &[&str] =
        &["error", "fail", "panic", "exception", "fatal", "traceback", "warning", "assert", "not found", "denied"];
    let line = line.as_bytes();
    let contains = |word: &&str| line.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()));
    WORDS.iter().any(contains)
}

fn word(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Ok => "ok",
        CallStatus::Error => "failed",
        CallStatus::Denied => "not allowed",
        CallStatus::Timeout => "timed out",
        CallStatus::Cancelled => "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(name: &str, status: CallStatus, body: &str) -> ToolMessage {
        let content = format!("<result tool=\"{name}\" untrusted>\n{body}\n</result>");
        ToolMessage { call_id: "c".to_owned(), name: name.to_owned(), content, status, images: Vec::new() }
    }

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
    }

    #[test]
    fn a_failed_command_keeps_what_failed_and_how_it_ended() {
        let mut body = "exit 101\nCompiling agent\n".to_owned();
        for number in 0..500 {
            let _ = writeln!(body, "test number {number} ... ok");
        }
        body += "test reads ... FAILED\nerror: left is 1, right is 2\nsee src/lib.rs:7\ntest result: FAILED. 500 passed; 1 failed";
        let call = call("run_command", r#"{"command":"cargo test"}"#);
        let digest = of_result(Some(&call), &answer("run_command", CallStatus::Error, &body), Some("r7"));
        let content = digest.content();
        assert!(
            content.starts_with(
                "<result tool=\"run_command\" untrusted>\n[shortened; recall id=r7 reads the whole; run_command cargo \
                 test: failed, 506 lines, "
            ),
            "{content}"
        );
        for line in
            ["exit 101", "…", "test reads ... FAILED", "error: left is 1, right is 2", "1 failed\n</result>"]
        {
            assert!(content.contains(line), "{line}: {content}");
        }
        assert!(content.len() < 700, "{content}");
    }

    #[test]
    fn an_error_in_the_middle_is_found_and_long_lines_are_cut() {
        let body = format!("one\ntwo\nthree\n{}\nERROR: disk full\n{}\nlast", "x\n".repeat(50), "y".repeat(9000));
        let digest = of_result(None, &answer("grep", CallStatus::Ok, &body), None);
        let content = digest.content();
        assert!(content.contains("[shortened; grep: ok, "), "{content}");
        assert!(content.contains("\n…\nERROR: disk full\n"), "{content}");
        assert!(content.contains("yyy…\nlast\n</result>") && content.len() < 500, "{content}");
    }

    #[test]
    fn long_arguments_stay_json_and_short_ones_stay() {
        let long = "z".repeat(5000);
        let given = call("write_file", &format!(r#"{{"path":"a.txt","content":"{long}"}}"#));
        let shortened = of_arguments(&given, Some("r1")).expect("shortened");
        let arguments: Value = serde_json::from_str(&shortened.arguments).expect("JSON");
        assert_eq!(arguments["path"], "a.txt");
        let content = arguments["content"].as_str().expect("a text");
        assert!(content.ends_with("zz [shortened; recall id=r1 reads the whole; 5000 bytes in all]"), "{content}");
        assert_eq!(of_arguments(&call("read_file", r#"{"path":"a.txt"}"#), None), None);
        assert_eq!(of_arguments(&call("write_file", "no json"), None), None);
    }
}
