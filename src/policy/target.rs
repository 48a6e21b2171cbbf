//! The paths that a call touches, as the operating system will see them: links followed, and what the policy wants to
//! know of each.

use std::path::{Path, PathBuf};

use crate::workspace::Workspace;

/// A path that is read or written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// As it was written.
    pub given: String,
    /// Links followed; relative to the workspace where it lies inside, else absolute.
    pub path: String,
    pub place: Place,
    /// A write to it decides what runs or what is allowed later (`.git/`, `.agent/`).
    pub is_protected: bool,
    pub is_dir: bool,
}

/// Where a path leads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// Into the workspace.
    Inside,
    /// Into a directory outside the workspace that may be read without asking (skills).
    Readable,
    /// Anywhere else.
    #[default]
    Outside,
}

impl Target {
    /// Whether it lies in the workspace.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.place == Place::Inside
    }

    /// Whether reading it is free.
    #[must_use]
    pub fn is_free_to_read(&self) -> bool {
        self.place != Place::Outside
    }

    /// Looks a path up, told from `dir`.
    #[must_use]
    pub fn find(workspace: &Workspace, dir: &Path, given: &str, readable: &[PathBuf]) -> Self {
        let from = dir.join(given);
        let from = from.to_string_lossy();
        let resolved = workspace.resolve(&from);
        let lies_in = |dir: &PathBuf| dir.canonicalize().is_ok_and(|dir| resolved.path.starts_with(dir));
        Self {
            given: given.to_owned(),
            path: workspace.display(&resolved.path),
            place: match resolved.inside {
                true => Place::Inside,
                false if readable.iter().any(lies_in) => Place::Readable,
                false => Place::Outside,
            },
            is_protected: workspace.is_protected(&from),
            is_dir: resolved.path.is_dir(),
        }
    }
}
