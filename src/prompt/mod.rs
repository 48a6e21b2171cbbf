//! Prompts: versioned templates in files, found by name and label, rendered when the agent runs.
//!
//! No prompt stands in code. What a prompt may read is [`PromptContext`]; whatever came from a file or a person is
//! a value in it and is never rendered as a template.

mod context;
mod error;
mod file;
mod instructions;
mod registry;
mod version;
mod ban;
mod contradiction;

pub use context::{
    AgentFacts, EndingFacts, Output, Person, PromptContext, SessionFacts, SkillFacts, SummaryFacts, SummaryPart,
    ToolFacts, WorkspaceFacts,
};
pub use error::PromptError;
pub use file::Prompt;
pub use instructions::Instructions;
pub use registry::{Listed, Registry};
pub use version::Version;
