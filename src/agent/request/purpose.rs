//! The purpose of a request.

use std::sync::Arc;

use serde_json::Value;

use crate::conversation::message::{Call, Item, ReplyPart, ToolCall};
use crate::model::{ChatModel, ToolChoice};

/// Who asks for the summary of a compression, in events.
pub(in crate::agent) const SUMMARY_ROLE: &str = "summary";

/// The purpose of a request.
#[derive(Clone)]
pub(in crate::agent) enum Purpose {
    /// The next step of the turn.
    Answer,
    /// An answer without calls: the end of a turn, a correction.
    Closing,
    /// A question whose reply is not shown and not part of the conversation: a summary, a decision of a role.
    Aside(Aside),
}

/// A request beside the conversation.
#[derive(Clone)]
pub(in crate::agent) struct Aside {
    /// Who asks: `summary`, a role, a step of a flow.
    pub role: String,
    /// The model to ask; `None` means the agent's, with the system prompt of the conversation.
    pub model: Option<Arc<dyn ChatModel>>,
    /// The JSON Schema that the reply must match, if any.
    pub schema: Option<Arc<Value>>,
    /// The items of the request.
    pub items: Vec<Item>,
    /// The question, after the items.
    pub prompt: String,
    /// True if the tool definitions are sent too, to keep the prefix the same.
    pub with_tools: bool,
    /// The size of the request, in tokens.
    pub tokens: u64,
}

impl Purpose {
    pub(in crate::agent) fn choice(&self) -> ToolChoice {
        if matches!(self, Self::Answer) { ToolChoice::Auto } else { ToolChoice::None }
    }

    pub(in crate::agent) fn has_tools(&self) -> bool {
        !matches!(self, Self::Aside(aside) if !aside.with_tools)
    }

    pub(in crate::agent) fn is_aside(&self) -> bool {
        matches!(self, Self::Aside(_))
    }

    /// Who asks, in events.
    pub(in crate::agent) fn role(&self) -> &str {
        match self {
            Self::Answer => "main",
            Self::Closing => "closing",
            Self::Aside(aside) => &aside.role,
        }
    }

    /// The attempts at a request that is configured to have so many. A summary has a substitute made in code, so that
    /// it is not worth a long wait.
    pub(in crate::agent) fn limit_attempts(&self, configured: u32) -> u32 {
        const OF_A_SUMMARY: u32 = 3;
        if self.role() == SUMMARY_ROLE { configured.min(OF_A_SUMMARY) } else { configured }
    }

    /// The model to ask, if it is not the agent's.
    pub(in crate::agent) fn model(&self) -> Option<&Arc<dyn ChatModel>> {
        match self {
            Self::Aside(aside) => aside.model.as_ref(),
            Self::Answer | Self::Closing => None,
        }
    }
}

/// A call with an empty slot for its answer.
pub(in crate::agent) fn open_call(request: ToolCall) -> ReplyPart {
    ReplyPart::Call(Call { request, opaque: None, answer: None })
}
