//! The registry of an agent's tools: sorted by name, found by name, each with a schema that is compiled when the model
//! begins its first call.
//!
//! Up to [`MOST_SENT`] definitions are all sent with every request. Above that, only the built-in ones are sent,
//! with `find_tools` and `call_tool` for the rest: the start of the prompt, which a provider caches, stays small
//! and never changes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::base::output::{Encoding, ResponseFormat};
use crate::base::text;
use crate::base::validator::Validator;
use crate::config::Permission;
use crate::config::Profile;
use crate::model::ToolDefinition;
use crate::tools::Tool;
use crate::tools::{self, CALL_TOOL, Choice, FIND_TOOLS, FindTools, Judge};

/// The most definitions that are all sent.
pub const MOST_SENT: usize = 20;

/// The tools that an agent may use.
#[derive(Default)]
pub struct Toolbox {
    /// Sorted by name.
    tools: Vec<Entry>,
    /// Finds the tools that are not sent.
    judge: Judge,
    /// The level of detail in the definitions.
    profile: Profile,
    /// Computed on first use, again after a change.
    sent: OnceLock<Sent>,
}

/// The definitions that are sent with every request.
struct Sent {
    /// Sorted by name.
    definitions: Vec<ToolDefinition>,
    /// The tool that finds the rest, if not all are sent.
    find_tools: Option<Entry>,
}

struct Entry {
    tool: Arc<dyn Tool>,
    terms: Terms,
    validator: OnceLock<Validator>,
}

/// The origin of a tool, and the settings for all its calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// The file that defines it; `None` for a built-in tool.
    pub file: Option<String>,
    /// Overrides the agent's `tool_timeout`.
    pub timeout: Option<Duration>,
    /// Overrides the agent's `tool_result_max_tokens`.
    pub max_tokens: Option<usize>,
    /// Overrides the agent's `tool_output`.
    pub format: Option<ResponseFormat>,
    pub encoding: Option<Encoding>,
    /// Every call needs confirmation.
    pub requires_confirmation: bool,
}

/// A tool, with everything needed to check and run a call.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    pub tool: &'a dyn Tool,
    pub terms: &'a Terms,
    validator: &'a OnceLock<Validator>,
}

/// A filter for listing tools.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Names and globs; `!` excludes. Empty means all.
    pub names: Vec<String>,
    /// Only tools with at most this permission.
    pub most: Option<Permission>,
}

impl Toolbox {
    /// Adds a tool, replacing one of the same name.
    pub fn register(&mut self, tool: Arc<dyn Tool>, terms: Terms) {
        let entry = Entry { tool, terms, validator: OnceLock::new() };
        match self.position(&entry.tool.definition().name) {
            Ok(at) => self.tools[at] = entry,
            Err(at) => self.tools.insert(at, entry),
        }
        self.sent = OnceLock::new();
    }

    /// Sets the judge that finds tools that are not sent.
    pub fn find_by(&mut self, judge: Judge) {
        self.judge = judge;
        self.sent = OnceLock::new();
    }

    /// Sets the profile, which decides the level of detail in the definitions.
    pub fn guide(&mut self, profile: Profile) {
        self.profile = profile;
        self.sent = OnceLock::new();
    }

    /// Removes a tool. Returns false if there is none of that name.
    pub fn unregister(&mut self, name: &str) -> bool {
        let at = self.position(name);
        if let Ok(at) = at {
            self.tools.remove(at);
            self.sent = OnceLock::new();
        }
        at.is_ok()
    }

