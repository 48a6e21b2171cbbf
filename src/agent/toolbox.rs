//! The tools of one agent: sorted by name, found by name, each with its schema compiled when it is first called.

use std::sync::{Arc, OnceLock};

use crate::contract::{Tool, ToolDefinition};
use crate::text;

use super::validator::Validator;

/// The tools that an agent may use.
#[derive(Default)]
pub struct Toolbox {
    tools: Vec<Entry>,
    definitions: Vec<ToolDefinition>,
}

struct Entry {
    tool: Arc<dyn Tool>,
    validator: OnceLock<Validator>,
}

/// A tool with what is needed to check a call of it.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    pub tool: &'a dyn Tool,
    validator: &'a OnceLock<Validator>,
}

impl Toolbox {
    /// Sorts by name: definitions stand ahead of everything else in a provider's cache, so their order never
    /// changes.
    #[must_use]
    pub fn new(mut tools: Vec<Arc<dyn Tool>>) -> Self {
        tools.sort_by(|a, b| a.definition().name.cmp(&b.definition().name));
        let definitions = tools.iter().map(|tool| tool.definition().clone()).collect();
        let tools = tools.into_iter().map(|tool| Entry { tool, validator: OnceLock::new() }).collect();
        Self { tools, definitions }
    }

    /// What the model is told, sorted by name.
    #[must_use]
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.iter().map(|definition| definition.name.as_str())
    }

    /// # Errors
    /// A sentence for the model, with the nearest names.
    pub fn find(&self, name: &str) -> Result<Found<'_>, String> {
        let position = self.definitions.binary_search_by(|definition| definition.name.as_str().cmp(name));
        match position {
            Ok(at) => Ok(Found { tool: self.tools[at].tool.as_ref(), validator: &self.tools[at].validator }),
            Err(_) => {
                let near = text::nearest(name, self.names());
                let hint = if near.is_empty() {
                    format!("The tools are: {}.", self.names().collect::<Vec<_>>().join(", "))
                } else {
                    format!("Did you mean {}?", near.join(" or "))
                };
                Err(format!("There is no tool `{}`. {hint}", text::one_line(name, 80)))
            }
        }
    }
}

impl<'a> Found<'a> {
    /// The compiled schema of the tool's arguments.
    pub(super) fn validator(&self) -> &'a Validator {
        self.validator.get_or_init(|| {
            Validator::new(&self.tool.definition().parameters)
                .expect("the schemas of built-in tools are valid, which a test proves")
        })
    }
}
