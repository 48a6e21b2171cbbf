//! The definition of a server's tool as models are sent it: a legal name of its own, a description with a bound, a
//! schema.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::base::digest::hash_sha256;
use crate::base::text;
use crate::config::{Permission, ToolEffect};
use crate::model::ToolDefinition;
use crate::tools::{SelectableName, select_names};

/// The longest name that providers take.
const LONGEST_NAME: usize = 64;
/// The most bytes of a description, and of a schema.
const MOST_DESCRIPTION: usize = 2048;
const MOST_SCHEMA: usize = 32 * 1024;
/// The digits that tell names apart.
const DIGITS: usize = 6;

/// The tools that a server's file names, of those that the server lists; and the end of a sentence about those of them that
/// cannot be offered, if there are any.
///
/// # Errors
/// The end of a sentence about the server: it has not the tools of its file.
pub(super) fn choose_tools(
    wanted: &[String],
    listed: &[Arc<Value>],
) -> Result<(Vec<Arc<Value>>, Option<String>), String> {
    let names = listed.iter().map(|raw| raw["name"].as_str().unwrap_or_default());
    let choices: Vec<SelectableName<'_>> = names.map(|name| SelectableName { name, default: true }).collect();
    let taken = select_names(wanted, &choices).map_err(|why| format!("has not the tools of its file: {why}"))?;
    let taken = BTreeSet::from_iter(taken);
    let (mut tools, mut wrong) = (listed.to_vec(), Vec::new());
    tools.retain(|raw| taken.contains(raw["name"].as_str().unwrap_or_default()));
    tools.retain(|raw| define_tool("", raw).map_err(|why| wrong.push(format!("{} {why}", raw["name"]))).is_ok());
    let told = || format!("has tools that cannot be offered: {}", wrong.join(", "));
    Ok((tools, (!wrong.is_empty()).then(told)))
}

/// The definition of a tool that a server lists as `raw`.
///
/// # Errors
/// It cannot be offered: what is wrong with it, after its name.
pub(super) fn define_tool(server: &str, raw: &Value) -> Result<ToolDefinition, &'static str> {
    let name = raw["name"].as_str().filter(|name| !name.is_empty()).ok_or("is no `name`")?;
    let mut parameters = raw["inputSchema"].clone();
    if !parameters.is_object() || parameters.to_string().len() > MOST_SCHEMA {
        return Err("has no `inputSchema` that is an object of at most 32 KiB");
    }
    parameters["type"] = json!("object");
    let said =
        [&raw["description"], &raw["title"]].into_iter().filter_map(Value::as_str).find(|text| !text.is_empty());
    let description = text::make_visible(said.unwrap_or(name)).into_owned();
    Ok(ToolDefinition {
        name: name_tool(server, name),
        description: text::take_head(&description, MOST_DESCRIPTION).to_owned(),
        parameters: Arc::new(parameters),
        permission: Permission::Write,
        effects: vec![ToolEffect::Process, ToolEffect::Network],
        default: true,
        returns: "the server's data, else {text}",
        ..ToolDefinition::default()
    })
}

/// `SERVER__TOOL`, in the letters that providers take. A name that had to be changed for it ends in digits of its own.
pub fn name_tool(server: &str, tool: &str) -> String {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain = format!("{server}__{tool}");
    if plain.len() <= LONGEST_NAME && plain.chars().all(is_legal) {
        return plain;
    }
    let digest = hash_sha256([plain.as_bytes()]);
    let legal: String = plain.chars().map(|c| if is_legal(c) { c } else { '_' }).collect();
    format!("{}_{}", &legal[..legal.len().min(LONGEST_NAME - DIGITS - 1)], &digest[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_their_own() {
        for (server, tool, expected) in [
            ("files", "read_file", "files__read_file"),
            ("files", "../../etc", "files________etc_"),
            ("my.server", "a b", "my_server__a_b_"),
            ("文件", "读", "_____"),
        ] {
            let name = name_tool(server, tool);
            assert!(name.starts_with(expected), "{name}");
            assert!(name.len() <= LONGEST_NAME, "{name}");
        }
        assert_ne!(name_tool("a", "x.y"), name_tool("a", "x y"));
        let long = "x".repeat(200);
        assert_eq!(name_tool("a", &long).len(), LONGEST_NAME);
    }

    #[test]
    fn what_cannot_be_offered_is_left_out() {
        let tool = |schema: Value| define_tool("s", &json!({ "name": "t", "inputSchema": schema }));
        assert!(tool(json!({ "properties": {} })).is_ok_and(|tool| tool.parameters["type"] == "object"));
        assert!(tool(json!("text")).is_err());
        assert!(tool(json!({ "description": "x".repeat(MOST_SCHEMA) })).is_err());
        assert!(define_tool("s", &json!({ "inputSchema": {} })).is_err());
    }
}
