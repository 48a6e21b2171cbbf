//! Knowledge that a conversation has beside its items: the files it has seen, and the skills it has loaded.
//!
//! Tools read and change it concurrently while they run. Every change is returned once, for the log, so that a reopened
//! session has the same knowledge.

mod files;
mod skills;

pub use files::{Familiarity, FileChange, Ledger};
pub use skills::{Loaded, SECTION, SkillChange};
