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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AssistantMessage, ToolMessage};

    fn call(id: &str, name: &str, arguments: &Value) -> ToolCall {
        ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_string() }
    }

    fn step(call: ToolCall, status: CallStatus) -> [Message; 2] {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        let answer = ToolMessage { call_id, name, content: String::new(), status, images: Vec::new() };
        [
            Message::Assistant(AssistantMessage { tool_calls: vec![call], ..AssistantMessage::default() }),
            Message::Tool(answer),
        ]
    }

    fn path(path: &str) -> Value {
        serde_json::json!({ "path": path })
    }

    #[test]
    fn an_id_that_comes_again_names_the_call_of_its_own_reply() {
        let talk: Vec<Message> = [("a.rs", "read_file"), ("b.rs", "grep")]
            .into_iter()
            .flat_map(|(of, name)| step(call("1", name, &path(of)), CallStatus::Ok))
            .collect();
        let answered = answered(&talk);
        assert_eq!((subject(answered[&1]), subject(answered[&3])), ("a.rs".to_owned(), "b.rs".to_owned()));
        for index in [1, 3] {
            assert_eq!(call_of(&talk, index), Some(answered[&index]));
        }
        assert_eq!(call_of(&talk, 0), None);
    }

    #[test]
    fn an_error_is_open_until_the_same_call_goes_well() {
        let test = |of: &str| serde_json::json!({ "command": of });
        let talk: Vec<Message> = [
            (test("one"), CallStatus::Error),
            (test("two"), CallStatus::Timeout),
            (test("three"), CallStatus::Denied),
            (test("one"), CallStatus::Ok),
            (test("two"), CallStatus::Error),
        ]
        .into_iter()
        .flat_map(|(arguments, status)| step(call("c", "run_command", &arguments), status))
        .collect();
        assert_eq!(unresolved(&talk, &answered(&talk)), HashSet::from([9]));
    }

    #[test]
    fn files_are_told_by_what_happened_to_them_last() {
        let git = "--- a/old.rs\n+++ b/patched.rs\n@@ -1 +1 @@\n-a\n+b\n";
        let marked = "*** Begin Patch\n*** Add File: new.rs\n+x\n*** Delete File: gone.rs\n*** End Patch";
        let done = [
            (call("1", "read_file", &path("read.rs")), CallStatus::Ok),
            (call("2", "read_file", &path("changed.rs")), CallStatus::Ok),
            (call("3", "edit_file", &path("changed.rs")), CallStatus::Ok),
            (call("4", "write_file", &path("refused.rs")), CallStatus::Error),
            (call("5", "apply_patch", &serde_json::json!({ "patch": git })), CallStatus::Ok),
            (call("6", "apply_patch", &serde_json::json!({ "patch": marked })), CallStatus::Ok),
            (ToolCall { arguments: "no JSON".to_owned(), ..call("7", "read_file", &Value::Null) }, CallStatus::Ok),
        ];
        let files = files(done.iter().map(|(call, status)| (call, *status)));
        let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(names(&files.read), "read.rs");
        assert_eq!(names(&files.changed), "changed.rs gone.rs new.rs patched.rs");
    }
}
