//! What a request, and the closing answer after it, can take at most. Pure.

use crate::config::Prices;
use crate::conversation::message::Usage;

use super::amount::Amount;

/// The least output that a request is sent with, in tokens, unless the model writes no more than less.
pub const LEAST_OUTPUT: u64 = 1024;

/// The tokens of the message that asks for a closing answer.
const CLOSING_PROMPT: u64 = 512;

/// The size of a request that is to be sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claim<'p> {
    pub input_tokens: u64,
    /// The leading tokens that are known to be in the provider's cache.
    pub cached_tokens: u64,
    /// The most tokens that the reply can have.
    pub largest_output: u64,
    /// The fewest output tokens with which the request is worth sending.
    pub least_output: u64,
    /// `None` if they are unknown: the request then counts as free.
    pub prices: Option<&'p Prices>,
    pub closing: ClosingNeed,
}

/// The closing answer that must remain affordable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClosingNeed {
    /// As after the last request of the conversation.
    #[default]
    Unchanged,
    /// None: this request is the closing answer, or its reply ends the conversation anyway.
    Nothing,
    /// A request with the conversation, which has this many tokens.
    After { input_tokens: u64 },
    /// A request with this one's input and its reply.
    AfterReply,
}

impl Claim<'_> {
    /// What the request takes with a reply of `output` tokens.
    pub fn request(&self, output: u64) -> Amount {
        self.amount(self.input_tokens, self.cached_tokens, output)
    }

    /// What the closing answer takes after a reply of `output` tokens; `None` if that has not changed.
    pub fn closing(&self, output: u64) -> Option<Amount> {
        let (input, cached) = match self.closing {
            ClosingNeed::Unchanged => return None,
            ClosingNeed::Nothing => return Some(Amount::default()),
            ClosingNeed::After { input_tokens } => (input_tokens, 0),
            ClosingNeed::AfterReply => (self.input_tokens + output, self.cached_tokens),
        };
        Some(self.amount(input + CLOSING_PROMPT, cached, self.least_output))
    }

    fn amount(&self, input: u64, cached: u64, output: u64) -> Amount {
        let usd = self.prices.map_or(0.0, |prices| most_usd(input, cached, output, prices));
        Amount { requests: 1, tokens: input.saturating_add(output), usd }
    }
}

/// The most that a request can cost in USD: input that is not known to be cached may have to be written to the cache.
fn most_usd(input: u64, cached: u64, output: u64, prices: &Prices) -> f64 {
    let cached = cached.min(input);
    let usage = Usage {
        input_tokens: input,
        cached_input_tokens: cached,
        cache_write_tokens: input - cached,
        output_tokens: output,
        ..Usage::default()
    };
    let plain = Usage { cache_write_tokens: 0, ..usage };
    cost_usd(&usage, prices).max(cost_usd(&plain, prices))
}

/// The cost in USD of one request. The size of its input selects the price tier for the whole request.
pub fn cost_usd(usage: &Usage, prices: &Prices) -> f64 {
    let tier = prices.choose_tier(usage.input_tokens);
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
    fn usage([input, cached, written, output]: [u64; 4]) -> Usage {
        Usage {
            input_tokens: input * 1000,
            cached_input_tokens: cached * 1000,
            cache_write_tokens: written * 1000,
            output_tokens: output * 1000,
            ..Usage::default()
        }
    }

    fn tier(above: u64, input: f64) -> PriceTier {
        PriceTier {
            above,
            input,
            cached_input: Some(input / 10.0),
            cache_write: Some(input * 1.25),
            output: input * 5.0,
        }
    }

    #[test]
    fn a_request_costs_what_the_tier_of_its_input_says() {
        let tiered = Prices::new(tier(0, 4.0), vec![tier(500_000, 16.0), tier(200_000, 8.0)], false);
        let plain =
            Prices::new(PriceTier { cached_input: None, cache_write: None, ..tier(0, 4.0) }, vec![], false);
        for (prices, counts, usd) in [
            (&plain, [0, 0, 0, 0], 0.0),
            (&plain, [1000, 0, 0, 0], 4.0),
            // Without prices of their own, cached and written tokens cost what others do.
            (&plain, [1000, 600, 300, 500], 4.0 + 10.0),
            (&tiered, [100, 0, 0, 10], 0.4 + 0.2),
            (&tiered, [100, 60, 30, 10], 0.04 + 0.024 + 0.15 + 0.2),
            // Exactly the bound is not above it; one more, and the whole request costs more.
            (&tiered, [200, 0, 0, 0], 0.8),
            (&tiered, [201, 0, 0, 0], 1.608),
            (&tiered, [201, 201, 0, 100], 0.1608 + 4.0),
            (&tiered, [501, 0, 501, 1], 10.02 + 0.08),
            // A server that counts more cached tokens than there are.
            (&tiered, [100, 150, 150, 0], 0.04),
        ] {
            let cost = cost_usd(&usage(counts), prices);
            assert!((cost - usd).abs() < 1e-9, "{counts:?}: {cost} instead of {usd}");
        }
    }

    #[test]
    fn input_is_reserved_at_its_highest_price_unless_it_is_known_to_be_cached() {
        let prices = Prices::new(tier(0, 4.0), vec![], false);
        let claim = Claim { input_tokens: 100_000, prices: Some(&prices), ..Claim::default() };
        for (cached_tokens, usd) in [(0, 0.5), (100_000, 0.04), (60_000, 0.024 + 0.2), (900_000, 0.04)] {
            let amount = Claim { cached_tokens, ..claim }.request(10_000);
            assert!((amount.usd - usd - 0.2).abs() < 1e-9, "{cached_tokens}: {}", amount.usd);
        }
    }
}
