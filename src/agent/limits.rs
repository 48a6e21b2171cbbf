//! The limits that stop a turn.

use std::fmt;
use std::time::Duration;

use crate::config::Limits;
use crate::model::ledger::{RunLedger, SpendingBounds, SpendingRefusal, Spent};

use super::clock::{PausableClock, calling_time};
use super::loops::Standstill;

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReachedLimit {
    /// The conversation has had its steps; what the run has spent with all its helpers.
    Steps {
        most: u64,
        spent: Spent,
    },
    /// The next request does not fit into what is left of requests, tokens or cost.
    Spending(SpendingRefusal),
    Time(Duration),
    Loop(Standstill),
    /// The model's own output limit cut the answer.
    Output,
    /// What other limits leave cut the answer after so many tokens.
    Remainder {
        tokens: u64,
        spent: Spent,
    },
    /// The answer continued until the model's context window was full.
    Window {
        tokens: u64,
    },
}

impl Limits {
    /// The most that the run may spend with all its helpers.
    pub(super) fn spending_bounds(&self) -> SpendingBounds {
        SpendingBounds { requests: self.most_requests(), tokens: self.max_tokens, usd: self.max_cost }
    }

    /// The limit that forbids another request, if any. `steps` are those of the conversation so far, where they are
    /// limited.
    pub(super) fn find_reached(
        &self,
        ledger: &RunLedger,
        clock: &PausableClock,
        steps: Option<u64>,
    ) -> Option<ReachedLimit> {
        let all = self.max_turns.filter(|most| steps.is_some_and(|steps| steps >= *most));
        let is_over = |most: &Duration| clock.elapsed() >= calling_time(*most);
        all.map(|most| ReachedLimit::Steps { most, spent: ledger.spent() })
            .or_else(|| ledger.find_exhausted().map(ReachedLimit::Spending))
            .or_else(|| self.max_time.map(Duration::from).filter(is_over).map(ReachedLimit::Time))
    }
}

impl ReachedLimit {
    /// The limit with what was spent in the end, the closing answer included.
    pub(super) fn after(self, ledger: &RunLedger) -> Self {
        match self {
            Self::Steps { most, .. } => Self::Steps { most, spent: ledger.spent() },
            // It may be a caller's limit, whose sums are not those of this conversation.
            Self::Spending(refusal) => {
                Self::Spending(SpendingRefusal { spent: ledger.spent_under(refusal.limit), ..refusal })
            }
            Self::Remainder { tokens, .. } => Self::Remainder { tokens, spent: ledger.spent() },
            Self::Time(_) | Self::Loop { .. } | Self::Output | Self::Window { .. } => self,
        }
    }

    /// True if the model's reply was cut: there is an answer, but it is incomplete.
    pub(super) fn is_of_output(&self) -> bool {
        matches!(self, Self::Output | Self::Remainder { .. } | Self::Window { .. })
    }
}

impl fmt::Display for ReachedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps { most, spent } => write!(
                f,
                "the limit of {most} model requests in a turn (max_turns) was reached; {spent} were spent in all"
            ),
            Self::Spending(refusal) => refusal.fmt(f),
            Self::Time(limit) => {
                write!(f, "the time limit of {} (max_time) ran out", crate::config::format_duration(*limit))
            }
            Self::Loop(standstill) => write!(f, "{standstill}: stopped in a loop"),
            Self::Output => write!(f, "the model's output limit cut the answer (max_output_tokens)"),
            Self::Remainder { tokens, spent } => write!(
                f,
                "the answer was cut after {tokens} tokens, which is all that max_tokens or max_cost leave; {spent} were \
                 spent in all"
            ),
            Self::Window { tokens } => {
                write!(f, "the answer ran on until the model's context window of {tokens} tokens was full")
            }
        }
    }
}
