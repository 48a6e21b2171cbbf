//! The paths that a call touches, as the operating system will see them: with links resolved, and with the facts
//! that the policy needs.

use std::path::{Path, PathBuf};

use crate::files::file_name;
use crate::files::workspace::Workspace;

/// A path that is read or written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathTarget {
    /// The path as it was written.
    pub given: String,
    /// The path with links followed, or the one by which a rule denied this file before it was moved; relative to the
    /// workspace if it is inside, else absolute. For patterns: never quoted, and bytes that are not UTF-8 are U+FFFD.
    pub path: String,
    /// The same, absolute and byte for byte: exactly what the tool opens.
    pub real: PathBuf,
    /// The path by which rules deny it as well: that of the copy or the work tree, for a file of the original.
    pub denied_as: Option<String>,
    pub place: PathPlace,
    /// True if a write to it asks whatever the mode and the rules say (`.git/`, `.agent/`).
    pub is_protected: bool,
    /// The reason, for a person.
    pub protection: &'static str,
    pub is_dir: bool,
    pub presence: Presence,
}

/// What exists at a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Presence {
    #[default]
    No,
    /// Only its directory exists.
    Directory,
    Yes,
}

impl Presence {
    fn check(path: &Path) -> Self {
        // The existence of the root is no evidence: a pattern can look like a path.
        let has_directory = |path: &Path| path.parent().is_some_and(|dir| dir.parent().is_some() && dir.is_dir());
        match path {
            path if path.exists() => Self::Yes,
            path if has_directory(path) => Self::Directory,
            _ => Self::No,
        }
    }
}

/// What a system installs for everybody: only its administrator changes it, and it holds nobody's text.
const INSTALLED: [&str; 7] =
    ["/usr/bin", "/usr/include", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/sbin", "/usr/share"];

/// The place to which a path leads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PathPlace {
    /// Into the workspace.
    Inside,
    /// Into a directory of `sandbox.write`.
    Beside,
    /// Into a directory outside the workspace that may be read without asking (skills, what the system installed).
    Readable,
    /// Anywhere else.
    #[default]
    Outside,
    /// Into a place of credentials.
    Secret,
}

impl PathPlace {
    /// A phrase for a person, after the name of the path.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Inside => "in the workspace",
            Self::Beside => "in a directory of `sandbox.write`",
            Self::Readable => "in a directory of skills or of the system",
            Self::Outside => "outside the workspace",
            Self::Secret => "which may contain credentials",
        }
    }
}

impl PathTarget {
    /// True if it is in the workspace.
    pub fn is_inside(&self) -> bool {
        self.place == PathPlace::Inside
    }

    /// True if it is part of the work: in the workspace, or in a directory that the settings add to it.
    pub fn is_of_work(&self) -> bool {
        matches!(self.place, PathPlace::Inside | PathPlace::Beside)
    }

    /// True if reading it needs no permission.
    pub fn is_free_to_read(&self) -> bool {
        self.is_of_work() || self.place == PathPlace::Readable
    }

    /// Looks up a path as a model writes it.
    pub fn look_up(workspace: &Workspace, given: &str, readable: &[PathBuf]) -> Self {
        let path = file_name::unquote(given);
        // The person reads this path: an unnecessary escape would obscure it.
        let given = file_name::quote(&path).into_owned();
        Self { given, ..Self::find(workspace, workspace.root(), &path, readable) }
    }

    /// Looks up a path relative to `dir`.
    pub fn find(workspace: &Workspace, dir: &Path, given: &Path, readable: &[PathBuf]) -> Self {
        let from = dir.join(given);
        let resolved = workspace.resolve_path(&from);
        let lies_in =
            |dir: &PathBuf| crate::files::canonicalize(dir).is_ok_and(|dir| resolved.path.starts_with(dir));
        let protection = workspace.protection(&from, &resolved.path);
        let judged = workspace.denied().former_path(&resolved.path);
        let name = |path: &Path| workspace.relative(path).to_string_lossy().into_owned();
        Self {
            given: given.to_string_lossy().into_owned(),
            path: name(judged.as_ref().unwrap_or(&resolved.path)),
            denied_as: workspace.find_counterpart(&resolved.path).map(|path| name(&path)),
            place: match resolved.inside {
                false if readable.iter().any(lies_in) => PathPlace::Readable,
                _ if workspace.is_secret(&resolved.path) => PathPlace::Secret,
                true => PathPlace::Inside,
                false if workspace.is_beside(&resolved.path) => PathPlace::Beside,
                false if cfg!(unix) && INSTALLED.iter().any(|dir| resolved.path.starts_with(dir)) => {
                    PathPlace::Readable
                }
                false => PathPlace::Outside,
            },
            is_protected: protection.is_some(),
            protection: protection.unwrap_or_default(),
            is_dir: resolved.path.is_dir(),
            presence: Presence::check(&resolved.path),
            real: resolved.path,
        }
    }
}
