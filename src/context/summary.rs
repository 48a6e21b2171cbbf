//! A summary of what goes: its fixed form, what makes one unusable, and one made in code, which cannot fail.
//!
//! A model writes the parts. What code knows better (the files, the plan, the person's own words) code adds, so that
//! no summary can lose or bend it.

use std::fmt::Write;

use serde_json::Value;

use crate::message::{AssistantMessage, CallStatus, Message, Origin, ToolCall};
use crate::present;
use crate::text;

use super::calls::{self, Files};
use super::digest;
use super::notes::{LONG_MESSAGE, Room};

/// The parts of a summary in their order: the heading, and what belongs there.
pub const PARTS: [(&str, &str); 8] = [
    ("Goal", "what the person wants in the end, in one or two sentences"),
    ("Constraints", "what the person demanded or ruled out, in their own words"),
    ("Decisions", "what was decided, with the reason, names and numbers exact"),
    ("Done", "what is finished and how that is known"),
    ("In progress", "what was begun and is not finished, and where it stands"),
    ("Do not do again", "what was tried and failed, or is done and must not be repeated"),
    ("Next", "the next steps, the first one concrete"),
    ("Open errors", "errors that are not solved, their messages verbatim"),
];

/// What code knows of the messages that go.
pub struct Record<'a> {
    /// The messages as they were said, in order.
    pub gone: Vec<&'a Message>,
    /// What the person asked for last, which stays.
    pub asked: Option<&'a str>,
    /// The plan of the session, where there is one.
    pub plan: Option<&'a Value>,
    /// By which `recall` reads all of them.
    pub recall: Option<&'a str>,
    pub room: Room,
}

/// Why a summary that a model wrote cannot be used; `None` when it can.
#[must_use]
pub fn mistake_in(summary: &str, room: Room) -> Option<String> {
    let most = Room::bytes(room.summary);
    if summary.trim().is_empty() {
        return Some("it is empty".to_owned());
    }
    if let Some((missing, _)) = PARTS.iter().find(|(part, _)| section(summary, part).is_none()) {
        return Some(format!("the part `## {missing}` is missing"));
    }
    if section(summary, PARTS[0].0).is_none_or(|goal| goal.trim().is_empty()) {
        return Some("the goal is empty".to_owned());
    }
    (summary.len() > most).then(|| format!("it has {} bytes, more than {most}", summary.len()))
}

/// The text below a heading.
fn section<'s>(summary: &'s str, part: &str) -> Option<&'s str> {
    let mut offset = 0;
    for line in summary.split_inclusive('\n') {
        offset += line.len();
        let heading = line.trim().trim_start_matches('#').trim().trim_end_matches(':').trim_matches('*');
        if line.trim_start().starts_with('#') && heading.eq_ignore_ascii_case(part) {
            let rest = &summary[offset..];
            return Some(rest.find("\n#").map_or(rest, |end| &rest[..end]));
        }
    }
    None
}

/// The message that stands for what goes: `body` is the parts, by a model or in code.
#[must_use]
pub fn message(record: &Record<'_>, body: &str) -> Message {
    let read =
        record.recall.map_or(String::new(), |id| format!(" recall id={id} reads them, or search with a query."));
    let mut out = format!(
        "[{} earlier messages of this conversation made room for this summary.{read} It is a record and no request: \
         the work goes on where it stood.]\n\n{}\n",
        record.gone.len(),
        present::neutralise(body.trim())
    );
    let Files { read, changed } = files(&record.gone);
    for (heading, files) in [("Files read", read), ("Files changed", changed)] {
        if !files.is_empty() {
            let _ = write!(out, "\n## {heading}\n");
            for file in files {
                let _ = writeln!(out, "- {}", text::one_line(&file, 200));
            }
        }
    }
    if let Some(plan) = record.plan.and_then(Value::as_array).filter(|items| !items.is_empty()) {
        out += "\n## Plan\n";
        for item in plan {
            let field = |key: &str| item[key].as_str().unwrap_or_default();
            let _ = writeln!(out, "- [{}] {}", field("status"), text::one_line(field("text"), 300));
        }
    }
    out += &quoted(record);
    Message::User { content: out, origin: Origin::Summary }
}

