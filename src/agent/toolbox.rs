//! The registry of an agent's tools: sorted by name, found by name, each with a schema that is compiled when the model
//! begins its first call.
//!
//! Up to [`MOST_SENT`] definitions are all sent with every request. Above that, only the built-in ones are sent,
//! with `find_tools` and `call_tool` for the rest: the start of the prompt, which a provider caches, stays small
//! and never changes. So does what servers of tools list later: those two find and call it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;

use crate::base::output::{Encoding, ResponseFormat};
use crate::base::text;
use crate::base::validator::Validator;
use crate::config::GuidanceProfile;
use crate::config::Permission;
use crate::model::ToolDefinition;
use crate::tools::{self, CALL_TOOL, FIND_TOOLS, FindTools, McpServer, McpServers, SelectableName, Tool};

/// The most definitions that are all sent.
pub const MOST_SENT: usize = 20;

/// The tools that an agent may use.
#[derive(Default)]
pub struct Toolbox {
    /// Sorted by name.
    tools: Vec<ToolEntry>,
    /// The level of detail in the definitions.
    profile: GuidanceProfile,
    /// Computed on first use, again after a change.
    sent: OnceLock<SentDefinitions>,
    /// The tools whose every call would be denied.
    hidden: Vec<String>,
    /// The servers of tools.
    servers: Option<Arc<McpServers>>,
    /// For each of them the tools that it listed after the others were sent; none if those are not this agent's.
    late: Vec<OnceLock<Vec<ToolEntry>>>,
}

/// The definitions that are sent with every request.
struct SentDefinitions {
    /// Sorted by name.
    definitions: Vec<ToolDefinition>,
    /// The tool that finds the rest, if not all are sent.
    find_tools: Option<ToolEntry>,
}

/// A tool, with everything needed to check and run a call.
pub struct ToolEntry {
    pub tool: Arc<dyn Tool>,
    pub terms: ToolTerms,
    validator: OnceLock<Validator>,
}

