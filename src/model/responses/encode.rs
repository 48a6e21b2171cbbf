//! A request of the Responses wire.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::asked::{OutgoingRequest, write_body};
use super::super::effort::Effort;
use super::super::functions::FunctionTool;
use super::super::strict::allows_strict;
use super::flags::{ResponsesFlags, SystemIn};
use super::items::{InputItem, write_items};
use crate::model::{ToolChoice, ToolDefinition};

#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesField<'a> {
    Instructions(&'a str),
    Tools(Vec<ResponsesTool<'a>>),
    Input(Vec<InputItem<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct ResponsesTool<'a> {
    #[serde(flatten)]
    function: FunctionTool<'a>,
}

/// The body of a request.
pub fn encode_request<'a>(asked: &OutgoingRequest<'a>, flags: &ResponsesFlags) -> Vec<u8> {
    let system = Some(asked.system).filter(|system| !system.is_empty());
    let role = match flags.system_in {
        SystemIn::Instructions => None,
        SystemIn::Developer => Some("developer"),
        SystemIn::System => Some("system"),
    };
    let write_tool = |tool: &'a ToolDefinition| {
        let may_be_strict = asked.settings.strict_tools;
        let strict = flags.strict.then(|| may_be_strict && allows_strict(&tool.parameters));
        ResponsesTool { function: FunctionTool::new(tool, strict) }
    };
    let tools = || ResponsesField::Tools(asked.tools.iter().map(write_tool).collect());
    let large = [
        ("instructions", system.filter(|_| role.is_none()).map(ResponsesField::Instructions)),
        ("tools", (!asked.tools.is_empty()).then(tools)),
        ("input", Some(ResponsesField::Input(write_items(role.zip(system), asked.turns)))),
    ];
    // A field of the tail that this request does not have belongs to the head.
    let is_late = |key: &str, tail: &Map<String, Value>| tail.contains_key(key);
    write_body(asked, write_head(asked, flags), large, write_tail(asked, flags), is_late)
}

/// The fields that stay the same for a whole session.
fn write_head(asked: &OutgoingRequest<'_>, flags: &ResponsesFlags) -> Map<String, Value> {
    let settings = asked.settings;
    let mut head = Map::new();
    let mut set = |key: &str, value: Value| {
        head.insert(key.to_owned(), value);
    };
    set("model", settings.model.as_str().into());
    set("stream", settings.streaming.into());
    if settings.streaming && flags.padding_off {
        set("stream_options", json!({"include_obfuscation": false}));
    }
    set("store", false.into());
    if flags.encrypted_include {
        set("include", json!(["reasoning.encrypted_content"]));
    }
    if let Some(most) = settings.output_limit() {
        set("max_output_tokens", most.max(flags.min_output).into());
    }
    if let Some(temperature) = settings.temperature.filter(|_| flags.temperature) {
        set("temperature", temperature.into());
    }
    let mut reasoning = Map::new();
    if let Some(effort) = settings.effort {
        reasoning.insert("effort".to_owned(), effort.word().into());
    }
    if flags.summary && settings.effort != Some(Effort::None) {
        reasoning.insert("summary".to_owned(), "auto".into());
    }
    if !reasoning.is_empty() {
        set("reasoning", reasoning.into());
    }
    if flags.cache_key {
        set("prompt_cache_key", cache_key(asked.session_id).into());
    }
    if flags.parallel_field && !asked.tools.is_empty() {
        set("parallel_tool_calls", settings.parallel_calls.into());
    }
    head
}

/// The fields that may differ from the request before.
fn write_tail(asked: &OutgoingRequest<'_>, flags: &ResponsesFlags) -> Map<String, Value> {
    let mut tail = Map::new();
    let has_tools = !asked.tools.is_empty();
    if asked.tool_choice == ToolChoice::None && has_tools && flags.choice_none {
        tail.insert("tool_choice".to_owned(), "none".into());
    }
    let fits = flags.answer_format && (flags.format_with_tools || !has_tools);
    if let Some(schema) = asked.schema.filter(|_| fits) {
        let strict = allows_strict(schema);
        let format = json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": strict});
        tail.insert("text".to_owned(), json!({"format": format}));
    }
    tail
}

/// The id of a session, cut to the length of the field.
pub(super) fn cache_key(session_id: &str) -> String {
    const LONGEST: usize = 64;
    session_id.chars().take(LONGEST).collect()
}
