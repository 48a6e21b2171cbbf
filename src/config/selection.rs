//! The shape of `tools` in `agent.yaml`: settings for all tools together, besides the files of single ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of all tools together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsSettings {
    /// The provider's model for the assertion `similar` of prompt tests, at the base URL of the model.
    pub embedding_model: String,
}

impl Default for ToolsSettings {
    fn default() -> Self {
        Self { embedding_model: "text-embedding-3-small".to_owned() }
    }
}
