//! A request of chat completions.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::asked::{OutgoingRequest, write_body};
use super::super::effort::Effort;
use super::super::strict::allows_strict;
use super::flags::{AnswerFormat, ChatFlags, EffortField, OutputField};
use super::messages::{CompletionMessage, write_messages};
use super::tools::{ChatTool, write_tools};
use crate::model::ToolChoice;

#[derive(Serialize)]
#[serde(untagged)]
enum ChatField<'a> {
    Tools(Vec<ChatTool<'a>>),
    Messages(Vec<CompletionMessage<'a>>),
}

/// The body of a request.
pub fn encode_request(asked: &OutgoingRequest<'_>, flags: &ChatFlags) -> Vec<u8> {
    let has_tools = !asked.tools.is_empty();
    let large = [
        ("tools", has_tools.then(|| ChatField::Tools(write_tools(asked, flags)))),
        ("messages", Some(ChatField::Messages(write_messages(asked, flags)))),
    ];
    let mut tail = Map::new();
    if asked.tool_choice == ToolChoice::None && has_tools && flags.choice_none {
        tail.insert("tool_choice".to_owned(), "none".into());
    }
    write_body(asked, write_head(asked, flags), large, tail, |_, _| false)
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
