//! The purpose of a request.

use crate::contract::ToolChoice;
use crate::message::{Call, Item, Part, ToolCall};

/// The purpose of a request.
#[derive(Debug, Clone)]
pub(super) enum Purpose {
    /// The next step of the turn.
    Answer,
    /// An answer without calls: the end of a turn, a correction.
    Closing,
    /// A summary of the items to remove. Its reply is not shown and not part of the conversation.
    Summary(Aside),
}

/// A request beside the conversation.
#[derive(Debug, Clone)]
pub(super) struct Aside {
    /// The items of the request.
    pub items: Vec<Item>,
    /// The question, after the items.
    pub prompt: String,
    /// Whether the tool definitions are sent too, so that the prefix stays the same.
    pub with_tools: bool,
    /// The size of the request, in tokens.
    pub tokens: u64,
}

impl Purpose {
    pub(super) fn choice(&self) -> ToolChoice {
        if matches!(self, Self::Answer) { ToolChoice::Auto } else { ToolChoice::None }
    }

    pub(super) fn has_tools(&self) -> bool {
        !matches!(self, Self::Summary(aside) if !aside.with_tools)
    }

    pub(super) fn is_summary(&self) -> bool {
        matches!(self, Self::Summary(_))
    }
}

/// A call as it came, with an empty slot.
pub(super) fn open(request: ToolCall) -> Part {
    Part::Call(Call { request, opaque: None, answer: None })
}
