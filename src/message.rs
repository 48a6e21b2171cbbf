//! What a conversation keeps: messages, the calls in them, and what a reply cost in tokens.
//!
//! The enum is by role, so that a tool's answer without a call id, or a user message with calls, cannot be
//! written. A call keeps its arguments as the text the model wrote: what is sent back in history is decided
//! where the request is made, never here.

use serde::{Deserialize, Serialize};

use crate::image::Image;

/// One message of a conversation. Its serde form is what the session log and the `message` event hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The rendered system prompt: always the first message, never shown as an event.
    System { content: String },
    /// What stands in the person's place: mostly what they (or a pipe) said, attachments included.
    User {
        content: String,
        #[serde(default, skip_serializing_if = "Origin::is_person")]
        origin: Origin,
    },
    /// What the model said.
    Assistant(AssistantMessage),
    /// The one answer to one call.
    Tool(ToolMessage),
}

/// Who wrote a message that the model reads as the user's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person, or whoever started the run.
    #[default]
    Person,
    /// This program: a reminder, a correction, the request for a closing answer.
    Program,
    /// What stands for messages that were taken out of the view.
    Summary,
}

impl Origin {
    /// Whether a person said it.
    #[must_use]
    pub fn is_person(&self) -> bool {
        *self == Self::Person
    }
}

/// One reply of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The visible text; empty when the reply is calls alone.
    pub content: String,
    /// The model's reasoning, where the provider shows it. Kept, never sent back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    pub finish_reason: FinishReason,
    #[serde(default)]
    pub usage: Usage,
    /// USD by the model's prices; `None` when no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// The answer to a call, as the model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolMessage {
    pub call_id: String,
    pub name: String,
    pub content: String,
    pub status: CallStatus,
    /// What the model is to look at, sent behind the answers of its step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Ok,
    Error,
    Denied,
    Timeout,
    Cancelled,
}

/// A call that the model asked for. `arguments` is its text verbatim, well-formed or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    #[default]
    Stop,
    ToolCalls,
    /// The output limit cut the reply.
    Length,
    ContentFilter,
    /// We stopped listening: a signal, a limit, or a stream that broke.
    Interrupted,
}

/// Tokens of one reply, or the sum of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens of the request, cached ones included.
    pub input_tokens: u64,
    pub cached_input_tokens: u64,
    /// All tokens of the reply, reasoning included.
    pub output_tokens: u64,
    pub reasoning_tokens: u64,
    /// True when the provider reported nothing and the figures are our estimate.
    #[serde(default)]
    pub estimated: bool,
}

impl Usage {
    /// Input and output together: what `--max-tokens` limits.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.cached_input_tokens += other.cached_input_tokens;
        self.output_tokens += other.output_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        self.estimated |= other.estimated;
    }
}

impl Message {
    /// What a person said.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::User { content: content.into(), origin: Origin::Person }
    }

    /// What this program says in the person's place.
    #[must_use]
    pub fn reminder(content: impl Into<String>) -> Self {
        Self::User { content: content.into(), origin: Origin::Program }
    }

    /// Whether a person said it.
    #[must_use]
    pub fn is_from_person(&self) -> bool {
        matches!(self, Self::User { origin: Origin::Person, .. })
    }

    /// The text of the message, whatever its role.
    #[must_use]
    pub fn content(&self) -> &str {
        match self {
            Self::System { content } | Self::User { content, .. } => content,
            Self::Assistant(message) => &message.content,
            Self::Tool(message) => &message.content,
        }
    }

    /// The pictures of the message.
    #[must_use]
    pub fn images(&self) -> &[Image] {
        match self {
            Self::Tool(message) => &message.images,
            Self::System { .. } | Self::User { .. } | Self::Assistant(_) => &[],
        }
    }
}
