//! Prompts: versioned templates in files, found by name and label, rendered when the agent runs.
//!
//! Code contains no prompts. [`PromptContext`] is everything that a prompt may read; text from a file or a person is a
//! value in it and is never rendered as a template.

mod context;
mod error;
mod digest;
mod file;
mod owner;
mod messages;
mod missed;
mod head;
mod instructions;
mod registry;
mod family;
mod layer;
mod release;
mod promotion;
mod change;
mod version;
mod variables;
mod includes;
mod ban;
mod contradiction;
mod check;
pub mod chat;
pub mod test;

pub use change::Desk;
pub use check::PartSize;
pub use context::{
    AgentFacts, EndingFacts, Person, PromptContext, Reader, SessionFacts, SkillFacts, SummaryFacts, SummaryPart,
    ToolFacts, WorkspaceFacts,
};
pub use digest::sha256;
pub use error::PromptError;
pub use file::Prompt;
pub use instructions::Instructions;
pub use layer::MODULES;
pub use promotion::Promotion;
pub use registry::{Listed, Registry};
pub use release::{LATEST, PRODUCTION, Released};
pub use variables::with_given;
pub use version::Version;
