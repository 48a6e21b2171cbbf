//! The files of `configs/`, `prompts/` and `skills/`, compiled in: the binary needs no file to run.

use include_dir::include_dir;
pub use include_dir::{Dir, File};

/// Built-in configuration, laid out as a config directory.
pub static CONFIGS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/configs");
/// Built-in prompts: `NAME/vX.Y.md` and `release.yaml`.
pub static PROMPTS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/prompts");
/// Built-in skills: `NAME/SKILL.md` and what belongs to it.
pub static SKILLS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/skills");
