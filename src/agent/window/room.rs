//! The room for the replacement of older items.

use crate::base::tokens::BYTES_PER_TOKEN;

use super::goal::Goal;
use super::rates::{Rates, to_float};
use super::ruler::Ruler;

/// The room for a summary and what is added to it, in tokens by our estimate of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For the parts, written by a model or by code.
    pub summary: u64,
    /// For the person's own words.
    pub quoted: u64,
    /// For each list of files.
    pub files: u64,
}

impl Room {
    /// The room beside `kept`, which is never removed, in a request of the goal's size.
    pub fn measure(goal: &Goal, kept: u64, ruler: &Ruler) -> Self {
        let free = ruler.remove_scale(goal.to.saturating_sub(kept));
        Self { summary: (free / 4).clamp(200, 4000), quoted: (free / 4).min(20_000), files: (free / 16).min(2000) }
    }

    /// The tokens that the parts may have: code and identifiers have more than plain text of as many bytes.
    pub(super) fn most_of_parts(&self) -> u64 {
        self.summary + self.summary / 8
    }

    /// True if the parts of a summary fit.
    pub(super) fn has_room_for(&self, parts: &str, rates: &Rates) -> bool {
        parts.len() <= Self::bytes(self.summary)
            && rates.weigh_text(parts) <= rates.of_prose() * to_float(self.most_of_parts())
    }

    /// The tokens that a model is told it may use. Models count badly, so there is a margin.
    pub fn allow_tokens(&self) -> u64 {
        self.summary * 3 / 4
    }

    /// Tells for one text after another whether it still fits into so many bytes, each with `gap` bytes after it.
    pub(super) fn fill(mut bytes: usize, gap: usize) -> impl FnMut(&str) -> bool {
        move |text| {
            let fits = text.len() < bytes;
            bytes = bytes.saturating_sub(text.len() + gap);
            fits
        }
    }

    /// Tokens as bytes of text.
    pub(super) fn bytes(tokens: u64) -> usize {
        usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN)
    }
}
