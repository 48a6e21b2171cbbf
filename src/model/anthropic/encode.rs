//! A request of the Messages API, written without copies of the conversation.
//!
//! A request extends the one before it byte for byte up to the end of `messages`, except for the cache marks, which
//! move. Fields that stay the same in a session come first, in a fixed order; `messages` grows at its end; fields
//! that differ between requests follow.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::super::asked::{self, OutgoingRequest};
use super::super::extra::merge_extra;
use super::flags::AnthropicFlags;
use super::messages::{Block, Mark, Message, write_messages};
use super::thinking::{self, Asks};
use super::tools::{Tools, allows_strict};
use crate::model::ToolChoice;

/// The body of a request.
pub fn encode_request(asked: &OutgoingRequest<'_>, flags: &AnthropicFlags) -> Vec<u8> {
    let messages = write_messages(asked.turns, flags);
    let mut bytes = Vec::with_capacity(asked::estimate_size(asked));
    serde_json::to_writer(&mut bytes, &AnthropicBody { asked, flags, messages: &messages })
        .expect("a body has only string keys, and a vector takes every byte");
    bytes
}

struct AnthropicBody<'a> {
    asked: &'a OutgoingRequest<'a>,
    flags: &'a AnthropicFlags,
    messages: &'a [Message<'a>],
}

impl Serialize for AnthropicBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { asked, flags, messages } = *self;
        let extra = &asked.settings.extra;
        let mut body = serializer.serialize_map(None)?;
        let (mut fixed, mut varying) = (write_head(asked), write_tail(asked, flags));
        let (late, early) = extra.clone().into_iter().partition(|(key, _)| VARYING.contains(&key.as_str()));
        merge_extra(&mut fixed, &early);
        asked.settings.cap_output(&mut fixed);
        merge_extra(&mut varying, &late);
        for (key, value) in &fixed {
            body.serialize_entry(key, value)?;
        }
        let mark = Mark::from_flags(flags);
        if !asked.tools.is_empty() && !extra.contains_key("tools") {
            body.serialize_entry("tools", &Tools { all: asked.tools, settings: asked.settings, flags, mark })?;
        }
        if !asked.system.trim_start().is_empty() && !extra.contains_key("system") {
            body.serialize_entry("system", &System { text: asked.system, mark })?;
        }
        if !extra.contains_key("messages") {
            body.serialize_entry("messages", messages)?;
        }
        for (key, value) in &varying {
            body.serialize_entry(key, value)?;
        }
        body.end()
    }
}

/// The fields that stay the same for a whole session.
fn write_head(asked: &OutgoingRequest<'_>) -> Map<String, Value> {
    let mut head = Map::new();
    head.insert("model".to_owned(), asked.settings.model.as_str().into());
    head.insert("max_tokens".to_owned(), thinking::max_tokens(asked).into());
    head.insert("stream".to_owned(), asked.settings.streaming.into());
    head
}

/// The fields that may differ between requests.
const VARYING: [&str; 4] = ["thinking", "temperature", "output_config", "tool_choice"];

fn write_tail(asked: &OutgoingRequest<'_>, flags: &AnthropicFlags) -> Map<String, Value> {
    let settings = asked.settings;
    let asks = Asks::choose(asked, flags);
    let effort = settings.effort.filter(|_| flags.effort_field).and_then(thinking::spell_level);
    let schema = asked.schema.filter(|schema| flags.answer_format && allows_strict(schema));
    let mut config = Map::new();
    if let Some(level) = effort {
        config.insert("effort".to_owned(), level.into());
    }
    if let Some(schema) = schema {
        config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    // A model that is thinking accepts no temperature.
    let temperature = settings.temperature.filter(|_| flags.temperature && !asks.is_on());
    let fields = [
        ("thinking", asks.field(flags)),
        ("temperature", temperature.map(Value::from)),
        ("output_config", (!config.is_empty()).then_some(Value::Object(config))),
        ("tool_choice", tool_choice(asked, flags)),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn tool_choice(asked: &OutgoingRequest<'_>, flags: &AnthropicFlags) -> Option<Value> {
    if asked.tools.is_empty() {
        return None;
    }
    match asked.tool_choice {
        ToolChoice::None => flags.choice_none.then(|| json!({"type": "none"})),
        ToolChoice::Auto => (flags.parallel_switch && !asked.settings.parallel_calls)
            .then(|| json!({"type": "auto", "disable_parallel_tool_use": true})),
    }
}

/// The system prompt: a block if it is marked, else a text.
struct System<'a> {
    text: &'a str,
    mark: Option<Mark>,
}

impl Serialize for System<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.mark {
            Some(_) => serializer.collect_seq([Block::text(self.text, self.mark)]),
            None => serializer.serialize_str(self.text),
        }
    }
}
