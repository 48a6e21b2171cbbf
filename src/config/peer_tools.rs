//! The tools of Claude Code and ours that do the same, for rules, hooks and agents that were written for those.

use serde_json::{Map, Value};

/// Their name and ours. Of several, the first is theirs for ours.
const TOOLS: [(&str, &str); 14] = [
    ("Bash", "run_command"),
    ("BashOutput", "background"),
    ("KillShell", "background"),
    ("Read", "read_file"),
    ("Write", "write_file"),
    ("Edit", "edit_file"),
    ("MultiEdit", "edit_file"),
    ("Glob", "glob"),
    ("Grep", "grep"),
    ("LS", "list_dir"),
    ("WebFetch", "fetch_url"),
    ("TodoWrite", "todo"),
    ("Task", "task"),
    ("Skill", "load_skill"),
];

/// Arguments with other names: our tool, our name, theirs.
const ARGUMENTS: [(&str, &str, &str); 6] = [
    ("read_file", "path", "file_path"),
    ("write_file", "path", "file_path"),
    ("edit_file", "path", "file_path"),
    ("edit_file", "old_text", "old_string"),
    ("edit_file", "new_text", "new_string"),
    ("load_skill", "name", "skill"),
];

/// Our tool that does what theirs does. A tool of a server keeps its names; a server alone means all its tools.
pub fn find_own_tool(theirs: &str) -> Option<String> {
    if let Some(rest) = theirs.strip_prefix("mcp__") {
        // `mcp__git__.*` of a hook.
        let rest = rest.trim_end_matches(".*").trim_end_matches('_');
        return Some(if rest.contains("__") { rest.to_owned() } else { format!("{rest}__*") });
    }
    let known = TOOLS.iter().find(|(name, _)| name.eq_ignore_ascii_case(theirs));
    known.map(|(_, own)| (*own).to_owned())
}

/// What a tool of ours is called there; our name if they have none like it.
pub fn name_for_peer(own: &str) -> String {
    match TOOLS.iter().find(|(_, name)| *name == own) {
        Some((theirs, _)) => (*theirs).to_owned(),
        None if own.contains("__") => format!("mcp__{own}"),
        None => own.to_owned(),
    }
}

/// The arguments of a tool of ours under their names.
pub fn arguments_for_peer(own: &str, arguments: Value) -> Value {
    rename_keys(arguments, |key| find_argument(own, |(_, name, _)| *name == key).map(|(_, _, theirs)| *theirs))
}

/// Arguments under their names, as our tool takes them.
pub fn arguments_from_peer(own: &str, arguments: Value) -> Value {
    rename_keys(arguments, |key| find_argument(own, |(_, _, theirs)| *theirs == key).map(|(_, name, _)| *name))
}

type RenamedArgument = (&'static str, &'static str, &'static str);

fn find_argument(own: &str, is_meant: impl Fn(&RenamedArgument) -> bool) -> Option<&'static RenamedArgument> {
    ARGUMENTS.iter().find(|row| row.0 == own && is_meant(row))
}

fn rename_keys(value: Value, rename: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(object) = value else { return value };
    let renamed = object.into_iter().map(|(key, value)| (rename(&key).map_or(key, str::to_owned), value));
    Value::Object(renamed.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_arguments_go_there_and_back() {
        for (theirs, own) in [("Bash", "run_command"), ("Edit", "edit_file"), ("mcp__git__log", "git__log")] {
            assert_eq!(find_own_tool(theirs).as_deref(), Some(own));
            assert_eq!(name_for_peer(own), theirs);
        }
        assert_eq!(find_own_tool("mcp__git__.*").as_deref(), Some("git__*"));
        assert_eq!((find_own_tool("Nothing"), find_own_tool("mcp__git")), (None, Some("git__*".to_owned())));
        let own = json!({"path": "a", "old_text": "b", "new_text": "c", "replace_all": true});
        let theirs = json!({"file_path": "a", "old_string": "b", "new_string": "c", "replace_all": true});
        assert_eq!(arguments_for_peer("edit_file", own.clone()), theirs);
        assert_eq!(arguments_from_peer("edit_file", theirs), own);
        assert_eq!(arguments_for_peer("grep", json!({"path": "a"})), json!({"path": "a"}));
    }
}
