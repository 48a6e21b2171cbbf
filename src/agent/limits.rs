//! The limits that stop a turn: pure functions over its usage so far.

use std::fmt;

use crate::config::{Limits, Prices};
use crate::conversation::message::Usage;

use super::loop_detector::Standstill;

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
    Loop(Standstill),
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
    /// True if the model's reply was cut: there is an answer, but it is incomplete.
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
            Self::Loop(standstill) => write!(f, "{standstill}: stopped in a loop"),
            Self::Output => write!(f, "the model's output limit cut the answer (max_output_tokens)"),
            Self::Window { tokens } => {
                write!(f, "the answer ran on until the model's context window of {tokens} tokens was full")
            }
        }
    }
}

/// The cost in USD of one request. The size of its input selects the price tier for the whole request.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
pub fn cost_usd(usage: &Usage, prices: &Prices) -> f64 {
    let tier = prices.at(usage.input_tokens);
    let cached = usage.cached_input_tokens.min(usage.input_tokens);
    let written = usage.cache_write_tokens.min(usage.input_tokens - cached);
    let fresh = usage.input_tokens - cached - written;
    let million = fresh as f64 * tier.input
        + cached as f64 * tier.cached_input.unwrap_or(tier.input)
        + written as f64 * tier.cache_write.unwrap_or(tier.input)
        + usage.output_tokens as f64 * tier.output;
    million / 1_000_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PriceTier;

    /// Input, cached, written and output tokens in thousands.
    fn usage((input, cached, written, output): (u64, u64, u64, u64)) -> Usage {
        Usage {
            input_tokens: input * 1000,
            cached_input_tokens: cached * 1000,
            cache_write_tokens: written * 1000,
            output_tokens: output * 1000,
            ..Usage::default()
        }
    }

    #[test]
    fn a_request_costs_what_the_tier_of_its_input_says() {
        let tier = |above, input| PriceTier {
            above,
            input,
            cached_input: Some(input / 10.0),
            cache_write: Some(input * 1.25),
            output: input * 5.0,
        };
        let tiered = Prices::of(tier(0, 4.0), vec![tier(500_000, 16.0), tier(200_000, 8.0)], false);
        let plain = Prices::of(PriceTier { cached_input: None, cache_write: None, ..tier(0, 4.0) }, vec![], false);
        for (prices, counts, usd) in [
            (&plain, (0, 0, 0, 0), 0.0),
            (&plain, (1000, 0, 0, 0), 4.0),
            // Without prices of their own, cached and written tokens cost what others do.
            (&plain, (1000, 600, 300, 500), 4.0 + 10.0),
            (&tiered, (100, 0, 0, 10), 0.4 + 0.2),
            (&tiered, (100, 60, 30, 10), 0.04 + 0.024 + 0.15 + 0.2),
            // Exactly the bound is not above it; one more, and the whole request costs more.
            (&tiered, (200, 0, 0, 0), 0.8),
            (&tiered, (201, 0, 0, 0), 1.608),
            (&tiered, (201, 201, 0, 100), 0.1608 + 4.0),
            (&tiered, (501, 0, 501, 1), 10.02 + 0.08),
            // A server that counts more cached tokens than there are.
            (&tiered, (100, 150, 150, 0), 0.04),
        ] {
            let cost = cost_usd(&usage(counts), prices);
            assert!((cost - usd).abs() < 1e-9, "{counts:?}: {cost} instead of {usd}");
        }
    }
}
