//! The part of a request that controls the model's thinking.

use serde_json::{Value, json};

use super::super::asked::{OutgoingRequest, RequestSettings};
use super::super::effort::Effort;
use super::super::turns::WireTurn;
use super::flags::{AnthropicFlags, Thinking};
use super::messages;

/// The limit of a reply in tokens if neither the model file nor the catalogue has one: the API demands one.
const ASSUMED_OUTPUT: u64 = 32_000;

/// The smallest budget that the API accepts, in tokens.
const LEAST_BUDGET: u64 = 1024;

/// The request to think, or not to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// The field is left out.
    Nothing,
    Disabled,
    /// At most so many tokens.
    Budget(u64),
    Adaptive,
}

impl Asks {
    /// The request that fits the model and the conversation.
    pub fn choose(asked: &OutgoingRequest<'_>, flags: &AnthropicFlags) -> Self {
        let effort = asked.settings.effort;
        match (flags.thinking, effort) {
            (Thinking::Off, _) | (Thinking::Budget | Thinking::Adaptive, None | Some(Effort::None)) => {
                Self::Nothing
            }
            (Thinking::Unasked, Some(Effort::None)) => Self::Disabled,
            (Thinking::Budget, Some(effort)) => match choose_budget(effort, most_tokens(asked.settings)) {
                Some(budget) if !is_inside_unthought_calls(asked.turns, flags) => Self::Budget(budget),
                _ => Self::Nothing,
            },
            (Thinking::Adaptive | Thinking::Unasked | Thinking::Always, _) => Self::Adaptive,
        }
    }

    /// The field `thinking`.
    pub fn field(self, flags: &AnthropicFlags) -> Option<Value> {
        match self {
            Self::Nothing => None,
            Self::Disabled => Some(json!({"type": "disabled"})),
            Self::Budget(tokens) => Some(json!({"type": "enabled", "budget_tokens": tokens})),
            Self::Adaptive => {
                let mut field = json!({"type": "adaptive"});
                if flags.thinking_display {
                    field["display"] = "summarized".into();
                }
                if flags.binding_controls {
                    field["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
                }
                Some(field)
            }
        }
    }

    /// True if the model is certain to think.
    pub fn is_on(self) -> bool {
        matches!(self, Self::Budget(_) | Self::Adaptive)
    }
}

/// The limit of a reply with these settings, thoughts included, without the cap of a single request: the thinking
/// budget follows from it and stays the same for a session.
pub fn most_tokens(settings: &RequestSettings) -> u64 {
    let replaced = settings.extra.get("max_tokens").and_then(Value::as_u64);
    let limit = replaced.or(settings.max_output_tokens).or(settings.most_output_tokens);
    limit.unwrap_or(ASSUMED_OUTPUT)
}

/// The tokens of thought for a level; a quarter of the reply is kept for its text. `None` if too few are left.
fn choose_budget(effort: Effort, max_tokens: u64) -> Option<u64> {
    let wanted = match effort {
        Effort::None => return None,
        Effort::Minimal => LEAST_BUDGET,
        Effort::Low => 4096,
        Effort::Medium => 8192,
        Effort::High => 16_384,
        Effort::Xhigh => 32_768,
        Effort::Max => u64::MAX,
    };
    Some(wanted.min(max_tokens - max_tokens / 4)).filter(|budget| *budget >= LEAST_BUDGET && *budget < max_tokens)
}

/// The tokens of thought that requests with these settings ask for, if they ask for a number.
pub fn thinking_budget(settings: &RequestSettings, flags: &AnthropicFlags) -> Option<u64> {
    let effort = settings.effort.filter(|_| flags.thinking == Thinking::Budget)?;
    choose_budget(effort, most_tokens(settings))
}

/// The level as `output_config.effort` spells it: it has neither `none` nor `minimal`.
pub(super) fn spell_level(effort: Effort) -> Option<&'static str> {
    match effort {
        Effort::None => None,
        Effort::Minimal => Some(Effort::Low.word()),
        level => Some(level.word()),
    }
}

/// True if the conversation ends in results of calls that began without a thought: another model made them, or a
/// compression removed it. The API refuses to think by budget in the middle of those.
fn is_inside_unthought_calls(turns: &[WireTurn<'_>], flags: &AnthropicFlags) -> bool {
    let mut first = None;
    let mut rest = turns;
    loop {
        match rest {
            [before @ .., WireTurn::Results(_), WireTurn::User(_)] => rest = &rest[..=before.len()],
            [before @ .., WireTurn::Model(parts), WireTurn::Results(_)] => {
                first = parts.iter().find_map(|part| messages::write_reply_part(part, flags));
                rest = before;
            }
            _ => return first.is_some_and(|block| !block.is_thought()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_leaves_room_for_the_answer() {
        for (effort, max_tokens, tokens) in [
            (Effort::None, 64_000, None),
            (Effort::Minimal, 64_000, Some(1024)),
            (Effort::High, 64_000, Some(16_384)),
            (Effort::Max, 64_000, Some(48_000)),
            (Effort::High, 8000, Some(6000)),
            (Effort::Low, 1400, Some(1050)),
            (Effort::Low, 1200, None),
            (Effort::Low, 0, None),
        ] {
            assert_eq!(choose_budget(effort, max_tokens), tokens, "{effort:?} of {max_tokens}");
        }
    }
}
