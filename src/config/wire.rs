//! The protocol of a model's server.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::base::spelling::spell;

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
    /// Ollama's own interface: `POST {server}/api/chat`.
    Ollama,
    /// Google's own interface to Gemini: `POST {base_url}/models/{model}:streamGenerateContent`.
    Gemini,
}

impl Wire {
    /// All protocols.
    pub const ALL: [Self; 5] = [Self::Chat, Self::Responses, Self::Anthropic, Self::Ollama, Self::Gemini];

    /// The name as configuration and logs spell it.
    pub fn name(self) -> &'static str {
        spell(&self)
    }
}

/// `wire` in a model file: a protocol, or `auto`, which leaves it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum WireChoice {
    Auto,
    Chat,
    Responses,
    Anthropic,
    Ollama,
    Gemini,
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
pub(super) fn serialize<S: Serializer>(wire: &Option<Wire>, serializer: S) -> Result<S::Ok, S::Error> {
    wire.map_or("auto", Wire::name).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Wire>, D::Error> {
    Ok(Option::<WireChoice>::deserialize(deserializer)?.and_then(|choice| match choice {
        WireChoice::Auto => None,
        WireChoice::Chat => Some(Wire::Chat),
        WireChoice::Responses => Some(Wire::Responses),
        WireChoice::Anthropic => Some(Wire::Anthropic),
        WireChoice::Ollama => Some(Wire::Ollama),
        WireChoice::Gemini => Some(Wire::Gemini),
    }))
}
