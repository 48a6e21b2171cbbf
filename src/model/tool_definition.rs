//! The description of a tool, as requests carry it and as rules judge it.

use std::sync::Arc;

use serde_json::Value;

use crate::config::{Permission, ToolEffect};

/// The description of a tool for the model, and its properties for the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    /// Text for the model: what it does, what it returns, its limits, when not to use it.
    pub description: String,
    /// JSON Schema of the arguments, keys in a fixed order.
    pub parameters: Arc<Value>,
    pub permission: Permission,
    pub effects: Vec<ToolEffect>,
    /// Included in `tools: ["*"]`.
    pub default: bool,
}

impl ToolDefinition {
    /// The first sentence of the description.
    pub fn summary(&self) -> &str {
        let text = self.description.trim();
        let line = text.lines().next().unwrap_or_default();
        line.find(". ").map_or(line, |end| &line[..=end])
    }
}
