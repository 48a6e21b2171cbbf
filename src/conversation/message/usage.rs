//! The tokens of replies.

use serde::{Deserialize, Serialize};

/// Tokens of one reply, or the sum of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens of the request, including cached ones.
    pub input_tokens: u64,
    pub cached_input_tokens: u64,
    /// Tokens of the request that were written to the provider's cache, if that has a separate price.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// All tokens of the reply, including reasoning.
    pub output_tokens: u64,
    pub reasoning_tokens: u64,
    /// True if the provider reported nothing and the numbers are our estimate.
    #[serde(default)]
    pub estimated: bool,
    /// True if the cost is based on prices that only one source states.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_about: bool,
}

impl Usage {
    /// Input plus output: the sum that `--max-tokens` limits.
    pub fn total(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.cached_input_tokens += other.cached_input_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.output_tokens += other.output_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        self.estimated |= other.estimated;
        self.cost_about |= other.cost_about;
    }
}
