//! Shows tools and results to roles, cut to the room in their prompts.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::base::text;

use super::reference::as_text;

/// The size of results for a role.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoleResultSize {
    /// The most bytes of one result.
    most: usize,
}

impl RoleResultSize {
    /// All results together may have twice the size of one result of a call.
    pub(super) fn share_among(result_bytes: usize, results: usize) -> Self {
        Self { most: result_bytes.saturating_mul(2) / results.max(1) }
    }

    /// A result as it is, or its beginning with a note about the rest.
    pub(super) fn show_value(self, value: &Value) -> Value {
        let whole = as_text(value);
        if whole.len() <= self.most {
            return value.clone();
        }
        let head = text::take_head(&whole, self.most);
        format!("{head}\n[… {} of {} bytes left out …]", whole.len() - head.len(), whole.len()).into()
    }
}

/// The definitions of the tools that pass `is_meant`, as prompts list them.
pub(super) fn list_tools(agent: &Agent, is_meant: impl Fn(&str) -> bool) -> Value {
    let listed = agent.tools.all().filter(|tool| is_meant(tool.name.as_str())).map(|tool| {
        let returns = tool.returns;
        let gap = if returns.is_empty() { "" } else { " Result: " };
        let description = format!("{}{gap}{returns}", tool.description.trim());
        json!({ "name": tool.name, "description": description, "parameters": *tool.parameters })
    });
    listed.collect()
}
