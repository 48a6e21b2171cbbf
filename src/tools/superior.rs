//! The run that a call is part of, for a tool that begins a helper's run within it.

use crate::conversation::event::Event;
use crate::conversation::message::Usage;

/// The run that calls a helper. A helper lives as long as its call.
pub trait Superior: Send + Sync {
    /// The session of the caller, if it is kept.
    fn session(&self) -> Option<&str>;

    /// The source of the outside content in the caller's conversation, if any (`content from https://…`).
    fn taint(&self) -> Option<&str>;

    /// True if the caller, and so the helper, may change nothing (mode `explore`).
    fn only_reads(&self) -> bool;

    /// Reports a source of outside content that the helper's report may rest on.
    fn tainted(&self, source: &str);

    /// The limits that the helper may still use. Parallel helpers share them.
    fn left(&self) -> Left;

    /// Counts a request of the helper. `cost_usd` is `None` if the cost is unknown.
    fn spend(&self, usage: Usage, cost_usd: Option<f64>);

    /// Shows an event of the helper to the observers of the run.
    fn relay(&self, event: Event);

    /// Called when a wait for a person begins: the time counts against no limit.
    fn pause(&self);

    /// Called when a wait for a person ends.
    fn resume(&self);
}

/// The remaining limits; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Left {
    /// Input and output tokens in sum.
    pub tokens: Option<u64>,
    /// USD.
    pub cost: Option<f64>,
}

impl Left {
    /// The smaller value of each limit.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        let tokens = [self.tokens, other.tokens].into_iter().flatten().min();
        let cost = [self.cost, other.cost].into_iter().flatten().reduce(f64::min);
        Self { tokens, cost }
    }

    /// The rest after this was used.
    #[must_use]
    pub fn less(self, tokens: u64, cost: f64) -> Self {
        Self {
            tokens: self.tokens.map(|left| left.saturating_sub(tokens)),
            cost: self.cost.map(|left| (left - cost).max(0.0)),
        }
    }
}
