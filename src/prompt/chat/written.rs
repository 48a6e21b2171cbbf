//! Messages as data: `{role, content}` in JSON, the form of a history. Other programs' names for its parts
//! (`tool_calls`, `tool_call_id`, `image_url`) are accepted.

use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

use crate::conversation::message::ToolCall;

use super::message::{ChatMessage, ChatPart, ChatRole};

/// A message in JSON.
#[derive(Serialize, Deserialize)]
pub(super) struct JsonMessage {
    role: ChatRole,
    #[serde(default)]
    content: JsonContent,
    #[serde(default, alias = "tool_calls", skip_serializing_if = "Option::is_none")]
    calls: Option<Vec<WrittenCall>>,
    #[serde(default, alias = "tool_call_id", skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
}

/// A text, or a list of parts. A number or a boolean is read as text, as YAML may take a word for one.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum JsonContent {
    Text(String),
    Parts(Vec<WrittenPart>),
}

/// `{text: …}` or `{image: …}`.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct WrittenPart {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    #[serde(default, skip_serializing)]
    image_url: Option<Url>,
    #[serde(default, skip_serializing, rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Url {
    url: String,
}

/// A call; `arguments` is a JSON object, or its text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum WrittenCall {
    Plain { id: String, name: String, arguments: Json },
    Function { id: String, function: JsonFunction },
}

#[derive(Serialize, Deserialize)]
pub(super) struct JsonFunction {
    name: String,
    arguments: Json,
}

impl Default for JsonContent {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl JsonContent {
    /// Converts it to one text. `role` is for the error if there are parts.
    pub fn text(self, role: ChatRole) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Parts(parts) => {
                let texts = parts.into_iter().map(|part| match ChatPart::try_from(part)? {
                    ChatPart::Text(text) => Ok(text),
                    ChatPart::Image(_) => Err(format!(
                        "pictures belong in a user message; this message ({role}) can contain only text"
                    )),
                });
                Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n\n"))
            }
        }
    }

    /// Converts it to the parts of a user message.
    pub fn parts(self) -> Result<Vec<ChatPart>, String> {
        match self {
            Self::Text(text) => Ok(vec![ChatPart::Text(text)]),
            Self::Parts(parts) => parts.into_iter().map(ChatPart::try_from).collect(),
        }
    }
}

impl TryFrom<WrittenPart> for ChatPart {
    type Error = String;

    fn try_from(part: WrittenPart) -> Result<Self, String> {
        match (part.text, part.image.or(part.image_url.map(|url| url.url))) {
            (Some(text), None) => Ok(Self::Text(text)),
            (None, Some(source)) => Ok(Self::Image(source)),
            _ => Err(match part.kind {
                Some(kind) => format!("a part of type `{kind}` is neither `text` nor `image`"),
                None => "a part is either `text: …` or `image: …`".to_owned(),
            }),
        }
    }
}

impl From<WrittenCall> for ToolCall {
    fn from(call: WrittenCall) -> Self {
        let (id, JsonFunction { name, arguments }) = match call {
            WrittenCall::Plain { id, name, arguments } => (id, JsonFunction { name, arguments }),
            WrittenCall::Function { id, function } => (id, function),
        };
        let arguments = match arguments {
            Json::String(text) => text,
            other => other.to_string(),
        };
        Self { id, name, arguments }
    }
}

impl TryFrom<JsonMessage> for ChatMessage {
    type Error = String;

    fn try_from(JsonMessage { role, content, calls, call_id }: JsonMessage) -> Result<Self, String> {
        if calls.is_some() && role != ChatRole::Assistant {
            return Err(format!("`calls` belong to an assistant message; the role is {role}"));
        }
        if call_id.is_some() && role != ChatRole::Tool {
            return Err(format!("a `call_id` belongs to a tool message; the role is {role}"));
        }
        Ok(match role {
            ChatRole::System => Self::System { text: content.text(role)? },
            ChatRole::User => Self::User { parts: content.parts()? },
            ChatRole::Assistant => Self::Assistant {
                text: content.text(role)?,
                calls: calls.unwrap_or_default().into_iter().map(ToolCall::from).collect(),
            },
            ChatRole::Tool => Self::Tool {
                call_id: call_id.ok_or("a tool message needs a `call_id`: the id of the call that it answers")?,
                text: content.text(role)?,
            },
        })
    }
}

impl From<ChatMessage> for JsonMessage {
    fn from(message: ChatMessage) -> Self {
        let role = message.role();
        let plain = |text| Self { role, content: JsonContent::Text(text), calls: None, call_id: None };
        match message {
            ChatMessage::System { text } => plain(text),
            ChatMessage::User { mut parts } => match parts.as_mut_slice() {
                [ChatPart::Text(text)] => plain(std::mem::take(text)),
                _ => {
                    let part = |part| match part {
                        ChatPart::Text(text) => WrittenPart { text: Some(text), ..WrittenPart::default() },
                        ChatPart::Image(source) => WrittenPart { image: Some(source), ..WrittenPart::default() },
                    };
                    let content = JsonContent::Parts(parts.into_iter().map(part).collect());
                    Self { content, ..plain(String::new()) }
                }
            },
            ChatMessage::Assistant { text, calls } if calls.is_empty() => plain(text),
            ChatMessage::Assistant { text, calls } => {
                let call = |ToolCall { id, name, arguments }| WrittenCall::Plain {
                    id,
                    name,
                    arguments: Json::String(arguments),
                };
                Self { calls: Some(calls.into_iter().map(call).collect()), ..plain(text) }
            }
            ChatMessage::Tool { call_id, text } => Self { call_id: Some(call_id), ..plain(text) },
        }
    }
}

impl<'de> Deserialize<'de> for JsonContent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ContentReader;

        impl<'de> Visitor<'de> for ContentReader {
            type Value = JsonContent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a list of parts (`text: …`, `image: …`)")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<JsonContent, E> {
                Ok(JsonContent::Text(text.to_owned()))
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<JsonContent, E> {
                Ok(JsonContent::Text(value.to_string()))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<JsonContent, E> {
                Ok(JsonContent::Text(value.to_string()))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<JsonContent, E> {
                Ok(JsonContent::Text(value.to_string()))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<JsonContent, E> {
                Ok(JsonContent::Text(value.to_string()))
            }

            fn visit_unit<E: de::Error>(self) -> Result<JsonContent, E> {
                Ok(JsonContent::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonContent, A::Error> {
                let parts = std::iter::from_fn(|| items.next_element().transpose());
                parts.collect::<Result<_, _>>().map(JsonContent::Parts)
            }
        }
        from.deserialize_any(ContentReader)
    }
}
