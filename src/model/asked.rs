//! Everything that an encoder writes, beside the flags of its wire.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::effort::Effort;
use super::extra::merge_extra;
use super::turns::{ModelPart, ToolResult, UserPart, WireTurn};
use crate::model::{ToolChoice, ToolDefinition};

/// One request, ready to be written.
#[derive(Clone, Copy)]
pub struct OutgoingRequest<'a> {
    pub settings: &'a RequestSettings,
    /// Empty if there is none.
    pub system: &'a str,
    pub turns: &'a [WireTurn<'a>],
    /// Sorted by name, the same for a whole session; empty if the model calls none.
    pub tools: &'a [ToolDefinition],
    pub tool_choice: ToolChoice,
    /// The JSON Schema of the answer, if the server is to enforce one.
    pub schema: Option<&'a Value>,
    pub session_id: &'a str,
}

/// The fields that stay the same for a session: those of the model file and the catalogue, without those that the
/// server refused.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestSettings {
    /// The provider's name for the model.
    pub model: String,
    pub streaming: bool,
    /// As the model file declares it; otherwise not sent, unless the wire demands one.
    pub max_output_tokens: Option<u64>,
    /// The most tokens of a reply according to the model file or the catalogue, for wires that demand a limit.
    pub most_output_tokens: Option<u64>,
    /// The most that the server said it accepts as a limit.
    pub accepted_output_tokens: Option<u64>,
    /// The window that the server is asked to give the model, in tokens; for the wire that can ask for one.
    pub served_window: Option<u64>,
    /// The limit of this request alone, if it is lower.
    pub output_cap: Option<u64>,
    pub temperature: Option<f64>,
    /// A level that the model has; `None`: nothing about it is sent.
    pub effort: Option<Effort>,
    /// True if several calls may come at once.
    pub parallel_calls: bool,
    /// The definitions of the provider's own tools, which stand behind ours.
    pub server_tools: Vec<Value>,
    /// True if tools are declared strict when their schemas allow it.
    pub strict_tools: bool,
    /// The fields that the model file adds or replaces (RFC 7396).
    pub extra: Map<String, Value>,
}

impl RequestSettings {
    /// The limit of a reply that is sent, if one is.
    pub fn output_limit(&self) -> Option<u64> {
        let limit = [self.max_output_tokens, self.output_cap].into_iter().flatten().min()?;
        Some(self.accepted_output_tokens.map_or(limit, |most| most.min(limit)))
    }

    /// Lowers a limit that the model file wrote into the body to that of this request.
    pub fn cap_output(&self, body: &mut Map<String, Value>) {
        for key in OUTPUT_FIELDS {
            if let (Some(cap), Some(limit)) = (self.output_cap, body.get_mut(key))
                && limit.as_u64().is_some_and(|limit| limit > cap)
            {
                *limit = cap.into();
            }
        }
    }

    /// The limit of a reply that the model file writes into the body, if it writes one.
    pub fn written_limit(&self) -> Option<u64> {
        OUTPUT_FIELDS.iter().find_map(|key| self.extra.get(*key)?.as_u64())
    }
}

/// The fields by which servers know the limit of a reply.
const OUTPUT_FIELDS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/// Writes the body of a request, without copies of the conversation. A request extends the one before it byte for byte
/// up to the end of the conversation: the fields of `head` stay the same in a session; `large` are written as they are,
/// the conversation last; those of `tail` may differ. The fields of the model file are merged into the tail if
/// `is_late`, else into the head, where they replace large ones.
pub fn write_body<T: Serialize>(
    asked: &OutgoingRequest<'_>,
    mut head: Map<String, Value>,
    large: impl IntoIterator<Item = (&'static str, Option<T>)>,
    mut tail: Map<String, Value>,
    is_late: impl Fn(&str, &Map<String, Value>) -> bool,
) -> Vec<u8> {
    let (late, early): (Map<_, _>, Map<_, _>) =
        asked.settings.extra.clone().into_iter().partition(|(key, _)| is_late(key, &tail));
    merge_extra(&mut head, &early);
    asked.settings.cap_output(&mut head);
    merge_extra(&mut tail, &late);
    let mut bytes = Vec::with_capacity(estimate_size(asked));
    let write = || {
        let mut serializer = serde_json::Serializer::new(&mut bytes);
        let mut body = serializer.serialize_map(None)?;
        for (key, value) in &head {
            body.serialize_entry(key, value)?;
        }
        for (key, value) in large {
            let Some(value) = value.filter(|_| !early.contains_key(key)) else { continue };
            if key == "tools" && !asked.settings.server_tools.is_empty() {
                body.serialize_entry(key, &add_tools(&value, &asked.settings.server_tools)?)?;
            } else {
                body.serialize_entry(key, &value)?;
            }
        }
        for (key, value) in tail.iter().filter(|(key, _)| !early.contains_key(*key)) {
            body.serialize_entry(key, value)?;
        }
        body.end()
    };
    write().expect("a body has only string keys, and a vector takes every byte");
    bytes
}

/// Our tools, and those of the provider.
fn add_tools(own: &impl Serialize, server: &[Value]) -> serde_json::Result<Value> {
    let mut tools = serde_json::to_value(own)?;
    if let Value::Array(tools) = &mut tools {
        tools.extend_from_slice(server);
    }
    Ok(tools)
}

/// Estimates the bytes of a request, so that its buffer need not grow.
fn estimate_size(asked: &OutgoingRequest<'_>) -> usize {
    const AROUND_A_PART: usize = 96;
    const TOOL: usize = 1024;
    // Line breaks and quotes are escaped.
    let text = |length: usize| length * 9 / 8 + AROUND_A_PART;
    let user = |part: &UserPart<'_>| match part {
        UserPart::Text(words) => text(words.len()),
        UserPart::Picture(picture) => text(picture.data.len()),
    };
    let model = |part: &ModelPart<'_>| match part {
        ModelPart::Text { text: words, .. } => text(words.len()),
        ModelPart::Reasoning { text: words, .. } => 2 * text(words.len()),
        ModelPart::Call(call) => text(call.name.len() + call.arguments.len()) + AROUND_A_PART,
    };
    let result = |result: &ToolResult<'_>| {
        let pictures: usize = result.pictures.iter().map(|picture| text(picture.data.len())).sum();
        text(result.text.len()) + pictures
    };
    let turns: usize = asked
        .turns
        .iter()
        .map(|turn| match turn {
            WireTurn::User(parts) => parts.iter().map(user).sum::<usize>(),
            WireTurn::Model(parts) => parts.iter().map(model).sum(),
            WireTurn::Results(results) => results.iter().map(result).sum(),
        })
        .sum();
    turns + text(asked.system.len()) + asked.tools.len() * TOOL + 512
}
