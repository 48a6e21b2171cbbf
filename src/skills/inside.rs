//! What is inside a skill: its instructions, and the paths of its files.

use std::path::{Component, Path, PathBuf};

use super::error::{SkillError, SkillErrorKind};

/// The file that makes a folder a skill.
pub(super) const FILE: &str = "SKILL.md";
/// The largest file that is read; a larger one is described.
pub(super) const LARGEST: u64 = 16 * 1024 * 1024;

/// `path` relative to `root`, judged by its spelling alone.
pub(super) fn resolve_inside(root: &Path, path: &str) -> Result<PathBuf, SkillError> {
    let written = Path::new(path);
    let written = written.strip_prefix(root).unwrap_or(written);
    let mut relative = PathBuf::new();
    for part in written.components() {
        match part {
            Component::Normal(part) => relative.push(part),
            Component::CurDir => {}
            Component::ParentDir if relative.pop() => {}
            _ => return Err(refuse_outside(path)),
        }
    }
    Ok(relative)
}

pub(super) fn refuse_outside(path: &str) -> SkillError {
    let message = format!("`{path}` lies outside the skill's folder; give a path relative to that folder");
    SkillError::new(SkillErrorKind::Outside, message)
}

pub(super) fn write_slashes(path: &Path) -> String {
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
