//! The description of a tool, as requests carry it and as rules judge it.

use std::sync::Arc;

use serde_json::Value;

use crate::config::{Permission, ToolEffect};

/// The description of a tool for the model, its properties for the policy, and what else does not depend on a call.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// One more sentence or an example for models that need more guidance ([`Guided`](crate::config::GuidanceProfile::Guided)).
    pub advice: &'static str,
    /// The form of its result as data, for plans that refer to parts of it: `{path, text}`.
    pub returns: &'static str,
    /// True if the result may direct the model: instructions that the user installed, or their own words. All other
    /// results are marked as data.
    pub is_trusted: bool,
    /// The argument that is a path which a call reads; without it, it reads the workspace in general.
    pub reads: Option<&'static str>,
    /// The argument that is a path which a call writes.
    pub writes: Option<&'static str>,
    /// The argument that is a whole command line, if there is one: a person may replace it by another.
    pub command: Option<&'static str>,
    /// True if the preview is a unified diff of files, so that it is shown as a change and not as text.
    pub previews_change: bool,
    /// True if a call waits for a person: time spent waiting counts against no limit.
    pub waits_for_person: bool,
    /// True if a call is a run of its own: it is bounded by the limits of the run alone, and waits only beside its like.
    pub is_run: bool,
}

impl ToolDefinition {
    /// The first sentence of the description.
    pub fn summary(&self) -> &str {
        let text = self.description.trim();
        let line = text.lines().next().unwrap_or_default();
        line.find(". ").map_or(line, |end| &line[..=end])
    }
}
