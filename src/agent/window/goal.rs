//! The goal of a compression: the size at which it begins and the size that it aims for.

use crate::config::ContextSettings;

use super::budget::Budget;

/// The sizes that a plan is made for, in tokens of a whole request unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// Larger requests are compressed.
    pub at: u64,
    /// A compression reaches this size or less if it can.
    pub to: u64,
    /// No request may be larger.
    pub most: u64,
    /// The tokens of the newest items that stay whole as long as possible.
    pub recent: u64,
    /// True if a person asked for the compression: it then happens however small the conversation is.
    pub asked: bool,
}

impl Goal {
    /// The goal according to the settings, whose shares are of the budget. If `kept`, what is never removed, is large,
    /// both sizes move up, so that there is always room for more.
    pub fn new(settings: &ContextSettings, budget: &Budget, kept: u64) -> Self {
        let most = budget.tokens;
        // If it is too much as a whole, the person's message is not kept as it is.
        let free = most.saturating_sub(kept);
        let beside = |share: u64| if free > 0 { kept + share } else { 0 };
        Self {
            at: settings.compress_at.take_share(most).max(beside(free / 2)),
            to: settings.compress_to.take_share(most).max(beside(free / 4)),
            most,
            recent: settings.keep_recent.take_share(most).min(free / 3),
            asked: false,
        }
    }

    /// The goal for a person's request: less than the current size, however small that is.
    pub fn for_a_person(self, before: u64, kept: u64) -> Self {
        let history = before.saturating_sub(kept);
        Self { to: self.to.min(kept + history / 2), recent: self.recent.min(history / 2), asked: true, ..self }
    }

    /// The size up to which a conversation waits for a pass that needs no summary.
    pub(super) fn late(&self) -> u64 {
        self.most.min(self.at + self.most / 5)
    }
}
