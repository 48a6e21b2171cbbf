//! One part of a request, measured: the tool definitions, the system prompt, or an item of the conversation.

use crate::base::image::{self, Image};
use crate::base::tokens::TokenMix;
use crate::conversation::message::{Item, Step};
use crate::conversation::session::ItemId;
use crate::model::ToolDefinition;

use super::rates::{SizeParts, to_float};

/// One part of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MeasuredEntry {
    pub id: ItemId,
    /// The number of the item's calls that have an answer.
    pub answers: usize,
    /// The bytes of its texts: no token is shorter than a byte.
    pub texts: u64,
    /// The tokens of its frames and pictures, as we assume them.
    pub around: u64,
    pub images: u64,
    pub parts: SizeParts,
    pub origin: SizeOrigin,
}

/// The origin of a size.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum SizeOrigin {
    #[default]
    Expected,
    /// Counted here; the parts add up to the count.
    Counted,
    /// Its share of what the server counted.
    Reported(f64),
}

impl MeasuredEntry {
    pub fn of_tools(tools: &[ToolDefinition]) -> Self {
        let texts: Vec<String> = list_tool_texts(tools).collect();
        let tokens = texts.iter().map(|text| TokenMix::of_text(text).tokens()).sum();
        let bytes = texts.iter().map(|text| text.len() as u64).sum();
        Self { texts: bytes, parts: SizeParts::of_tools(tokens), ..Self::default() }
    }

    pub fn of_system(text: &str) -> Self {
        Self::of_messages([text], FRAME, 0)
    }

    pub fn of_item(id: ItemId, item: &Item) -> Self {
        let entry =
            Self::of_messages(item.texts(), measure_frame(item), item.images().map(Image::count_pictures).sum());
        Self { id, answers: count_answers(item), ..entry }
    }

    fn of_messages<'t>(texts: impl IntoIterator<Item = &'t str>, frames: u64, images: u64) -> Self {
        let mut entry = Self { around: frames + images * image::TOKENS, images, ..Self::default() };
        let mixes = texts.into_iter().inspect(|text| entry.texts += text.len() as u64).map(TokenMix::of_text);
        entry.parts = SizeParts::of_messages(mixes, frames, images * image::TOKENS);
        entry
    }

    /// An upper bound of its tokens.
    pub fn bytes(&self) -> u64 {
        self.texts + self.around
    }

    pub fn is_reported(&self) -> bool {
        matches!(self.origin, SizeOrigin::Reported(_))
    }

    /// Counts its texts, unless a count is known.
    pub fn count(&mut self, texts: impl FnOnce() -> u64) {
        if self.origin == SizeOrigin::Expected {
            self.parts.recount(to_float(texts()));
            self.origin = SizeOrigin::Counted;
        }
    }
}

/// The tokens for the role and the ids of a message. An answer is a message of its own.
pub(super) const FRAME: u64 = 4;

pub(super) fn measure_frame(item: &Item) -> u64 {
    FRAME * (1 + count_answers(item) as u64)
}

/// The number of an item's calls that have an answer.
pub(super) fn count_answers(item: &Item) -> usize {
    item.as_step().into_iter().flat_map(Step::calls).filter(|call| call.answer.is_some()).count()
}

/// The texts of tool definitions, as they are counted.
pub(super) fn list_tool_texts(tools: &[ToolDefinition]) -> impl Iterator<Item = String> {
    tools.iter().flat_map(|tool| [tool.name.clone() + " " + &tool.description, tool.parameters.to_string()])
}
