//! The purpose of a request.

use crate::conversation::message::{Call, Item, ReplyPart, ToolCall};
use crate::model::ToolChoice;

/// The purpose of a request.
#[derive(Clone)]
pub(in crate::agent) enum Purpose {
    /// The next step of the turn.
    Answer,
    /// An answer without calls: the end of a turn, a correction.
    Closing,
    /// The summary of a compression, with the prefix of the conversation. It is not shown, and no part of the
    /// conversation.
    Summary(SummaryRequest),
}

/// A request for a summary.
#[derive(Clone)]
pub(in crate::agent) struct SummaryRequest {
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
        !matches!(self, Self::Summary(asked) if !asked.with_tools)
    }

    pub(in crate::agent) fn is_summary(&self) -> bool {
        matches!(self, Self::Summary(_))
    }

    /// Who asks, in events.
    pub(in crate::agent) fn role(&self) -> &'static str {
        match self {
            Self::Answer => "main",
            Self::Closing => "closing",
            Self::Summary(_) => "summary",
        }
    }

    /// The attempts at a request that is configured to have so many. A summary has a substitute made in code, so that
    /// it is not worth a long wait.
    pub(in crate::agent) fn limit_attempts(&self, configured: u32) -> u32 {
        const OF_A_SUMMARY: u32 = 3;
        if self.is_summary() { configured.min(OF_A_SUMMARY) } else { configured }
    }
}

/// A call with an empty slot for its answer.
pub(in crate::agent) fn open_call(request: ToolCall) -> ReplyPart {
    ReplyPart::Call(Call { request, opaque: None, answer: None })
}
