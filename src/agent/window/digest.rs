//! The digest that replaces an old result: how it ended, how large it was, its most telling lines, and the handle
//! by which `recall` reads the whole. Code writes it, so it costs nothing and invents nothing. The call before it
//! stays and says what it was about.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::Value;

use crate::base::json;
use crate::base::text;
use crate::conversation::message::{CallAnswer, CallStatus, Handle};

use super::encodings::lines_of;
use super::room::Room;
use super::ruler::Ruler;

/// The longest line of a digest, in columns.
const COLUMNS: usize = 160;
/// Arguments shorter than this stay.
const LONG_ARGUMENT: usize = 400;

/// The tokens of the digest of a result: a tenth of the result's, within bounds.
pub fn choose_room(tokens: u64) -> u64 {
    (tokens / 10).clamp(25, 150)
}

/// The most bytes that a digest of this many can save.
pub fn limit_savings(bytes: usize) -> usize {
    /// A digest of a shorter text would not be shorter.
    const LEAST: usize = 100;
    if bytes < LEAST { 0 } else { bytes - bytes / 12 }
}

/// The most bytes that shortening arguments of this length can save.
pub fn shortable_arguments(bytes: usize) -> usize {
    if bytes <= LONG_ARGUMENT { 0 } else { bytes }
}

/// An answer in at most about `most` tokens; the line that names the rest is always included.
pub fn of_answer(tool: &str, answer: &CallAnswer, handle: Handle, most: u64) -> String {
    let lines = lines_of(&answer.content);
    let note = name_rest(answer, handle, lines.len());
    let opened = open_frame(tool, &note);
    let room = Room::bytes(most).saturating_sub(opened.len() + CLOSED.len());
    let kept = kept_lines(&lines, room, answer.status != CallStatus::Ok);
    if kept.is_empty() { note } else { format!("{opened}{kept}{CLOSED}") }
}

/// The head and the tail of an answer that the model has not read, in at most `most` tokens with the line that names the
/// rest, which is always included. An answer that was shortened before keeps that line.
pub fn of_unread(tool: &str, answer: &CallAnswer, handle: Handle, most: u64, ruler: &Ruler) -> String {
    const GAP: &str = "\n…\n";
    let lines = lines_of(&answer.content);
    let (note, lines) = match lines.split_first() {
        Some((note, lines)) if answer.digested => (note.to_string(), lines),
        _ => (name_rest(answer, handle, lines.len()), &lines[..]),
    };
    let opened = open_frame(tool, &note);
    let room = usize::try_from(most.saturating_sub(ruler.weigh(&format!("{opened}{GAP}{CLOSED}"))));
    let (room, text, rates) = (room.unwrap_or(0), lines.join("\n"), ruler.rates());
    let head = rates.take_tokens(&text, room * 2 / 3, text::take_head);
    let tail = rates.take_tokens(&text[head.len()..], room / 3, text::take_tail);
    if head.len() + tail.len() == 0 { note } else { format!("{opened}{head}{GAP}{tail}\n{CLOSED}") }
}

const CLOSED: &str = "</result>";

fn open_frame(tool: &str, note: &str) -> String {
    format!("<result tool=\"{tool}\" untrusted>\n{note}\n")
}

/// The line that says what was shortened and how to read it.
fn name_rest(answer: &CallAnswer, handle: Handle, lines: usize) -> String {
    let id = answer.spill_id.clone().unwrap_or_else(|| handle.to_string());
    let pictures = match answer.images.len() {
        0 => String::new(),
        1 => ", 1 picture".to_owned(),
        count => format!(", {count} pictures"),
    };
    let (ended, plural) = (name_status(answer.status), if lines == 1 { "" } else { "s" });
    format!("[shortened: {ended}, {lines} line{plural}{pictures}; recall id={id} reads the whole]")
}

