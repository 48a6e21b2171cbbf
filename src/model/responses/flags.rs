//! The ways in which hosts and models of the Responses wire differ. The defaults suit an unknown server: optional
//! fields are not sent.

use serde::Deserialize;

use super::super::history::Pictures;

/// The behaviours of one server with one model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponsesFlags {
    /// PDFs may be sent.
    pub documents: bool,
    pub system_in: SystemIn,
    /// Reasoning is asked for in encrypted form (`include`), so that it can be sent back.
    pub encrypted_include: bool,
    /// Summaries of the reasoning are asked for.
    pub summary: bool,
    /// The smallest `max_output_tokens` that is accepted.
    pub min_output: u64,
    /// `prompt_cache_key` may be sent.
    pub cache_key: bool,
    /// `parallel_tool_calls` may be sent.
    pub parallel_field: bool,
    /// `tool_choice: none` may be sent. Without it a closing request leaves the choice open.
    pub choice_none: bool,
    /// Tools state whether they are strict. Without a statement, some hosts treat them as strict.
    pub strict: bool,
    /// The schema of an answer may be sent.
    pub answer_format: bool,
    /// A request may have both an answer's schema and tools.
    pub format_with_tools: bool,
    pub temperature: bool,
    pub pictures: Pictures,
    /// The random padding of events can be turned off.
    pub padding_off: bool,
}

impl Default for ResponsesFlags {
    fn default() -> Self {
        Self {
            documents: false,
            system_in: SystemIn::default(),
            encrypted_include: true,
            summary: false,
            min_output: 16,
            cache_key: false,
            parallel_field: false,
            choice_none: true,
            strict: true,
            answer_format: true,
            format_with_tools: true,
            temperature: true,
            pictures: Pictures::AfterResults,
            padding_off: false,
        }
    }
}

/// The place of the system prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemIn {
    /// A separate field.
    #[default]
    Instructions,
    /// The first item, from the developer.
    Developer,
    /// The first item, from the system.
    System,
}
