//! The shape of `tools` in `agent.yaml`: what holds for all tools together, beside the files of single ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How `find_tools` finds tools, where an agent has more than are sent with every request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolsSettings {
    #[serde(default)]
    pub selection: SelectBy,
    /// The provider's model for `embedding`, at the base URL of the agent's model.
    #[serde(default = "default_embedding_model")]
    pub embedding_model: String,
}

impl Default for ToolsSettings {
    fn default() -> Self {
        Self { selection: SelectBy::default(), embedding_model: default_embedding_model() }
    }
}

fn default_embedding_model() -> String {
    "text-embedding-3-small".to_owned()
}

/// How a query is compared with the definitions of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SelectBy {
    /// The words that they share. Asks nobody.
    #[default]
    Bm25,
    /// Their meaning: vectors from the provider's `/embeddings`.
    Embedding,
    /// By the answer of the agent's model to a request of its own.
    Model,
}