/// What the person said, verbatim and in order. The first message says what it is all about and always stays; of the
/// others the newest.
fn quoted(record: &Record<'_>) -> String {
    let said: Vec<&str> =
        record.gone.iter().filter(|message| message.is_from_person()).map(|message| message.content()).collect();
    let Some((first, later)) = said.split_first() else { return String::new() };
    let quote = |text: &str| {
        let text = digest::of_text(text, LONG_MESSAGE, record.recall);
        text.lines().fold(String::new(), |quoted, line| quoted + "> " + line + "\n")
    };
    let mut blocks = vec![quote(first)];
    let mut room = Room::bytes(record.room.quoted).saturating_sub(blocks[0].len());
    let mut newest: Vec<String> = Vec::new();
    for text in later.iter().rev() {
        let block = quote(text);
        if block.len() > room {
            break;
        }
        room -= block.len();
        newest.push(block);
    }
    if newest.len() < later.len() {
        blocks.push(format!("({} messages are left out here)\n", later.len() - newest.len()));
    }
    blocks.extend(newest.into_iter().rev());
    format!(
        "\n## What the person said until then, verbatim, the oldest first (handled, unless said otherwise above)\n{}",
        blocks.join("\n")
    )
}

/// The parts, as far as they can be told without understanding.
#[must_use]
pub fn in_code(record: &Record<'_>) -> String {
    const COLUMNS: usize = 240;
    // Three parts are lists that can be long.
    let most = Room::bytes(record.room.summary) / 4;
    let line = |text: &str| format!("- {}", text::one_line(text, COLUMNS));
    let words: Vec<String> = replies(&record.gone)
        .filter(|reply| !reply.content.trim().is_empty())
        .map(|reply| line(&reply.content))
        .collect();
    let calls = answered(&record.gone);
    let done = calls
        .iter()
        .filter(|(call, status)| *status == CallStatus::Ok && !READING.contains(&call.name.as_str()))
        .map(|(call, _)| line(&format!("{} {}", call.name, calls::subject(call))));
    let failed = calls
        .iter()
        .filter(|(_, status)| *status != CallStatus::Ok)
        .map(|(call, status)| line(&format!("{} {}: {status:?}", call.name, calls::subject(call))));
    let newest = |mut lines: Vec<String>| {
        lines.dedup();
        let mut room = most;
        let fits = |line: &&String| {
            let fits = line.len() < room;
            room = room.saturating_sub(line.len() + 1);
            fits
        };
        let kept = lines.iter().rev().take_while(fits).count();
        lines.drain(..lines.len() - kept);
        if lines.is_empty() { "- nothing known".to_owned() } else { lines.join("\n") }
    };
    let goal = record.asked.map_or_else(|| "- nothing known".to_owned(), line);
    let last = words.last().cloned().unwrap_or_else(|| "- nothing known".to_owned());
    let texts = [
        goal,
        "- the person's own words stand below".to_owned(),
        newest(words),
        newest(done.collect()),
        last,
        "- what stands under Done has run".to_owned(),
        "- go on with what the person said last".to_owned(),
        newest(failed.collect()),
    ];
    let parts = PARTS.iter().zip(texts).map(|((part, _), text)| format!("## {part}\n{text}\n"));
    parts.collect::<Vec<_>>().join("\n")
}

/// Calls of these change nothing.
const READING: &[&str] = &[
    "read_file",
    "list_dir",
    "glob",
    "grep",
    "recall",
    "todo",
    "find_tools",
    "load_skill",
    "load_skill_reference",
];

fn replies<'a>(messages: &[&'a Message]) -> impl Iterator<Item = &'a AssistantMessage> {
    messages.iter().filter_map(|message| if let Message::Assistant(reply) = message { Some(reply) } else { None })
}

fn files(messages: &[&Message]) -> Files {
    calls::files(answered(messages).into_iter())
}

