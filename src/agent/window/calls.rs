//! Facts about the calls of a conversation: which errors were overcome, which files were read and changed.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use crate::base::json;
use crate::conversation::message::{CallStatus, Item, ToolCall};

/// The subject of a call in a few words: its most telling argument.
pub fn name_subject(call: &ToolCall) -> String {
    const TELLING: &[&str] = &["path", "command", "pattern", "query", "url", "name", "id", "question"];
    let Ok(arguments) = json::parse_object(&call.arguments) else { return String::new() };
    let text = |key: &&str| arguments.get(*key).and_then(Value::as_str);
    TELLING.iter().find_map(text).unwrap_or_default().to_owned()
}

/// The answers, by item and call, that stay whole as long as possible: unresolved errors and the newest plan.
pub fn find_telling(items: &[Item]) -> HashSet<(usize, usize)> {
    let mut telling = find_unresolved(items);
    let plans = list_answered(items).filter(|(_, call, _)| call.name == "todo").map(|(at, ..)| at);
    telling.extend(plans.last());
    telling
}

/// The failed answers, by item and call, that were not overcome: no later call of the same tool with the same
/// subject succeeded.
pub fn find_unresolved(items: &[Item]) -> HashSet<(usize, usize)> {
    let mut open: HashMap<(&str, String), (usize, usize)> = HashMap::new();
    for (at, call, status) in list_answered(items) {
        let key = (call.name.as_str(), name_subject(call));
        match status {
            CallStatus::Ok => _ = open.remove(&key),
            CallStatus::Error | CallStatus::Timeout => _ = open.insert(key, at),
            CallStatus::Denied | CallStatus::Cancelled => {}
        }
    }
    open.into_values().collect()
}

/// The answered calls, by item and call, and how they ended.
fn list_answered(items: &[Item]) -> impl Iterator<Item = ((usize, usize), &ToolCall, CallStatus)> {
    let steps = items.iter().enumerate().filter_map(|(index, item)| Some((index, item.as_step()?)));
    steps.flat_map(|(index, step)| {
        let calls = step.calls().enumerate();
        calls.filter_map(move |(at, call)| Some(((index, at), &call.request, call.answer.as_ref()?.status)))
    })
}

/// The files that calls read and changed, sorted; a changed file is not listed as read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    pub read: BTreeSet<String>,
    pub changed: BTreeSet<String>,
}

/// Collects the files of all calls that succeeded.
pub fn collect_files<'a>(calls: impl Iterator<Item = (&'a ToolCall, CallStatus)>) -> Files {
    let mut files = Files::default();
    for (call, _) in calls.filter(|(_, status)| *status == CallStatus::Ok) {
        match call.name.as_str() {
            "read_file" => _ = files.read.insert(name_subject(call)),
            "write_file" | "edit_file" => _ = files.changed.insert(name_subject(call)),
            "apply_patch" => files.changed.extend(list_patched(call)),
            _ => {}
        }
    }
    files.read.remove("");
    files.changed.remove("");
    files.read.retain(|path| !files.changed.contains(path));
    files
}

/// The paths that a patch names, in either of its two formats.
fn list_patched(call: &ToolCall) -> Vec<String> {
    const MARKS: &[&str] =
        &["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ", "+++ b/"];
    let arguments = json::parse_object(&call.arguments).unwrap_or_default();
    let given = arguments.get("patch").and_then(Value::as_str).unwrap_or_default();
    let path =
        |line: &str| MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(|path| path.trim().to_owned());
    given.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Call, CallAnswer, ReplyPart, Step};

    fn call(id: &str, name: &str, arguments: &Value) -> ToolCall {
        ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_string() }
    }

    fn step(request: ToolCall, status: CallStatus) -> Item {
        let call = Call { request, opaque: None, answer: Some(CallAnswer::of_text("", status)) };
        Item::Step(Step { parts: vec![ReplyPart::Call(call)], ..Step::default() })
    }

    fn path(path: &str) -> Value {
        serde_json::json!({ "path": path })
    }

    #[test]
    fn an_error_is_open_until_the_same_call_goes_well() {
        let test = |of: &str| serde_json::json!({ "command": of });
        let mut talk: Vec<Item> = [
            (test("one"), CallStatus::Error),
            (test("two"), CallStatus::Timeout),
            (test("three"), CallStatus::Denied),
            (test("one"), CallStatus::Ok),
            (test("two"), CallStatus::Error),
        ]
        .into_iter()
        .map(|(arguments, status)| step(call("c", "run_command", &arguments), status))
        .collect();
        assert_eq!(find_unresolved(&talk), HashSet::from([(4, 0)]));
        talk.extend([(); 2].map(|()| step(call("c", "todo", &serde_json::json!({})), CallStatus::Ok)));
        assert_eq!(find_telling(&talk), HashSet::from([(4, 0), (6, 0)]), "of the plans, the newest");
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
        let files = collect_files(done.iter().map(|(call, status)| (call, *status)));
        let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(names(&files.read), "read.rs");
        assert_eq!(names(&files.changed), "changed.rs gone.rs new.rs patched.rs");
    }
}