/// The origin of a tool, and the settings for all its calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolTerms {
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
    pub fn register(&mut self, tool: Arc<dyn Tool>, terms: ToolTerms) {
        let entry = ToolEntry::new(tool, terms);
        match self.position(&entry.tool.definition().name) {
            Ok(at) => self.tools[at] = entry,
            Err(at) => self.tools.insert(at, entry),
        }
        self.sent = OnceLock::new();
    }

    /// Adds servers of tools. If the agent `takes_late` ones, those that they list from now on are found and called, and never
    /// sent.
    pub fn serve(&mut self, servers: Arc<McpServers>, takes_late: bool) {
        self.late = servers.iter().filter(|_| takes_late).map(|_| OnceLock::new()).collect();
        self.servers = Some(servers);
        self.sent = OnceLock::new();
    }

    /// The servers of tools, if there are any.
    pub fn servers(&self) -> Option<&Arc<McpServers>> {
        self.servers.as_ref()
    }

    /// A sentence for each server of tools that is not up, once.
    pub fn take_failures(&self) -> Vec<String> {
        self.servers().map(|servers| servers.take_failures()).unwrap_or_default()
    }

    /// Sets the profile, which decides the level of detail in the definitions.
    pub fn guide(&mut self, profile: GuidanceProfile) {
        self.profile = profile;
        self.sent = OnceLock::new();
    }

    /// Leaves the tools that `is_hidden` names out of requests. A call of one is still judged, and told why it is denied.
    pub fn hide(&mut self, is_hidden: impl Fn(&ToolDefinition) -> bool) {
        self.hidden = self.all().filter(|tool| is_hidden(tool)).map(|tool| tool.name.clone()).collect();
        self.sent = OnceLock::new();
    }

    /// True if requests leave this tool out.
    pub fn is_hidden(&self, name: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden == name)
    }

    /// Removes a tool. Returns false if there is none of that name.
    pub fn unregister(&mut self, name: &str) -> bool {
        let Ok(at) = self.position(name) else { return false };
        self.tools.remove(at);
        self.sent = OnceLock::new();
        true
    }

    /// A tool by its name.
    pub fn get(&self, name: &str) -> Option<&ToolEntry> {
        match self.position(name) {
            Ok(at) => Some(&self.tools[at]),
            Err(_) if name == FIND_TOOLS && self.in_two_stages() => self.define_sent().find_tools.as_ref(),
            Err(_) => self.late().find(|entry| entry.tool.definition().name == name),
        }
    }

    /// The tools that servers listed after the others were sent, those that are up by now.
    fn late(&self) -> impl Iterator<Item = &ToolEntry> {
        let servers =
            self.servers.iter().flat_map(|servers| self.late.iter().enumerate().map(move |at| (servers, at)));
        servers.filter_map(|(servers, (at, late))| list_late(servers, at, late)).flatten()
    }

    /// The settings for all calls of a tool, mutable.
    pub fn terms_mut(&mut self, name: &str) -> Option<&mut ToolTerms> {
        self.position(name).ok().map(|at| &mut self.tools[at].terms)
    }

    /// The tools that pass a filter, sorted by name.
    ///
    /// # Errors
    /// A sentence, when a name of the filter is not a tool.
    pub fn list(&self, filter: &Filter) -> Result<Vec<&ToolEntry>, String> {
        let choices: Vec<SelectableName<'_>> =
            self.names().map(|name| SelectableName { name, default: true }).collect();
        let everything = ["*".to_owned()];
        let patterns = if filter.names.is_empty() { &everything[..] } else { &filter.names };
        let taken = tools::select_names(patterns, &choices)?;
        let is_within = |entry: &&ToolEntry| {
            let definition = entry.tool.definition();
            filter.most.is_none_or(|most| definition.permission <= most)
                && taken.contains(&definition.name.as_str())
        };
        Ok(self.tools.iter().filter(is_within).collect())
    }

    /// The definitions that are sent with every request, sorted by name.
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.define_sent().definitions
    }

    /// The definition of a tool as the model sees it, sent or found.
    pub fn show_tool(&self, name: &str) -> Option<ToolDefinition> {
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
    pub fn is_left_out(&self, name: &str) -> bool {
        let is_among_many = || self.holds_many() && self.get(name).is_some_and(ToolEntry::is_further);
        self.in_two_stages() && (is_among_many() || self.position(name).is_err() && name != FIND_TOOLS)
    }

    /// True if a call of this name calls another tool.
    pub fn is_call_tool(&self, name: &str) -> bool {
        name == CALL_TOOL && self.in_two_stages()
    }

    /// The names of the tools that fit a request: those whose definitions are sent, and the best matches of the rest.
    pub fn find_fitting(&self, request: &str) -> Vec<&str> {
        const MOST_FOUND: usize = 10;
        if !self.in_two_stages() {
            return self.names().collect();
        }
        let (sent, further): (Vec<&ToolDefinition>, Vec<&ToolDefinition>) =
            self.all().partition(|tool| !self.is_left_out(&tool.name));
        let found = tools::rank_tools(request, &further).into_iter().take(MOST_FOUND).map(|at| further[at]);
        sent.iter().copied().chain(found).map(|tool| tool.name.as_str()).collect()
    }

    /// True if only some definitions are sent.
    pub fn in_two_stages(&self) -> bool {
        !self.late.is_empty() || self.holds_many()
    }

    /// True if there are too many definitions to send them all.
    fn holds_many(&self) -> bool {
        self.tools.len() > MOST_SENT && self.tools.iter().any(ToolEntry::is_further)
    }

    /// Finds a tool by its name.
    ///
    /// # Errors
    /// A sentence for the model, with the nearest names.
    pub fn find(&self, name: &str) -> Result<&ToolEntry, String> {
        self.get(name).ok_or_else(|| {
            let near = text::find_nearest(name, self.names());
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

    fn define_sent(&self) -> &SentDefinitions {
        self.sent.get_or_init(|| {
            let further: Vec<&ToolEntry> = self.tools.iter().filter(|entry| entry.is_further()).collect();
            let sent = |entry: &ToolEntry| entry.define_tool(self.profile);
            if !self.in_two_stages() {
                let all = self.tools.iter().filter(|entry| !self.is_hidden(&entry.tool.definition().name));
                return SentDefinitions { definitions: all.map(sent).collect(), find_tools: None };
            }
            let further = if self.holds_many() { further } else { Vec::new() };
            let shown = self.tools.iter().filter(|entry| !self.holds_many() || !entry.is_further());
            let mut definitions: Vec<ToolDefinition> =
                shown.map(sent).filter(|tool| !self.is_hidden(&tool.name)).collect();
            let further = further.iter().map(|entry| entry.tool.definition().clone()).collect();
            let find_tools = FindTools::new(further, self.servers.clone().filter(|_| !self.late.is_empty()));
            definitions.extend([find_tools.definition().clone(), tools::call_tool()]);
            definitions.sort_by(|a, b| a.name.cmp(&b.name));
            let find_tools = Some(ToolEntry::new(Arc::new(find_tools), ToolTerms::default()));
            SentDefinitions { definitions, find_tools }
        })
    }
}

/// The tools that a server listed late, once it did.
fn list_late<'l>(
    servers: &Arc<McpServers>,
    server: usize,
    late: &'l OnceLock<Vec<ToolEntry>>,
) -> Option<&'l Vec<ToolEntry>> {
    if late.get().is_none() {
        let tools = servers.late_tools(server)?.into_iter();
        let terms = servers.iter().nth(server).map(|server| ToolTerms::of_server(server)).unwrap_or_default();
        // If another thread was first, its tools are the same.
        let _ = late.set(tools.map(|tool| ToolEntry::new(tool, terms.clone())).collect());
    }
    late.get()
}

impl ToolTerms {
    /// The beginning of the origin of a server's tools.
    const OF_SERVERS: &str = "mcp: ";

    /// The settings for the calls of a server's tools.
    pub fn of_server(server: &McpServer) -> Self {
        Self {
            file: Some(format!("{}{}", Self::OF_SERVERS, server.name())),
            timeout: Some(server.timeout()),
            ..Self::default()
        }
    }
}

impl ToolEntry {
    fn new(tool: Arc<dyn Tool>, terms: ToolTerms) -> Self {
        Self { tool, terms, validator: OnceLock::new() }
    }

    /// True if a server of tools lists it.
    pub fn is_of_server(&self) -> bool {
        self.terms.file.as_deref().is_some_and(|file| file.starts_with(ToolTerms::OF_SERVERS))
    }

    /// True unless it is a built-in tool.
    fn is_further(&self) -> bool {
        self.terms.file.is_some()
    }

    /// The definition to send, with the tool's advice if the profile includes it.
    fn define_tool(&self, profile: GuidanceProfile) -> ToolDefinition {
        let mut definition = self.tool.definition().clone();
        let advice = definition.advice;
        if profile == GuidanceProfile::Guided && !advice.is_empty() {
            definition.description.push(' ');
            definition.description.push_str(advice);
        }
        definition
    }

    /// True if a call may change files.
    pub(super) fn may_change(&self) -> bool {
        self.tool.definition().permission != Permission::Read
    }

    /// Prepares for a call while the model is still writing it.
    pub(super) fn prepare(&self) {
        self.tool.prepare();
        self.validator();
    }

    /// The compiled schema of the tool's arguments.
    pub(super) fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| {
            // Only a server can have a wrong one: it checks the arguments itself.
            let schema = Validator::new(&self.tool.definition().parameters);
            schema.or_else(|_| Validator::new(&json!({}))).expect("a schema that allows everything is valid")
        })
    }
}
