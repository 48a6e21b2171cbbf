//! The protocol of a model's server.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Chat completions: `POST {base_url}/chat/completions`.
    Chat,
    /// OpenAI's Responses: `POST {base_url}/responses`.
    Responses,
    /// Anthropic's Messages: `POST {base_url}/messages`.
    Anthropic,
}

impl Wire {
    /// The name as configuration and logs spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
        }
    }
}

/// `wire` in a model file: a protocol, or `auto`, which leaves it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Choice {
    Auto,
    Chat,
    Responses,
    Anthropic,
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
pub(super) fn serialize<S: Serializer>(wire: &Option<Wire>, serializer: S) -> Result<S::Ok, S::Error> {
    match wire {
        None => Choice::Auto,
        Some(Wire::Chat) => Choice::Chat,
        Some(Wire::Responses) => Choice::Responses,
        Some(Wire::Anthropic) => Choice::Anthropic,
    }
    .serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Wire>, D::Error> {
    Ok(Option::<Choice>::deserialize(deserializer)?.and_then(|choice| match choice {
        Choice::Auto => None,
        Choice::Chat => Some(Wire::Chat),
        Choice::Responses => Some(Wire::Responses),
        Choice::Anthropic => Some(Wire::Anthropic),
    }))
}
