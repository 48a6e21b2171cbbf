//! Agents of others, which are Markdown files, as `agents/NAME.yaml`: never with more tools than they have there.

use std::fmt::Write;
use std::iter;
use std::path::Path;

use serde_json::{Map, Value};

use super::EntryPlan;
use super::home::{ForeignHome, choose_name};
use super::keys::{quote, quote_literal};
use super::parts::{entries, list_texts, split_head, text_of};
use crate::config::peer_tools::find_own_tool;

/// Agents: Markdown whose body is the system prompt.
pub(super) fn take_agents(home: &mut ForeignHome<'_>, folders: &[String]) {
    for (name, path) in home.list(folders, ".md") {
        let Some(text) = home.read_path(&path) else { continue };
        let Ok((head, body)) = split_head(&text) else {
            home.leave("agent", name, "its head cannot be read");
            continue;
        };
        let mut notes = Vec::new();
        let mut out = String::new();
        for (key, value) in &head {
            match key.as_str() {
                "name" | "tools" | "disallowedTools" | "permission" => {}
                "description" => drop(writeln!(out, "description: {}", quote_literal(text_of(value).trim()))),
                "model" if value == "inherit" => {}
                "model" => notes.push(format!("without its model {}: it has that of its caller", text_of(value))),
                key => notes.push(format!("without `{key}`")),
            }
        }
        match translate_tools(&head, &mut notes) {
            Ok(tools) => out += &tools,
            Err(why) => {
                home.leave("agent", name, why);
                continue;
            }
        }
        let _ = writeln!(out, "system_prompt: {}", quote_literal(body.trim()));
        let file = home.name_file(&name);
        let name = choose_name(&file, &name);
        let to = Path::new("agents").join(format!("{file}.yaml"));
        home.add("agent", name, EntryPlan::Write(to, out), notes.join("; "));
    }
}

/// The line `tools` of an agent; empty if it has all. An error if what it is denied cannot be read.
fn translate_tools(head: &Map<String, Value>, notes: &mut Vec<String>) -> Result<String, &'static str> {
    let mut own = Vec::new();
    match head.get("tools") {
        // opencode says which are on and off; the others are on.
        None | Some(Value::Object(_)) => switch_tool(&mut own, "*", true, notes),
        Some(names) => list_names(names).iter().for_each(|name| switch_tool(&mut own, name, true, notes)),
    }
    let switches = ["tools", "permission"].iter().filter_map(|key| head.get(*key)).flat_map(entries);
    for (name, how) in switches {
        let is_on = match how.get("*").unwrap_or(how) {
            Value::Bool(is_on) => *is_on,
            how if how == "deny" => false,
            how if how == "allow" => true,
            _ => {
                notes.push(format!("without what `permission` says of {name}"));
                continue;
            }
        };
        if how.as_object().is_some_and(|rules| rules.len() > 1) {
            notes.push(format!("without the patterns of {name}"));
        }
        // opencode has one permission for all changes of files, whichever tool is named.
        let is_change = matches!(name.as_str(), "edit" | "write" | "patch" | "multiedit");
        let more: &[&str] = if is_change && (!is_on || !how.is_boolean()) { &["edit", "write"] } else { &[] };
        for name in iter::once(name.as_str()).chain(more.iter().copied()) {
            switch_tool(&mut own, name, is_on, notes);
        }
    }
    for key in ["disallowedTools", "permission"] {
        match head.get(key) {
            // Its list begins on the next line.
            Some(Value::String(text)) if text.trim().is_empty() => return Err("its head cannot be read"),
            Some(how) if key == "permission" && how == "deny" => own.clear(),
            Some(how) if key == "permission" && how.is_string() => notes.push(format!("without `{key}`")),
            Some(names) => list_names(names).iter().for_each(|name| switch_tool(&mut own, name, false, notes)),
            None => {}
        }
    }
    Ok(if own == ["\"*\""] { String::new() } else { format!("tools: [{}]\n", own.join(", ")) })
}

/// Adds a tool of theirs to our list, or excludes it.
fn switch_tool(list: &mut Vec<String>, name: &str, is_on: bool, notes: &mut Vec<String>) {
    // `Bash(rm:*)` excludes the whole tool, as nothing less can be said.
    let bare = if is_on { name } else { name.split('(').next().unwrap_or(name).trim() };
    let own = match bare {
        "*" => Some("*".to_owned()),
        "list" => Some("list_dir".to_owned()),
        "patch" => Some("apply_patch".to_owned()),
        bare => find_own_tool(bare),
    };
    let is_plain =
        |own: &String| own.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*'));
    let entry = match own.filter(is_plain) {
        Some(own) if is_on && own == "*" => quote(&own),
        Some(own) if is_on && !own.contains("__") => own,
        // As a pattern it may name a tool whose server is not there.
        Some(own) if !is_on && own.contains("__") && !own.contains('*') => quote(&format!("!{{{own}}}")),
        Some(own) if !is_on => quote(&format!("!{own}")),
        _ => {
            let what = if is_on { "without the tool" } else { "nothing here is excluded as" };
            return notes.push(format!("{what} {name}"));
        }
    };
    // What changes no file there changes none by a patch.
    let patch = matches!(entry.as_str(), "\"!edit_file\"" | "\"!write_file\"").then(|| quote("!apply_patch"));
    for entry in [entry].into_iter().chain(patch) {
        if !list.contains(&entry) {
            list.push(entry);
        }
    }
}

fn list_names(value: &Value) -> Vec<String> {
    let texts = list_texts(value);
    let names = texts.iter().flat_map(|text| text.split(','));
    let names = names.map(|name| name.trim_matches(|c: char| c.is_whitespace() || "[]\"'".contains(c)).to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_gets_no_tool_that_it_has_not_there() {
        for (head, expected) in [
            (json!({}), ""),
            (json!({"tools": "*"}), ""),
            (json!({"tools": "Read, Grep"}), "tools: [read_file, grep]\n"),
            (json!({"tools": "WebSearch, mcp__brave__search"}), "tools: []\n"),
            (json!({"tools": []}), "tools: []\n"),
            (json!({"tools": null}), "tools: []\n"),
            (
                json!({"tools": {"write": false, "bash": false}}),
                "tools: [\"*\", \"!write_file\", \"!apply_patch\", \"!edit_file\", \"!run_command\"]\n",
            ),
            (json!({"disallowedTools": "Write"}), "tools: [\"*\", \"!write_file\", \"!apply_patch\"]\n"),
            (json!({"tools": {"*": false, "read": true}}), "tools: [\"*\", \"!*\", read_file]\n"),
            (
                json!({"disallowedTools": "Bash(rm:*), mcp__git__push"}),
                "tools: [\"*\", \"!run_command\", \"!{git__push}\"]\n",
            ),
            (
                json!({"permission": {"edit": "deny", "bash": {"*": "deny"}}}),
                "tools: [\"*\", \"!edit_file\", \"!apply_patch\", \"!write_file\", \"!run_command\"]\n",
            ),
            (json!({"permission": "deny"}), "tools: []\n"),
        ] {
            let found = translate_tools(head.as_object().expect("a head"), &mut Vec::new());
            assert_eq!(found.as_deref(), Ok(expected), "{head}");
        }
        // The list on the next lines of a head that is no YAML.
        let unread = json!({"disallowedTools": ""});
        assert!(translate_tools(unread.as_object().expect("a head"), &mut Vec::new()).is_err());
    }
}
