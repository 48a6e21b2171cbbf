//! A message of a chat: an enum by role, so that the answer of a tool without the id of its call cannot be written.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::base::json::change_texts;
use crate::base::spelling::spell;
use crate::conversation::message::ToolCall;

/// A message. As an entry of a [`ChatTemplate`](super::ChatTemplate) its texts are templates; filling a template gives
/// messages as they are sent.
///
/// In JSON it is `{"role": …, "content": …}`; `content` is a text or a list of parts. The reply of a model may have
/// `calls` (`id`, `name`, `arguments`), the answer of a tool has a `call_id`.
///
/// ```
/// use agent::facade::prompt::chat::ChatMessage;
/// let message: ChatMessage = serde_json::from_str(r#"{"role": "user", "content": "Hello"}"#)?;
/// assert_eq!(message, ChatMessage::user("Hello"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "super::written::JsonMessage", try_from = "super::written::JsonMessage")]
pub enum ChatMessage {
    System {
        text: String,
    },
    /// Text and pictures, in order.
    User {
        parts: Vec<ChatPart>,
    },
    /// A reply of the model.
    Assistant {
        text: String,
        calls: Vec<ToolCall>,
    },
    /// The result of a call.
    Tool {
        call_id: String,
        text: String,
    },
}

/// A part of a message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatPart {
    Text(String),
    /// A picture: the path of its file, or a `data:` URL.
    Image(String),
}

/// The role of the author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatRole {
    System,
    User,
    Assistant,
    Tool,
}

impl fmt::Display for ChatRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(spell(self))
    }
}

impl ChatMessage {
    /// Instructions for the model.
    pub fn system(text: impl Into<String>) -> Self {
        Self::System { text: text.into() }
    }

    /// A text of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { parts: vec![ChatPart::Text(text.into())] }
    }

    /// A reply of the model, without calls.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant { text: text.into(), calls: Vec::new() }
    }

    /// The answer to the call `call_id`.
    pub fn tool(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Tool { call_id: call_id.into(), text: text.into() }
    }

    /// The role of its author.
    pub fn role(&self) -> ChatRole {
        match self {
            Self::System { .. } => ChatRole::System,
            Self::User { .. } => ChatRole::User,
            Self::Assistant { .. } => ChatRole::Assistant,
            Self::Tool { .. } => ChatRole::Tool,
        }
    }

    /// Its text; that of several parts is separated by blank lines. Pictures have none.
    pub fn text(&self) -> String {
        match self {
            Self::System { text } | Self::Assistant { text, .. } | Self::Tool { text, .. } => text.clone(),
            Self::User { parts } => {
                let texts = parts.iter().filter_map(|part| match part {
                    ChatPart::Text(text) => Some(text.as_str()),
                    ChatPart::Image(_) => None,
                });
                texts.collect::<Vec<_>>().join("\n\n")
            }
        }
    }

    /// Replaces every text of the message that is a template: its text or parts, and the texts in the arguments of its
    /// calls. The order is always the same.
    pub(super) fn map(&self, mut replace: impl FnMut(&str) -> String) -> Self {
        match self {
            Self::System { text } => Self::System { text: replace(text) },
            Self::User { parts } => {
                let part = |part: &ChatPart| match part {
                    ChatPart::Text(text) => ChatPart::Text(replace(text)),
                    ChatPart::Image(source) => ChatPart::Image(replace(source)),
                };
                Self::User { parts: parts.iter().map(part).collect() }
            }
            Self::Assistant { text, calls } => {
                let text = replace(text);
                let call = |call: &ToolCall| {
                    let arguments = replace_arguments(&call.arguments, &mut replace);
                    ToolCall { arguments, ..call.clone() }
                };
                Self::Assistant { text, calls: calls.iter().map(call).collect() }
            }
            Self::Tool { call_id, text } => Self::Tool { call_id: call_id.clone(), text: replace(text) },
        }
    }
}

/// Replaces the texts inside arguments, so that a value can never break the JSON around it. Arguments that are not
/// JSON are one text.
fn replace_arguments(written: &str, replace: &mut impl FnMut(&str) -> String) -> String {
    let Ok(mut value) = serde_json::from_str::<Json>(written) else { return replace(written) };
    change_texts(&mut value, &mut |text| *text = replace(text));
    value.to_string()
}
