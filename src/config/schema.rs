//! JSON Schemas of the files, for editors and for reporting mistakes, made from the types that are read.
//!
//! A file may state only a part, since layers below may state the rest. So the schemas for editors require nothing,
//! except inside lists: lists replace as a whole and must be complete. A template may take the place of a number, a
//! boolean or a word.

use schemars::schema_for;
use serde_json::{Value, json};

use super::flow::FlowConfig;
use super::hook::HookConfig;
use super::mcp::McpServerConfig;
use super::model::ModelConfig;
use super::settings::{AgentConfig, SessionStoreConfig, Settings};
use super::source::SubjectKind;
use super::tool::ToolConfig;

/// The schema of the files of a kind, for editors.
pub fn write_schema(kind: SubjectKind) -> Value {
    let mut schema = generate_schema(kind);
    // Entries of lists are described in the definitions, which keep their required keys.
    let complete = used_in_lists(&schema);
    loosen_schema(&mut schema, &complete, "");
    schema
}

/// The schema of the merged whole.
pub(super) fn generate_schema(kind: SubjectKind) -> Value {
    let schema = match kind {
        SubjectKind::Settings => schema_for!(Settings),
        SubjectKind::Agents => schema_for!(AgentConfig),
        SubjectKind::Models => schema_for!(ModelConfig),
        SubjectKind::Tools => schema_for!(ToolConfig),
        SubjectKind::SessionStores => schema_for!(SessionStoreConfig),
        SubjectKind::Flows => schema_for!(FlowConfig),
        SubjectKind::Mcp => schema_for!(McpServerConfig),
        SubjectKind::Hooks => schema_for!(HookConfig),
    };
    schema.to_value()
}

/// The definitions that items of lists refer to.
fn used_in_lists(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = vec![schema];
    while let Some(value) = rest.pop() {
        names.extend(value["items"]["$ref"].as_str().map(str::to_owned));
        match value {
            Value::Object(entries) => rest.extend(entries.values()),
            Value::Array(items) => rest.extend(items),
            _ => {}
        }
    }
    names
}

fn loosen_schema(value: &mut Value, complete: &[String], path: &str) {
    match value {
        Value::Object(entries) => {
            if !complete.iter().any(|name| name == path) {
                // A property called `required` is a schema, not a list.
                if entries.get("required").is_some_and(Value::is_array) {
                    entries.remove("required");
                }
            }
            for (key, value) in entries.iter_mut() {
                let path = if path.is_empty() { format!("#/{key}") } else { format!("{path}/{key}") };
                loosen_schema(value, complete, &path);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| loosen_schema(item, complete, "-")),
        _ => {}
    }
    let narrow = |json_type: &str| matches!(json_type, "integer" | "number" | "boolean");
    let wants_other_than_text = match &value["type"] {
        Value::String(json_type) => narrow(json_type),
        Value::Array(types) => types.iter().filter_map(Value::as_str).any(narrow),
        _ => false,
    };
    let is_words = value["enum"].is_array() || value["oneOf"].is_array();
    if wants_other_than_text || is_words {
        let annotation = |key: &str| value.get(key).cloned();
        let kept: Vec<(&str, Value)> =
            ["description", "default"].into_iter().filter_map(|key| Some((key, annotation(key)?))).collect();
        let mut loose = json!({ "anyOf": [value.take(), { "type": "string", "pattern": r"\{\{|\{%" }] });
        for (key, annotation) in kept {
            loose[key] = annotation;
        }
        *value = loose;
    }
}

#[cfg(test)]
mod tests {
    use super::{SubjectKind, write_schema};

    #[test]
    fn parts_and_templates_are_valid_and_strangers_are_not() {
        let valid = |kind: SubjectKind, instance: serde_json::Value| {
            jsonschema::validator_for(&write_schema(kind)).expect("a schema").is_valid(&instance)
        };
        let table = [
            (SubjectKind::Settings, serde_json::json!({"limits": {"max_turns": 3}}), true),
            (
                SubjectKind::Settings,
                serde_json::json!({"limits": {"max_turns": "{{ env.TURNS }}", "max_time": "30m"}}),
                true,
            ),
            (SubjectKind::Settings, serde_json::json!({"limits": {"max_turns": "three"}}), false),
            (SubjectKind::Settings, serde_json::json!({"limitz": {}}), false),
            (SubjectKind::Agents, serde_json::json!({"approval": "edits", "system_prompt": {"ref": "x@1"}}), true),
            (SubjectKind::Agents, serde_json::json!({"approval": "sometimes"}), false),
            (
                SubjectKind::Models,
                serde_json::json!({"provider": "{{ env.PROVIDER }}", "temperature": null}),
                true,
            ),
            (SubjectKind::Models, serde_json::json!({"script": [{"tool_calls": [{"name": "x"}]}]}), false),
            (SubjectKind::Tools, serde_json::json!({"enabled": "{{ env.X }}", "timeout": "5s"}), true),
            (SubjectKind::Tools, serde_json::json!({"command": ["a"], "parameters": {"type": "object"}}), true),
            (SubjectKind::Tools, serde_json::json!({"command": 5}), false),
            (SubjectKind::SessionStores, serde_json::json!({}), true),
            (SubjectKind::Flows, serde_json::json!({"steps": [{"id": "a", "tool": "list_dir"}]}), true),
            (SubjectKind::Flows, serde_json::json!({"steps": [{"tool": "list_dir"}]}), false),
            (SubjectKind::Flows, serde_json::json!({"steps": [{"id": "a", "teal": "list_dir"}]}), false),
        ];
        for (kind, instance, expected) in table {
            assert_eq!(valid(kind, instance.clone()), expected, "{} {instance}", kind.name());
        }
    }
}
