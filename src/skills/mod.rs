//! Skills: folders with instructions, disclosed step by step.
//!
//! First the catalogue: only names and descriptions, from a bounded read of each `SKILL.md`. Then the body, when a
//! skill is loaded; then single files, when the body names them. What people write is read leniently and reported,
//! never a reason to stop. Nothing outside a skill's own folder is ever read through it.

mod catalogue;
mod discover;
mod error;
mod folder;
mod header;
mod loaded;
mod unpack;

pub use catalogue::{Body, Catalogue, Skill};
pub use error::{SkillError, SkillErrorKind};
pub use folder::{Content, Page, Window};
pub use loaded::Loaded;
