//! Skills: folders with instructions, disclosed step by step.
//!
//! First the catalogue: only names and descriptions, from a bounded read of each `SKILL.md`. Then the body, when a
//! skill is loaded; then single files, when the body names them. Files are read leniently: mistakes are reported
//! and never stop a run; [`check_skills`] reports strictly by the standard. Nothing outside a skill's own folder is ever
//! read through it, and a body is rendered only if its author asked for that. A server of tools may have skills, too: their
//! files are fetched when they are wanted.
//!
//! Invariants:
//! - A skill grants nothing: `allowed-tools` is shown, but never applied.

mod catalogue;
mod discover;
mod header;
mod mend;
mod note;
mod body;
mod rendering;
mod folder;
mod served;
mod inside;
mod unpack;
mod listing;
mod check;
mod standard;
mod allowed;
mod error;

pub use body::SkillBody;
pub use catalogue::{Skill, SkillCatalogue};
pub use check::{SkillCheck, check_skills};
pub use error::{SkillError, SkillErrorKind};
pub use folder::{FileContent, FilePage, FileWindow};
pub use listing::fit_listing;
pub use rendering::RunVariables;
#[cfg(feature = "mcp")]
pub use served::ServedFile;
pub use served::{ServedFuture, ServedSkill, SkillServer};