/// The calls and how they ended.
fn answered<'a>(messages: &[&'a Message]) -> Vec<(&'a ToolCall, CallStatus)> {
    let mut open: Vec<&ToolCall> = Vec::new();
    let mut found = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(reply) => open = reply.tool_calls.iter().collect(),
            Message::Tool(answer) => {
                let call = open.iter().find(|call| call.id == answer.call_id);
                found.extend(call.map(|call| (*call, answer.status)));
            }
            Message::System { .. } | Message::User { .. } => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::ToolMessage;

    const ROOM: Room = Room { summary: 500, quoted: 100 };

    fn parts() -> String {
        PARTS.iter().fold(String::new(), |out, (part, _)| out + "## " + part + "\n- some\n")
    }

    #[test]
    fn a_summary_is_taken_when_it_has_every_part_a_goal_and_room() {
        let good = parts();
        for (summary, mistake) in [
            (good.clone(), None),
            (good.replace("## ", "### **").replace("\n-", "**:\n-"), None),
            (good.to_uppercase(), None),
            (format!("Here it is.\n{good}"), None),
            (" \n".to_owned(), Some("it is empty")),
            (good.replace("## Decisions\n", ""), Some("the part `## Decisions` is missing")),
            (good.replace("## Goal\n- some", "## Goal\n"), Some("the goal is empty")),
            (good.clone() + &"x".repeat(2000), Some("more than 2000")),
        ] {
            let found = mistake_in(&summary, ROOM);
            let is_as_said = match (&found, mistake) {
                (Some(found), Some(mistake)) => found.contains(mistake),
                (found, mistake) => found.is_none() && mistake.is_none(),
            };
            assert!(is_as_said, "{found:?} of {summary}");
        }
    }

    fn called(name: &str, arguments: &Value, status: CallStatus) -> [Message; 2] {
        let call = ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments: arguments.to_string() };
        let reply = AssistantMessage {
            content: format!("now {name}"),
            tool_calls: vec![call],
            ..AssistantMessage::default()
        };
        let (call_id, name, images) = ("c".to_owned(), name.to_owned(), Vec::new());
        [
            Message::Assistant(reply),
            Message::Tool(ToolMessage { call_id, name, content: String::new(), status, images }),
        ]
    }

    fn record<'a>(gone: &'a [Message], plan: Option<&'a Value>) -> Record<'a> {
        Record {
            gone: gone.iter().collect(),
            asked: Some("the last question"),
            plan,
            recall: Some("r7"),
            room: ROOM,
        }
    }

    #[test]
    fn code_adds_what_it_knows_better() {
        let gone = [
            [Message::user("Mend it.\nNever touch a.rs.")].as_slice(),
            &called("read_file", &json!({ "path": "b.rs" }), CallStatus::Ok),
            &called("edit_file", &json!({ "path": "c.rs" }), CallStatus::Ok),
        ]
        .concat();
        let plan = json!([{ "text": "mend c.rs", "status": "done" }, { "text": "test", "status": "open" }]);
        let message = message(&record(&gone, Some(&plan)), "## Goal\n<result>not a tag</result>");
        let text = message.content();
        assert!(matches!(message, Message::User { origin: Origin::Summary, .. }));
        assert!(
            text.starts_with("[5 earlier messages of this conversation made room for this summary. recall id=r7")
        );
        for part in [
            "\n## Files read\n- b.rs\n",
            "\n## Files changed\n- c.rs\n",
            "\n## Plan\n- [done] mend c.rs\n- [open] test\n",
            "\n> Mend it.\n> Never touch a.rs.\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("<result>"), "{text}");
    }

    #[test]
    fn the_first_and_the_newest_words_of_the_person_are_quoted() {
        let said: Vec<Message> =
            (0..20).map(|number| Message::user(format!("demand {number} {}", "x".repeat(60)))).collect();
        let text = quoted(&record(&said, None));
        assert!(text.contains("> demand 0 ") && text.contains("> demand 19 "), "{text}");
        let quotes = text.lines().filter(|line| line.starts_with("> ")).count();
        assert!(text.contains(&format!("({} messages are left out here)", 20 - quotes)), "{text}");
        assert!(text.len() < Room::bytes(ROOM.quoted) + 200, "{}", text.len());
        assert_eq!(quoted(&record(&[], None)), "");
    }

    #[test]
    fn without_a_model_the_parts_come_from_what_was_said_and_done() {
        let gone = [
            called("read_file", &json!({ "path": "b.rs" }), CallStatus::Ok),
            called("run_command", &json!({ "command": "cargo fmt" }), CallStatus::Ok),
            called("run_command", &json!({ "command": "cargo test" }), CallStatus::Error),
        ]
        .concat();
        let body = in_code(&record(&gone, None));
        assert_eq!(mistake_in(&body, ROOM), None, "{body}");
        let part = |name: &str| section(&body, name).expect("a part").trim().to_owned();
        assert_eq!(part("Goal"), "- the last question");
        assert_eq!(part("Decisions"), "- now read_file\n- now run_command");
        assert_eq!(part("Done"), "- run_command cargo fmt");
        assert_eq!(part("Open errors"), "- run_command cargo test: Error");
        assert_eq!(mistake_in(&in_code(&record(&[], None)), ROOM), None);
        let talk: Vec<Message> = (0..500).flat_map(|_| gone.clone()).collect();
        assert_eq!(mistake_in(&in_code(&record(&talk, None)), ROOM), None, "however much there is");
    }
}
