//! A request of chat completions, written without copies of the conversation.
//!
//! A request extends the one before it byte for byte up to the end of `messages`. Fields that stay the same in a
//! session come first, in a fixed order; `messages` grows at its end; fields that differ between requests follow.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::super::asked::OutgoingRequest;
use super::super::effort::Effort;
use super::super::extra::merge_extra;
use super::super::strict::allows_strict;
use super::flags::{AnswerFormat, ChatFlags, EffortField, OutputField};
use super::messages::Messages;
use super::tools::Tools;
use crate::model::ToolChoice;

/// The body of a request.
pub fn encode_request(asked: &OutgoingRequest<'_>, flags: &ChatFlags) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(super::super::asked::estimate_size(asked));
    serde_json::to_writer(&mut bytes, &ChatBody { asked, flags })
        .expect("a body has only string keys, and a vector takes every byte");
    bytes
}

struct ChatBody<'a> {
    asked: &'a OutgoingRequest<'a>,
    flags: &'a ChatFlags,
}

impl Serialize for ChatBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { asked, flags } = *self;
        let extra = &asked.settings.extra;
        let is_replaced = |key: &str| extra.contains_key(key);
        let mut body = serializer.serialize_map(None)?;
        let mut fixed = write_head(asked, flags);
        merge_extra(&mut fixed, extra);
        asked.settings.cap_output(&mut fixed);
        for (key, value) in &fixed {
            body.serialize_entry(key, value)?;
        }
        if !asked.tools.is_empty() && !is_replaced("tools") {
            let strict = asked.settings.strict_tools && flags.strict;
            body.serialize_entry(
                "tools",
                &Tools { definitions: asked.tools, strict, plain: flags.plain_schemas },
            )?;
        }
        if !is_replaced("messages") {
            body.serialize_entry("messages", &Messages { asked, flags })?;
        }
        if asked.tool_choice == ToolChoice::None
            && !asked.tools.is_empty()
            && flags.choice_none
            && !is_replaced("tool_choice")
        {
            body.serialize_entry("tool_choice", "none")?;
        }
        body.end()
    }
}

/// The fields that stay the same for a whole session.
fn write_head(asked: &OutgoingRequest<'_>, flags: &ChatFlags) -> Map<String, Value> {
    let settings = asked.settings;
    let mut head = Map::new();
    let mut set = |key: &str, value: Value| {
        head.insert(key.to_owned(), value);
    };
    set("model", settings.model.as_str().into());
    set("stream", settings.streaming.into());
    if settings.streaming && flags.stream_options {
        set("stream_options", json!({"include_usage": true}));
    }
    if let Some(most) = settings.output_limit() {
        let field = match flags.output_field {
            OutputField::MaxTokens => "max_tokens",
            OutputField::MaxCompletionTokens => "max_completion_tokens",
        };
        set(field, most.into());
    }
    if let Some(temperature) = settings.temperature.filter(|_| flags.temperature) {
        set("temperature", temperature.into());
    }
    let forbidden = flags.tools_forbid_reasoning && !asked.tools.is_empty();
    if let Some(level) = settings.effort.map(|level| if forbidden { Effort::None } else { level }) {
        write_effort(level, flags.effort, &mut set);
    } else if forbidden {
        write_effort(Effort::None, flags.effort, &mut set);
    }
    if let Some(schema) = asked.schema.filter(|_| flags.format_with_tools || asked.tools.is_empty()) {
        match flags.answer_format {
            AnswerFormat::Absent => {}
            AnswerFormat::JsonObject => set("response_format", json!({"type": "json_object"})),
            AnswerFormat::JsonSchema => {
                let mut format = json!({"name": "answer", "schema": schema});
                if allows_strict(schema) {
                    format["strict"] = true.into();
                }
                set("response_format", json!({"type": "json_schema", "json_schema": format}));
            }
        }
    }
    if flags.cache_key {
        set("prompt_cache_key", asked.session_id.into());
    }
    if flags.parallel_field && !asked.tools.is_empty() {
        set("parallel_tool_calls", settings.parallel_calls.into());
    }
    head
}

fn write_effort(level: Effort, field: EffortField, set: &mut impl FnMut(&str, Value)) {
    let thinks = level != Effort::None;
    let switch = json!({"type": if thinks { "enabled" } else { "disabled" }});
    match field {
        EffortField::Absent => {}
        EffortField::ReasoningEffort => set("reasoning_effort", level.word().into()),
        EffortField::Reasoning => set("reasoning", json!({"effort": level.word()})),
        EffortField::ReasoningEnabled => set("reasoning", json!({"enabled": thinks})),
        EffortField::Thinking => {
            set("thinking", switch);
            if thinks {
                set("reasoning_effort", level.word().into());
            }
        }
        EffortField::ThinkingSwitch => set("thinking", switch),
        EffortField::EnableThinking => set("enable_thinking", thinks.into()),
        EffortField::TemplateKwargs => set("chat_template_kwargs", json!({"enable_thinking": thinks})),
    }
}
