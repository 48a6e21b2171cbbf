//! The limits that stop a turn: pure functions over its usage so far.

use std::fmt;

use crate::config::{Limits, Prices};
use crate::message::Usage;

/// The usage of a turn so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meter {
    pub steps: u64,
    pub usage: Usage,
    pub cost_usd: f64,
}

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    Steps(u64),
    Tokens {
        used: u64,
        limit: u64,
    },
    Cost {
        used: f64,
        limit: f64,
    },
    Time(std::time::Duration),
    Loop {
        times: usize,
    },
    /// The model's own output limit cut the answer.
    Output,
    /// The answer continued until the model's context window was full.
    Window {
        tokens: u64,
    },
}

impl Meter {
    /// Counts a request, made by a step or beside one.
    pub fn add(&mut self, usage: Usage, cost_usd: Option<f64>) {
        self.usage += usage;
        self.cost_usd += cost_usd.unwrap_or(0.0);
    }

    /// The limit that these numbers exceed, if any: a request that would surely exceed a limit is not sent.
    #[must_use]
    pub fn exceeded(&self, limits: &Limits) -> Option<Limit> {
        let used = self.usage.total();
        let tokens = limits.max_tokens.filter(|limit| used > *limit).map(|limit| Limit::Tokens { used, limit });
        let cost = || {
            let used = self.cost_usd;
            limits.max_cost.filter(|limit| used > *limit).map(|limit| Limit::Cost { used, limit })
        };
        tokens.or_else(cost)
    }

    /// The limit that forbids another request, if any.
    #[must_use]
    pub fn reached(&self, limits: &Limits) -> Option<Limit> {
        let turns = limits.max_turns.filter(|most| self.steps >= *most).map(Limit::Steps);
        let tokens = || {
            let used = self.usage.total();
            limits.max_tokens.filter(|limit| used >= *limit).map(|limit| Limit::Tokens { used, limit })
        };
        let cost = || {
            let used = self.cost_usd;
            limits.max_cost.filter(|limit| used >= *limit).map(|limit| Limit::Cost { used, limit })
        };
        turns.or_else(tokens).or_else(cost)
    }
}

impl Limit {
    /// Whether the model's reply was cut: there is an answer, but it is incomplete.
    pub(super) fn is_of_output(&self) -> bool {
        matches!(self, Self::Output | Self::Window { .. })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps(most) => write!(f, "the limit of {most} model requests in a turn (max_turns) was reached"),
            Self::Tokens { used, limit } => {
                write!(f, "the token limit was reached: {used} of {limit} (max_tokens)")
            }
            Self::Cost { used, limit } => {
                write!(f, "the cost limit was reached: ${used:.4} of ${limit:.4} (max_cost)")
            }
            Self::Time(limit) => {
                write!(f, "the time limit of {} (max_time) ran out", crate::config::format_duration(*limit))
            }
            Self::Loop { times } => {
                write!(f, "the same call returned the same result {times} times: stopped in a loop")
            }
            Self::Output => write!(f, "the model's output limit cut the answer (max_output_tokens)"),
            Self::Window { tokens } => {
                write!(f, "the answer ran on until the model's context window of {tokens} tokens was full")
            }
        }
    }
}

/// USD for `usage` at `prices`, which are per million tokens.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
pub fn cost_usd(usage: &Usage, prices: &Prices) -> f64 {
    let cached = usage.cached_input_tokens.min(usage.input_tokens);
    let fresh = usage.input_tokens - cached;
    let cached_price = prices.cached_input.unwrap_or(prices.input);
    (fresh as f64 * prices.input + cached as f64 * cached_price + usage.output_tokens as f64 * prices.output)
        / 1_000_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_input_is_charged_at_its_own_price() {
        let usage = Usage {
            input_tokens: 1_000_000,
            cached_input_tokens: 400_000,
            output_tokens: 500_000,
            ..Usage::default()
        };
        let prices = Prices { input: 1.0, cached_input: Some(0.1), output: 4.0 };
        assert!((cost_usd(&usage, &prices) - (0.6 + 0.04 + 2.0)).abs() < 1e-9);
    }
}
