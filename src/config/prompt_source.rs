//! The source of a prompt: the registry, or the configuration itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A prompt: a reference into the registry, or the text itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PromptSource {
    Registered(PromptRef),
    Inline(String),
}

/// `{ ref: NAME@VERSION }` or `{ ref: NAME@LABEL }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptRef {
    #[serde(rename = "ref")]
    pub reference: String,
}

impl PromptSource {
    /// The prompt of the registry that a reference names.
    pub(super) fn registered(reference: &str) -> Self {
        Self::Registered(PromptRef { reference: reference.to_owned() })
    }

    pub fn system() -> Self {
        Self::registered("system@production")
    }

    pub(super) fn termination() -> Self {
        Self::registered("termination@production")
    }

    pub(super) fn compression() -> Self {
        Self::registered("compression@production")
    }
}