/// The arguments of a call without their long texts; `None` if there are none.
pub fn of_arguments(arguments: &str, handle: Handle) -> Option<String> {
    if arguments.len() <= LONG_ARGUMENT {
        return None;
    }
    let mut arguments = json::parse_object(arguments).ok()?;
    let mut shortened = false;
    for value in arguments.values_mut() {
        if let Value::String(argument) = value
            && argument.len() > LONG_ARGUMENT
        {
            let head = text::take_head(argument, LONG_ARGUMENT / 4);
            let all = argument.len();
            *value = Value::String(format!("{head} [shortened: {all} bytes; recall id={handle} reads the whole]"));
            shortened = true;
        }
    }
    shortened.then(|| Value::Object(arguments).to_string())
}

/// A note in place of all arguments of a call, with their beginning; `None` if it would not be shorter.
pub fn instead_of_arguments(arguments: &str, handle: Handle) -> Option<String> {
    const HEAD: usize = 40;
    let (head, all) = (text::take_head(arguments, HEAD), arguments.len());
    let note = format!("{head} [shortened: {all} bytes; recall id={handle} reads the whole]");
    let note = serde_json::json!({ "shortened": note }).to_string();
    (note.len() < all).then_some(note)
}

/// The beginning and the end of a text that is too long.
pub fn of_text(whole: &str, most: usize, id: &str) -> String {
    if whole.len() <= most {
        return whole.to_owned();
    }
    let note = format!("\n[shortened: {} bytes; recall id={id} reads the whole]\n", whole.len());
    let room = most.saturating_sub(note.len());
    let (head, tail) = (text::take_head(whole, room * 2 / 3), text::take_tail(whole, room / 3));
    format!("{}{note}{}", head.trim_end(), tail.trim_start())
}

/// The most valuable lines that fit into the room, in order, with a mark at each gap. The end of a failed result is
/// the most valuable; then lines that look like a failure; then the beginning.
fn kept_lines(lines: &[Cow<'_, str>], room: usize, failed: bool) -> String {
    const MARK: &str = "…\n";
    let count = lines.len();
    let telling: Vec<usize> = (0..count).filter(|at| tells_much(&lines[*at])).collect();
    let ends = |most: usize| (count.saturating_sub(most)..count).rev();
    let mut wanted: Vec<usize> = Vec::new();
    wanted.extend(ends(if failed { 3 } else { 1 }));
    // If much failed: the first failure and the last ones.
    wanted.extend(telling.first().into_iter().chain(telling.iter().rev().take(8)));
    wanted.extend((0..count.min(3)).chain(ends(6)));
    // The remaining room goes alternately to both ends.
    wanted.extend((0..count.div_ceil(2)).flat_map(|at| [at, count - 1 - at]));
    // Room for the marks at both ends.
    let mut left = room.saturating_sub(2 * MARK.len());
    let mut kept = vec![false; count];
    let mut missed = 0;
    for at in wanted {
        if kept[at] {
            continue;
        }
        let bytes = text::cut_to_width(&lines[at], COLUMNS).len() + 1;
        // Room for the mark beside each line.
        if bytes + MARK.len() > left {
            missed += 1;
            if missed > 8 {
                break;
            }
            continue;
        }
        left -= bytes;
        kept[at] = true;
    }
    let mut out = String::new();
    let mut next = 0;
    for at in (0..count).filter(|at| kept[*at]) {
        if at > next {
            out += MARK;
        }
        next = at + 1;
        let _ = writeln!(out, "{}", text::cut_to_width(&lines[at], COLUMNS));
    }
    if next > 0 && next < count {
        out += MARK;
    }
    out
}

/// True if a reader would look for this line.
fn tells_much(line: &str) -> bool {
    const WORDS: &[&str] =
        &["error", "fail", "panic", "exception", "fatal", "traceback", "warning", "assert", "not found", "denied"];
    let line = line.as_bytes();
    let contains = |word: &&str| line.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()));
    WORDS.iter().any(contains)
}

