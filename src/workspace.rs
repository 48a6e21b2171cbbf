//! The directory that a run works in: how names become paths, what lies inside, and what has been read.
//!
//! Every path that a model writes goes through [`Workspace::resolve`], which follows symbolic links before it says
//! whether the target is inside.

use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use sha2::{Digest, Sha256};

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

    /// The branch that is checked out, read from `.git/HEAD` without running git.
    #[must_use]
    pub fn git_branch(&self) -> Option<String> {
        let dot_git = self.git_root.as_ref()?.join(".git");
        let git_dir = match std::fs::read_to_string(&dot_git) {
            // A linked work tree: a file that names the directory.
            Ok(text) => self.git_root.as_ref()?.join(text.strip_prefix("gitdir:")?.trim()),
            Err(_) => dot_git,
        };
        let head = std::fs::read_to_string(git_dir.join("HEAD")).ok()?;
        head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
    }

    /// Where `path` (relative to the workspace, or absolute) leads, links followed. What does not exist yet is
    /// resolved through its nearest existing parent.
    #[must_use]
    pub fn resolve(&self, path: &str) -> Resolved {
        let path = follow(&normal(&self.root.join(path)));
        let inside = path.starts_with(&self.root);
        Resolved { path, inside }
    }

    /// Whether a write to `path` could decide what runs later, or what is allowed: git's own files, the project's
    /// configuration and skills of this program and of others.
    #[must_use]
    pub fn is_protected(&self, path: &str) -> bool {
        const PROTECTED: [&str; 6] = [".git", ".agent", ".agents", ".claude", "git~1", "agent~1"];
        let target = self.resolve(path).path;
        target.components().any(|part| PROTECTED.contains(&folded(&part.as_os_str().to_string_lossy()).as_str()))
    }

    /// How to name `path` to a model or a person: relative where it lies inside.
    #[must_use]
    pub fn display(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Ok(rest) => rest.to_string_lossy().into_owned(),
            Err(_) => path.to_string_lossy().into_owned(),
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

/// Which files this session has read or written, and what they held then: a file that was never read, or that
/// changed since, is not overwritten.
#[derive(Debug, Default)]
pub struct Ledger {
    seen: Mutex<HashMap<PathBuf, [u8; 32]>>,
}

/// What the ledger says of a file about to be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Familiarity {
    /// Its content is what the session last saw.
    Current,
    /// It has changed since.
    Changed,
    /// The session has never seen it.
    Unseen,
}

impl Ledger {
    /// Remembers that `content` is what `path` held.
    pub fn remember(&self, path: &Path, content: &[u8]) {
        let digest = Sha256::digest(content).into();
        self.seen.lock().expect("no holder of the ledger panics").insert(path.to_path_buf(), digest);
    }

    /// Compares what `path` holds now with what was seen.
    #[must_use]
    pub fn familiarity(&self, path: &Path, content: &[u8]) -> Familiarity {
        let seen = self.seen.lock().expect("no holder of the ledger panics");
        let now: [u8; 32] = Sha256::digest(content).into();
        match seen.get(path) {
            None => Familiarity::Unseen,
            Some(then) if *then == now => Familiarity::Current,
            Some(_) => Familiarity::Changed,
        }
    }
}
