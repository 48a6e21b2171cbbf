//! The shape of `tools` in `agent.yaml`: settings for all tools together, besides the files of single ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of `find_tools`, if an agent has more tools than are sent with every request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsSettings {
    pub selection: SelectBy,
    /// The provider's model for `embedding`, at the base URL of the agent's model.
    pub embedding_model: String,
}

impl Default for ToolsSettings {
    fn default() -> Self {
        Self { selection: SelectBy::default(), embedding_model: "text-embedding-3-small".to_owned() }
    }
}

/// The way to compare a query with the definitions of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SelectBy {
    /// By common words, without a request.
    #[default]
    Bm25,
    /// By meaning: vectors from the provider's `/embeddings`.
    Embedding,
    /// By the answer of the agent's model to a separate request.
    Model,
}