/// How a call ended, in a word for the model.
pub fn name_status(status: CallStatus) -> &'static str {
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
    use crate::base::image::Image;
    use crate::base::tokens;

    const HANDLE: Handle = Handle { number: 12, call: Some(0) };

    fn answer(status: CallStatus, body: &str) -> CallAnswer {
        CallAnswer::of_text(format!("<result tool=\"run_command\" untrusted>\n{body}\n</result>"), status)
    }

    fn digest(answer: &CallAnswer) -> String {
        of_answer("run_command", answer, HANDLE, choose_room(tokens::estimate_tokens(&answer.content)))
    }

    #[test]
    fn a_failed_command_keeps_what_failed_and_how_it_ended() {
        let mut body = "exit 101\nCompiling agent\n".to_owned();
        for number in 0..500 {
            let _ = writeln!(body, "test number {number} ... ok");
        }
        body += "test reads ... FAILED\nerror: left is 1, right is 2\nsee src/lib.rs:7\ntest result: FAILED. 500 passed; 1 failed";
        let answer = answer(CallStatus::Error, &body);
        let content = digest(&answer);
        assert!(
            content.starts_with("<result tool=\"run_command\" untrusted>\n[shortened: failed, 506 lines; "),
            "{content}"
        );
        for line in [
            " recall id=c12.1 reads the whole]\n",
            "exit 101",
            "…",
            "test reads ... FAILED",
            "error: left is 1, right is 2",
            "1 failed\n</result>",
        ] {
            assert!(content.contains(line), "{line}: {content}");
        }
        assert!(tokens::estimate_tokens(&content) <= 150, "{content}");
    }

    #[test]
    fn an_error_in_the_middle_is_found_and_long_lines_are_cut() {
        let body = format!("one\ntwo\nthree\n{}\nERROR: disk full\n{}\nlast", "x\n".repeat(50), "y".repeat(9000));
        let content = digest(&answer(CallStatus::Ok, &body));
        assert!(content.contains("\nERROR: disk full\n"), "{content}");
        assert!(content.contains("last\n</result>") && content.len() < 700, "{content}");
    }

    #[test]
    fn a_digest_grows_with_the_result_from_one_line_on() {
        let small = answer(CallStatus::Ok, &"a line of text\n".repeat(12));
        assert_eq!(digest(&small), "[shortened: ok, 12 lines; recall id=c12.1 reads the whole]");
        let mut last = 0;
        for lines in [12, 100, 300, 1000, 10_000] {
            let answer = answer(CallStatus::Ok, &"a line of text\n".repeat(lines));
            let tokens = tokens::estimate_tokens(&digest(&answer));
            assert!(
                tokens + 8 >= last && tokens <= choose_room(tokens::estimate_tokens(&answer.content)) + 2,
                "{lines}: {tokens}"
            );
            last = tokens;
        }
        assert!(last > 100, "{last}");
    }

    #[test]
    fn pictures_are_named_and_a_handle_of_its_own_reads_more() {
        let image = Image { mime: "image/png".to_owned(), data: String::new(), ..Image::default() };
        let mut answer = answer(CallStatus::Ok, "seen");
        answer.images = vec![image.clone()];
        assert!(digest(&answer).contains(" 1 line, 1 picture; "), "{}", digest(&answer));
        answer.images.push(image);
        answer.spill_id = Some("r7".to_owned());
        assert!(digest(&answer).contains(", 2 pictures; recall id=r7 reads"), "{}", digest(&answer));
    }

    #[test]
    fn long_arguments_stay_json_and_short_ones_stay() {
        let long = "z".repeat(5000);
        let given = format!(r#"{{"path":"a.txt","content":"{long}"}}"#);
        let handle = Handle::item(3);
        let shortened = of_arguments(&given, handle).expect("shortened");
        let arguments: Value = serde_json::from_str(&shortened).expect("JSON");
        assert_eq!(arguments["path"], "a.txt");
        let content = arguments["content"].as_str().expect("a text");
        assert!(content.ends_with("zz [shortened: 5000 bytes; recall id=m3 reads the whole]"), "{content}");
        for stays in [shortened.as_str(), r#"{"path":"a.txt"}"#, &"no json ".repeat(100)] {
            assert_eq!(of_arguments(stays, handle), None, "{stays}");
        }
    }
}