    /// A tool by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Found<'_>> {
        match self.position(name) {
            Ok(at) => Some(self.tools[at].found()),
            Err(_) if name == FIND_TOOLS && self.in_two_stages() => {
                self.sent().find_tools.as_ref().map(Entry::found)
            }
            Err(_) => None,
        }
    }

    /// The settings for all calls of a tool, mutable.
    pub fn terms_mut(&mut self, name: &str) -> Option<&mut Terms> {
        self.position(name).ok().map(|at| &mut self.tools[at].terms)
    }

    /// The tools that pass a filter, sorted by name.
    ///
    /// # Errors
    /// A sentence, when a name of the filter is not a tool.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Found<'_>>, String> {
        let choices: Vec<Choice<'_>> = self.names().map(|name| Choice { name, default: true }).collect();
        let everything = ["*".to_owned()];
        let patterns = if filter.names.is_empty() { &everything[..] } else { &filter.names };
        let taken = tools::select(patterns, &choices)?;
        let within = |found: &Found<'_>| {
            let definition = found.tool.definition();
            filter.most.is_none_or(|most| definition.permission <= most)
                && taken.contains(&definition.name.as_str())
        };
        Ok(self.tools.iter().map(Entry::found).filter(within).collect())
    }

    /// The definitions that are sent with every request, sorted by name.
    #[must_use]
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.sent().definitions
    }

    /// The definition of a tool as the model sees it, sent or found.
    #[must_use]
    pub fn shown(&self, name: &str) -> Option<ToolDefinition> {
        let sent = self.definitions().iter().find(|definition| definition.name == name).cloned();
        sent.or_else(|| self.get(name).map(|found| found.tool.definition().clone()))
    }

    /// Every registered tool, sent or not, sorted by name.
    pub fn all(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.tools.iter().map(|entry| entry.tool.definition())
    }

    /// The names of all tools, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all().map(|definition| definition.name.as_str())
    }

    /// True if the model sees only one line about this tool, and calls it through `call_tool`.
    #[must_use]
    pub fn is_left_out(&self, name: &str) -> bool {
        self.in_two_stages() && self.get(name).is_some_and(|found| found.terms.file.is_some())
    }

    /// True if a call of this name calls another tool.
    #[must_use]
    pub fn is_call_tool(&self, name: &str) -> bool {
        name == CALL_TOOL && self.in_two_stages()
    }

    /// True if only some definitions are sent.
    #[must_use]
    pub fn in_two_stages(&self) -> bool {
        self.tools.len() > MOST_SENT && self.tools.iter().any(Entry::is_further)
    }

    /// Finds a tool by its name.
    ///
    /// # Errors
    /// A sentence for the model, with the nearest names.
    pub fn find(&self, name: &str) -> Result<Found<'_>, String> {
        self.get(name).ok_or_else(|| {
            let near = text::nearest(name, self.names());
            let hint = if near.is_empty() {
                format!("The tools are: {}.", self.names().collect::<Vec<_>>().join(", "))
            } else {
                format!("Did you mean {}?", near.join(" or "))
            };
            format!("There is no tool `{}`. {hint}", text::one_line(name, 80))
        })
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.tools.binary_search_by(|entry| entry.tool.definition().name.as_str().cmp(name))
    }

    fn sent(&self) -> &Sent {
        self.sent.get_or_init(|| {
            let (built_in, further): (Vec<&Entry>, Vec<&Entry>) =
                self.tools.iter().partition(|entry| !entry.is_further());
            let sent = |entry: &Entry| entry.sent(self.profile);
            if !self.in_two_stages() {
                return Sent { definitions: self.tools.iter().map(sent).collect(), find_tools: None };
            }
            let definition = |entry: &&Entry| entry.tool.definition().clone();
            let find_tools = FindTools::new(further.iter().map(definition).collect(), self.judge.clone());
            let mut definitions: Vec<ToolDefinition> = built_in.into_iter().map(sent).collect();
            definitions.extend([find_tools.definition().clone(), tools::call_tool()]);
            definitions.sort_by(|a, b| a.name.cmp(&b.name));
            let (tool, terms, validator) = (Arc::new(find_tools), Terms::default(), OnceLock::new());
            Sent { definitions, find_tools: Some(Entry { tool, terms, validator }) }
        })
    }
}

impl Entry {
    /// True unless it is a built-in tool.
    fn is_further(&self) -> bool {
        self.terms.file.is_some()
    }

    /// The definition to send, with the tool's advice if the profile includes it.
    fn sent(&self, profile: Profile) -> ToolDefinition {
        let mut definition = self.tool.definition().clone();
        let advice = self.tool.advice();
        if profile == Profile::Guided && !advice.is_empty() {
            definition.description.push(' ');
            definition.description.push_str(advice);
        }
        definition
    }

    fn found(&self) -> Found<'_> {
        Found { tool: self.tool.as_ref(), terms: &self.terms, validator: &self.validator }
    }
}

impl<'a> Found<'a> {
    /// Prepares for a call while the model is still writing it.
    pub(super) fn prepare(&self) {
        self.tool.prepare();
        self.validator();
    }

    /// The compiled schema of the tool's arguments.
    pub(super) fn validator(&self) -> &'a Validator {
        self.validator.get_or_init(|| {
            Validator::new(&self.tool.definition().parameters)
                .expect("schemas of configured tools are checked when they are read, those built in by a test")
        })
    }
}
