//! The entries of a chat template: messages, and places for messages that come with the variables. As data, in the
//! head of a prompt file:
//!
//! ```yaml
//! - system: You are {{ role }}.
//! - { placeholder: history, optional: true }
//! - user: [ { text: "Look at {{ thing }}" }, { image: "{{ path }}" } ]
//! - { assistant: "", calls: [ { id: c1, name: read_file, arguments: { path: "{{ path }}" } } ] }
//! - { tool: what it returned, call_id: c1 }
//! ```

use serde::Deserialize;

use crate::conversation::message::ToolCall;

use super::message::{ChatMessage, ChatPart, ChatRole};
use super::written::{JsonContent, WrittenCall};

/// An entry of a chat template.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "EntryForm")]
pub enum MessageTemplate {
    /// A message whose texts are templates.
    Message(ChatMessage),
    /// The messages in the variable `key`. If nothing defines it, an optional one gives no messages.
    Placeholder { key: String, optional: bool },
}

/// A message with instructions for the model.
pub fn system(text: impl Into<String>) -> MessageTemplate {
    ChatMessage::system(text).into()
}

/// A message of the user.
pub fn user(text: impl Into<String>) -> MessageTemplate {
    ChatMessage::user(text).into()
}

/// A message of the user that consists of texts and pictures.
///
/// ```
/// use agent::facade::prompt::chat::{ChatPart, parts};
/// let look = parts([ChatPart::Text("Look at {{ thing }}".into()), ChatPart::Image("{{ path }}".into())]);
/// ```
pub fn parts(parts: impl IntoIterator<Item = ChatPart>) -> MessageTemplate {
    ChatMessage::User { parts: parts.into_iter().collect() }.into()
}

/// A reply of the model.
pub fn assistant(text: impl Into<String>) -> MessageTemplate {
    ChatMessage::assistant(text).into()
}

/// A reply of the model that calls tools.
pub fn calling(text: impl Into<String>, calls: impl IntoIterator<Item = ToolCall>) -> MessageTemplate {
    ChatMessage::Assistant { text: text.into(), calls: calls.into_iter().collect() }.into()
}

/// The answer to the call `call_id`.
pub fn tool(call_id: impl Into<String>, text: impl Into<String>) -> MessageTemplate {
    ChatMessage::tool(call_id, text).into()
}

/// The messages in the variable `key`, usually a history.
pub fn placeholder(key: impl Into<String>, optional: bool) -> MessageTemplate {
    MessageTemplate::Placeholder { key: key.into(), optional }
}

impl MessageTemplate {
    /// Its texts that are templates, except for those in the arguments of calls.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::Placeholder { .. } => Vec::new(),
            Self::Message(ChatMessage::User { parts }) => parts
                .iter()
                .map(|part| match part {
                    ChatPart::Text(text) | ChatPart::Image(text) => text.as_str(),
                })
                .collect(),
            Self::Message(
                ChatMessage::System { text }
                | ChatMessage::Assistant { text, .. }
                | ChatMessage::Tool { text, .. },
            ) => vec![text],
        }
    }
}

impl From<ChatMessage> for MessageTemplate {
    fn from(message: ChatMessage) -> Self {
        Self::Message(message)
    }
}

/// An entry as data: one key for the role, and the keys that belong to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryForm {
    system: Option<JsonContent>,
    user: Option<JsonContent>,
    assistant: Option<JsonContent>,
    tool: Option<JsonContent>,
    placeholder: Option<String>,
    calls: Option<Vec<WrittenCall>>,
    call_id: Option<String>,
    optional: Option<bool>,
}

impl TryFrom<EntryForm> for MessageTemplate {
    type Error = String;

    fn try_from(form: EntryForm) -> Result<Self, String> {
        let EntryForm { system, user, assistant, tool, placeholder, calls, call_id, optional } = form;
        let belongs = [
            (calls.is_some() && assistant.is_none(), "calls", "assistant"),
            (call_id.is_some() && tool.is_none(), "call_id", "tool"),
            (optional.is_some() && placeholder.is_none(), "optional", "placeholder"),
        ];
        if let Some((_, key, to)) = belongs.iter().find(|(is_astray, ..)| *is_astray) {
            return Err(format!("`{key}` belongs beside `{to}`"));
        }
        Ok(match (system, user, assistant, tool, placeholder) {
            (Some(content), None, None, None, None) => {
                ChatMessage::System { text: content.text(ChatRole::System)? }.into()
            }
            (None, Some(content), None, None, None) => ChatMessage::User { parts: content.parts()? }.into(),
            (None, None, Some(content), None, None) => ChatMessage::Assistant {
                text: content.text(ChatRole::Assistant)?,
                calls: calls.unwrap_or_default().into_iter().map(ToolCall::from).collect(),
            }
            .into(),
            (None, None, None, Some(content), None) => ChatMessage::Tool {
                call_id: call_id.ok_or("`tool` needs a `call_id`: the id of the call that it answers")?,
                text: content.text(ChatRole::Tool)?,
            }
            .into(),
            (None, None, None, None, Some(key)) => {
                Self::Placeholder { key, optional: optional.unwrap_or_default() }
            }
            _ => {
                return Err(
                    "a message has exactly one of `system`, `user`, `assistant`, `tool`, `placeholder`".to_owned()
                );
            }
        })
    }
}
