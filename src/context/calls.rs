//! What the calls of a conversation were about: which result answers which call, which errors were overcome since,
//! which files were read and changed.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use crate::json;
use crate::message::{CallStatus, Message, ToolCall};

/// The call that each result answers, by the index of the result.
pub fn answered(messages: &[Message]) -> HashMap<usize, &ToolCall> {
    let mut open: HashMap<&str, &ToolCall> = HashMap::new();
    let mut found = HashMap::new();
    for (index, message) in messages.iter().enumerate() {
        match message {
            Message::Assistant(reply) => {
                open = reply.tool_calls.iter().map(|call| (call.id.as_str(), call)).collect();
            }
            Message::Tool(answer) => {
                if let Some(call) = open.get(answer.call_id.as_str()) {
                    found.insert(index, *call);
                }
            }
            Message::System { .. } | Message::User { .. } => {}
        }
    }
    found
}

/// The call that the result at `index` answers.
pub fn call_of(messages: &[Message], index: usize) -> Option<&ToolCall> {
    let Message::Tool(answer) = &messages[index] else { return None };
    let reply = messages[..index].iter().rev().find(|message| !matches!(message, Message::Tool(_)))?;
    let Message::Assistant(reply) = reply else { return None };
    reply.tool_calls.iter().find(|call| call.id == answer.call_id)
}

/// What a call is about, in a few words: the argument that says most.
pub fn subject(call: &ToolCall) -> String {
    const TELLING: &[&str] = &["path", "command", "pattern", "query", "url", "name", "id", "question"];
    let Ok(arguments) = json::object(&call.arguments) else { return String::new() };
    let text = |key: &&str| arguments.get(*key).and_then(Value::as_str);
    TELLING.iter().find_map(text).unwrap_or_default().to_owned()
}

/// The results, by index, that failed and were not overcome: no later call of the same tool about the same thing
/// went well.
pub fn unresolved(messages: &[Message], answered: &HashMap<usize, &ToolCall>) -> HashSet<usize> {
    let mut open: HashMap<(String, String), usize> = HashMap::new();
    for (index, message) in messages.iter().enumerate() {
        let (Message::Tool(answer), Some(call)) = (message, answered.get(&index)) else { continue };
        let key = (call.name.clone(), subject(call));
        match answer.status {
            CallStatus::Ok => _ = open.remove(&key),
            CallStatus::Error | CallStatus::Timeout => _ = open.insert(key, index),
            CallStatus::Denied | CallStatus::Cancelled => {}
        }
    }
    open.into_values().collect()
}

/// The files that calls read and changed, sorted; a file that was changed is not among those read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Files {
    pub read: BTreeSet<String>,
    pub changed: BTreeSet<String>,
}

/// Goes through all calls that went well.
pub fn files<'a>(calls: impl Iterator<Item = (&'a ToolCall, CallStatus)>) -> Files {
    let mut files = Files::default();
    for (call, _) in calls.filter(|(_, status)| *status == CallStatus::Ok) {
        match call.name.as_str() {
            "read_file" => _ = files.read.insert(subject(call)),
            "write_file" | "edit_file" => _ = files.changed.insert(subject(call)),
            "apply_patch" => files.changed.extend(patched(call)),
            _ => {}
        }
    }
    files.read.remove("");
    files.changed.remove("");
    files.read.retain(|path| !files.changed.contains(path));
    files
}

/// The paths that a patch names, in either of its two formats.
fn patched(call: &ToolCall) -> Vec<String> {
    const MARKS: &[&str] =
        &["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ", "+++ b/"];
    let arguments = json::object(&call.arguments).unwrap_or_default();
    let given = arguments.get("patch").and_then(Value::as_str).unwrap_or_default();
    let path =
        |line: &str| MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(|path| path.trim().to_owned());
    given.lines().filter_map(path).collect()
}
