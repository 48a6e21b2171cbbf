//! Prompts: versioned templates in files, found by name and label, rendered when the agent runs.
//!
//! Code contains no prompts. [`PromptContext`] is everything that a prompt may read; text from a file or a person is a
//! value in it and is never rendered as a template.
//!
//! Invariants:
//! - A prompt belongs to the least trusted of its parts (`owner.rs`): if one module or included file is a project's, it
//!   sees no secrets. Only names written literally in a template are included. A module sees what its head declares.
//! - A released version is what its files were then (`released/`), whatever changes. The version of a session follows from
//!   its id and `release.yaml` (`prompt::Released`). `release.yaml` is replaced
//!   last (`change.rs`): until then nothing has changed for a run.
//!
//! To add:
//! - a warning about prompts: one function in `check.rs`.
//! - a kind of assertion in tests of prompts: one row of `test/assertion.rs`, how it is read in `given.rs`, whether it
//!   holds in `check.rs`.

mod context;
mod error;
mod file;
mod owner;
mod messages;
mod missed;
mod news;
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
mod untrusted;
mod includes;
mod parts;
mod check;
pub mod chat;
pub mod test;

pub use change::PromptDesk;
pub use check::PartSize;
pub use context::{
    AgentFacts, AnswerReader, AnswerWays, EndingFacts, PromptContext, SessionFacts, SkillFacts, SummaryPart,
    SummaryRequirements, ToolFacts, WorkspaceFacts,
};
pub use error::PromptError;
pub use file::Prompt;
pub use instructions::Instructions;
pub use layer::MODULES;
pub use promotion::Promotion;
pub use registry::{ListedPrompt, Registry};
pub use release::{LATEST, PRODUCTION, Released, is_label};
pub use variables::with_given;
pub use version::Version;
