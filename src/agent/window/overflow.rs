//! The budget after a server refused a request as too long.

use crate::model::Stated;

/// The lesson of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learned {
    /// The budget from now on, in our tokens.
    pub budget: u64,
    /// The limit that the server states, in the server's tokens.
    pub limit: Option<u64>,
}

/// Learns from the refusal of a request of `sent` tokens by our count. `fixed` of them are the prompt and the tools,
/// the minimum of any budget.
///
/// A server's count differs from ours. If it states both the size and the limit, our budget is scaled by their
/// ratio; of the tokens that the request keeps for the reply, `least_output` are enough. If it states only the limit, that limit is used if it is smaller than what was sent. Without either, the
/// budget is three quarters of what was sent.
pub fn learn_window(refusal: &str, sent: u64, fixed: u64, least_output: u64) -> Learned {
    let Stated { limit, input, output } = Stated::read(refusal);
    let room = limit.map(|limit| limit.saturating_sub(output.unwrap_or(0).min(least_output)));
    let budget = match (room, input) {
        (Some(room), Some(input)) if 0 < room && room < input => less_a_margin(scale_room(sent, room, input)),
        (Some(room), _) if 0 < room && room < sent => less_a_margin(room),
        _ => sent * 3 / 4,
    };
    Learned { budget: budget.max(fixed).max(1), limit }
}

fn scale_room(sent: u64, room: u64, input: u64) -> u64 {
    let scaled = u128::from(sent) * u128::from(room) / u128::from(input);
    u64::try_from(scaled).unwrap_or(sent)
}

/// Subtracts a fiftieth: the parts of a request do not all scale alike.
fn less_a_margin(tokens: u64) -> u64 {
    tokens - tokens / 50
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_scaled_to_our_own_count() {
        for (refusal, sent, fixed, budget, limit) in [
            // Both numbers: 8192 of 9001, less a fiftieth.
            ("maximum context length is 8192 tokens, your messages resulted in 9001", 9001, 0, 8029, Some(8192)),
            ("maximum context length is 8192 tokens, your messages resulted in 9001", 6000, 0, 5351, Some(8192)),
            (
                "maximum context length is 8192 tokens, your messages resulted in 9001",
                18_002,
                0,
                16_057,
                Some(8192),
            ),
            // Tokens reserved for the reply are not room for the request.
            ("exceed context limit: 199500 + 20000 > 200000", 99_750, 0, 97_499, Some(200_000)),
            // One number: the limit, if it is less than what was sent.
            ("the available context size (4096 tokens)", 5000, 0, 4015, Some(4096)),
            ("the available context size (4096 tokens)", 4000, 0, 3000, Some(4096)),
            // No number.
            ("context_length_exceeded", 1000, 0, 750, None),
            // Numbers that contradict the refusal.
            ("maximum context length is 8192 tokens, your messages resulted in 300", 6000, 0, 4500, Some(8192)),
            // Never less than the fixed part.
            (
                "maximum context length is 8192 tokens, your messages resulted in 81920",
                9000,
                4000,
                4000,
                Some(8192),
            ),
            ("context_length_exceeded", 1000, 900, 900, None),
            ("context_length_exceeded", 0, 0, 1, None),
        ] {
            assert_eq!(
                learn_window(refusal, sent, fixed, 1024),
                Learned { budget, limit },
                "{refusal} {sent} {fixed}"
            );
        }
    }
}
