//! The ways in which models of the Gemini wire differ. The defaults suit an unknown model.

use serde::Deserialize;

use super::super::history::Pictures;

/// The behaviours of one model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GeminiFlags {
    pub thinking: GeminiThinking,
    pub temperature: bool,
    /// A call of the running turn that came from another model needs a stand-in for its signature.
    pub stand_in_signature: bool,
    pub pictures: Pictures,
    /// The schema of an answer may be sent.
    pub answer_format: bool,
    /// A request may have both an answer's schema and tools.
    pub format_with_tools: bool,
    /// `functionCallingConfig` may be sent. Without it a closing request leaves the choice open.
    pub choice_none: bool,
}

/// How much a model thinks, and whether its thoughts can be asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeminiThinking {
    /// Nothing about it is sent.
    #[default]
    Absent,
    /// `thinkingBudget`: a number of tokens.
    Budget,
    /// `thinkingLevel`.
    Level,
}

impl Default for GeminiFlags {
    fn default() -> Self {
        Self {
            thinking: GeminiThinking::default(),
            temperature: true,
            stand_in_signature: false,
            pictures: Pictures::AfterResults,
            answer_format: true,
            format_with_tools: false,
            choice_none: true,
        }
    }
}
