//! The built-in tools, one file each; this list names them all.

pub mod load_skill;
pub mod load_skill_reference;
