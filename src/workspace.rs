//! The directory that a run works in: how names become paths, and what lies inside.
//!
//! Every path that a model writes goes through [`Workspace::resolve`], which follows symbolic links before it says
//! whether the target is inside.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::file_name;
use crate::regular::{Links, read_bytes};

/// The workspace of a run.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    git_root: Option<PathBuf>,
}

/// A path as the operating system will see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Absolute, symbolic links followed as far as the path exists.
    pub path: PathBuf,
    /// Whether it lies inside the workspace.
    pub inside: bool,
}

impl Workspace {
    /// # Errors
    /// When `dir` does not exist or is not a directory.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let root = dir.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        let git_root = root.ancestors().find(|dir| dir.join(".git").exists()).map(Path::to_path_buf);
        Ok(Self { root, git_root })
    }

    /// Absolute, without symbolic links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The nearest directory at or above the root that holds `.git`.
    #[must_use]
    pub fn git_root(&self) -> Option<&Path> {
        self.git_root.as_deref()
    }

    /// The workspace and its parents up to the git root, nearest first; the workspace alone where there is no git.
    pub fn dirs_up_to_git_root(&self) -> impl Iterator<Item = &Path> {
        let last = self.git_root.as_deref().unwrap_or(&self.root);
        self.root.ancestors().take_while(move |dir| dir.starts_with(last))
    }

    /// The branch that is checked out, read from `.git/HEAD` without running git. It is the repository's word: whoever
    /// shows it makes sure that it stays one.
    #[must_use]
    pub fn git_branch(&self) -> Option<String> {
        /// The longest `.git` file or `HEAD`: a path is no longer.
        const LONGEST: u64 = 8 * 1024;
        let text = |path: &Path| {
            let bytes = read_bytes(path, Links::Follow, LONGEST).ok().flatten();
            bytes.and_then(|bytes| String::from_utf8(bytes).ok())
        };
        let dot_git = self.git_root.as_ref()?.join(".git");
        let git_dir = match text(&dot_git) {
            // A linked work tree: a file that names the directory.
            Some(text) => self.git_root.as_ref()?.join(text.strip_prefix("gitdir:")?.trim()),
            None => dot_git,
        };
        text(&git_dir.join("HEAD"))?.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
    }

    /// Where a path as a model writes it leads: relative to the workspace or absolute, and quoted where it needs to be.
    #[must_use]
    pub fn resolve(&self, written: &str) -> Resolved {
        self.resolve_path(&file_name::read(written))
    }

    /// Where `path` (relative to the workspace, or absolute) leads, links followed. A path that does not exist yet is
    /// resolved through its nearest existing parent.
    #[must_use]
    pub fn resolve_path(&self, path: &Path) -> Resolved {
        let path = follow(&normal(&self.root.join(path)));
        let inside = path.starts_with(&self.root);
        Resolved { path, inside }
    }

    /// Whether a write to `path` could decide what runs later, or what is allowed: git's own files, the project's
    /// configuration and skills of this program and of others.
    #[must_use]
    pub fn is_protected(&self, path: &Path) -> bool {
        const PROTECTED: [&str; 6] = [".git", ".agent", ".agents", ".claude", "git~1", "agent~1"];
        let target = self.resolve_path(path).path;
        target.components().any(|part| PROTECTED.contains(&folded(&part.as_os_str().to_string_lossy()).as_str()))
    }

    /// The name of `path` for a model or a person: relative where it lies inside, quoted where it needs to be, so that
    /// [`Workspace::resolve`] takes it back.
    #[must_use]
    pub fn display(&self, path: &Path) -> String {
        file_name::written(self.relative(path)).into_owned()
    }

    /// `path` from the workspace on, where it lies inside.
    #[must_use]
    pub fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        match path.strip_prefix(&self.root) {
            Ok(rest) if rest.as_os_str().is_empty() => Path::new("."),
            Ok(rest) => rest,
            Err(_) => path,
        }
    }
}

/// A name as the most forgiving disks take it: without regard to case and to characters that show nothing, without a
/// stream and without dots and blanks at its end. git guards its directory against the same.
fn folded(name: &str) -> String {
    let is_seen = |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let name: String = name.chars().filter(is_seen).flat_map(char::to_lowercase).collect();
    name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_owned()
}

/// `.` and `..` taken out by name, so that a path which does not exist can still be judged.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // `link/..` means the parent of the link's target, so links before `..` are followed first.
            Component::ParentDir => {
                out = follow(&out);
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// Follows links as far as the path exists. A dangling link resolves to its target: that is what a write would
/// create.
fn follow(path: &Path) -> PathBuf {
    const MOST_LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if let Ok(real) = path.canonicalize() {
            return real;
        }
        match std::fs::read_link(&path) {
            Ok(target) => {
                path = normal(&path.parent().unwrap_or(Path::new("/")).join(target));
            }
            Err(_) => break,
        }
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => follow(parent).join(name),
        _ => path,
    }
}
