//! The limits of a run as they follow from its settings.

use super::settings::Limits;

/// The default of `max_requests`, as a multiple of `max_turns`.
const REQUESTS_PER_TURN: u64 = 10;

impl Limits {
    /// The most requests of a run with all its helpers; `None` means no limit.
    pub fn most_requests(&self) -> Option<u64> {
        self.max_requests.or_else(|| self.max_turns.map(usual_requests))
    }
}

/// The most requests of a run whose conversations may have so many turns, if nothing else is said.
pub(super) fn usual_requests(max_turns: u64) -> u64 {
    max_turns.saturating_mul(REQUESTS_PER_TURN)
}
