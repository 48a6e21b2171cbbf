//! The directory in which a run works: turns names into paths, and decides which are inside.
//!
//! Every path that a model writes goes through [`Workspace::resolve`], which follows symbolic links before it says
//! whether the target is inside.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

use crate::files::denied::DeniedFiles;
use crate::files::disk::{Dir, DirEntryKind};
use crate::files::regular::{Links, read_bytes};
use crate::files::{file_name, protected};

/// The workspace of a run.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    /// Its directory, held open where the system can: another one may take its name.
    held: Option<Arc<Dir>>,
    git_root: Option<PathBuf>,
    /// The user's home, links followed.
    home: Option<PathBuf>,
    /// The places of credentials.
    secrets: Arc<LazyPaths>,
    /// The directories in it and beside it from which a person runs programs by name.
    programs: Arc<LazyPaths>,
    /// The links at its root, and where they lead: what they lead to has their name as well.
    links: Arc<LazyLinks>,
    /// The directories outside of it that the settings add to it.
    beside: Arc<[PathBuf]>,
    private: Option<Private>,
    denied: DeniedFiles,
    layer: Option<PathBuf>,
    /// The directories that it is a copy or a work tree of.
    originals: Arc<[PathBuf]>,
}

type LazyLinks = LazyLock<Vec<(PathBuf, PathBuf)>, Box<dyn FnOnce() -> Vec<(PathBuf, PathBuf)> + Send>>;

/// Paths that are looked up when they are first asked for: a start does without them.
type LazyPaths = LazyLock<Vec<PathBuf>, Box<dyn FnOnce() -> Vec<PathBuf> + Send>>;

/// A directory that commands see under another name.
#[derive(Clone)]
struct Private {
    name: PathBuf,
    /// The directory, once there is one.
    dir: Arc<dyn Fn() -> Option<PathBuf> + Send + Sync>,
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Private({})", self.name.display())
    }
}

/// A path as the operating system will see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Absolute, symbolic links followed as far as the path exists.
    pub path: PathBuf,
    /// True if it is inside the workspace.
    pub inside: bool,
}

impl Workspace {
    /// # Errors
    /// `dir` does not exist or is not a directory.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let root = crate::files::canonicalize(dir)?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        let git_root = root.ancestors().find(|dir| dir.join(".git").exists()).map(Path::to_path_buf);
        let top = root.clone();
        let no_paths = || Arc::new(LazyLock::new(Box::new(Vec::new) as Box<_>));
        Ok(Self {
            held: Dir::open(&root).ok().map(Arc::new),
            root,
            git_root,
            home: None,
            secrets: no_paths(),
            programs: no_paths(),
            links: Arc::new(LazyLock::new(Box::new(move || list_links(&top)))),
            beside: Arc::default(),
            private: None,
            denied: DeniedFiles::default(),
            layer: None,
            originals: Arc::default(),
        })
    }

    /// Absolute, without symbolic links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A sentence if its directory was moved away, or another one has its name now.
    pub fn find_loss(&self) -> Option<String> {
        let identify = |dir: &Dir| dir.examine(OsStr::new(".")).map(|(_, stamp)| stamp.inode);
        let held = identify(self.held.as_ref()?);
        let now = Dir::open(&self.root).and_then(|now| identify(&now));
        let is_there = held.is_ok_and(|held| now.is_ok_and(|now| now == held));
        (!is_there).then(|| {
            format!(
                "{} was moved or replaced since this began: a new conversation has to begin there",
                self.root.display()
            )
        })
    }

    /// The home of the person, links followed.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The nearest directory at or above the root with `.git`.
    pub fn git_root(&self) -> Option<&Path> {
        self.git_root.as_deref()
    }

    /// The workspace and its parents up to the git root, nearest first; only the workspace without git.
    pub fn dirs_up_to_git_root(&self) -> impl Iterator<Item = &Path> {
        let last = self.git_root.as_deref().unwrap_or(&self.root);
        self.root.ancestors().take_while(move |dir| dir.starts_with(last))
    }

    /// The branch that is checked out, read from `.git/HEAD` without running git. It is third-party text: callers that
    /// show it must keep it one word.
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
            Some(text) => {
                self.git_root.as_ref()?.join(text.strip_prefix("gitdir: ")?.trim_end_matches(['\n', '\r']))
            }
            None => dot_git,
        };
        text(&git_dir.join("HEAD"))?.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
    }

    /// The target of a path as a model writes it: relative to the workspace or absolute, and quoted if necessary.
    pub fn resolve(&self, written: &str) -> Resolved {
        self.resolve_path(&file_name::unquote(written))
    }

    /// The target of `path` (relative to the workspace, or absolute), with links followed. A path that does not exist
    /// yet is resolved through its nearest existing parent.
    pub fn resolve_path(&self, path: &Path) -> Resolved {
        let path = follow_links(&self.seen_by_commands(normalise_path(&self.root.join(path))));
        let inside = path.starts_with(&self.root) || self.private_dir().is_some_and(|dir| path.starts_with(dir));
        Resolved { path, inside }
    }

    /// Sets the directory that commands see as `name`, which may be created later.
    pub fn of_commands(self, name: &Path, dir: impl Fn() -> Option<PathBuf> + Send + Sync + 'static) -> Self {
        Self { private: Some(Private { name: name.to_path_buf(), dir: Arc::new(dir) }), ..self }
    }

    fn private_dir(&self) -> Option<PathBuf> {
        (self.private.as_ref()?.dir)()
    }

    /// A path as commands see it: their `/tmp` is a private directory. What only others have there stays theirs, so that its path
    /// means the same before the first command and after it.
    fn seen_by_commands(&self, path: PathBuf) -> PathBuf {
        let Some(private) = self.private.as_ref().filter(|private| path.starts_with(&private.name)) else {
            return path;
        };
        match (private.dir)() {
            Some(dir) if !path.starts_with(&dir) && !path.starts_with(&self.root) && !self.is_beside(&path) => {
                let rest = path.strip_prefix(&private.name).unwrap_or(&path);
                let count_missing = |dir: &Path| {
                    rest.ancestors().take_while(|part| dir.join(part).symlink_metadata().is_err()).count()
                };
                let theirs = count_missing(&private.name);
                // Only their root is there, or commands have made more of it.
                let is_private = theirs == rest.components().count() || count_missing(&dir) < theirs;
                if is_private { dir.join(rest) } else { path }
            }
            _ => path,
        }
    }

    /// Sets the user's home, and the function that finds the places of credentials.
    pub fn of_person(self, home: &Path, secrets: impl FnOnce() -> Vec<PathBuf> + Send + 'static) -> Self {
        let home = crate::files::canonicalize(home).unwrap_or_else(|_| home.to_path_buf());
        Self { home: Some(home), secrets: Arc::new(LazyLock::new(Box::new(secrets))), ..self }
    }

    /// Adds the directories outside of it that commands may write. A home does not belong to the work, and neither does
    /// what contains the workspace.
    pub fn with_beside(self, dirs: &[PathBuf]) -> Self {
        let dirs = dirs.iter().filter_map(|dir| crate::files::canonicalize(dir).ok());
        let beside = dirs.filter(|dir| !self.is_in(dir)).collect();
        Self { beside, ..self }
    }

    /// Sets where what changes in it is kept, as this process entered a layer over it.
    pub fn with_layer(self, layer: PathBuf) -> Self {
        Self { layer: Some(layer), ..self }
    }

    /// Where what changes in it is kept, if that is not in it.
    pub fn layer(&self) -> Option<&Path> {
        self.layer.as_deref()
    }

    /// Notes the workspace that it is a copy or a work tree of: what rules deny here they deny there.
    pub fn with_original(self, original: &Self) -> Self {
        let originals = original.originals.iter().chain([&original.root]).cloned();
        Self { originals: originals.collect(), ..self }
    }

    /// The directories that it is a copy or a work tree of.
    pub fn originals(&self) -> &[PathBuf] {
        &self.originals
    }

    /// The place in this workspace of a path that lies in what it is a copy or a work tree of.
    pub fn find_counterpart(&self, path: &Path) -> Option<PathBuf> {
        let is_outside = !path.starts_with(&self.root);
        let rest = self.originals.iter().filter(|_| is_outside).find_map(|dir| path.strip_prefix(dir).ok());
        rest.map(|rest| self.root.join(rest))
    }

    /// True if `path`, which was resolved, is in a directory that the settings add.
    pub fn is_beside(&self, path: &Path) -> bool {
        self.beside.iter().any(|dir| path.starts_with(dir))
    }

    /// Sets the directories from which a person runs programs by name: those of their `PATH`, and of an active virtual
    /// environment. Only those inside and beside matter; the root itself cannot be kept from changing.
    pub fn with_programs(self, dirs: Vec<PathBuf>) -> Self {
        let (root, beside) = (self.root.clone(), Arc::clone(&self.beside));
        let find = move || {
            let dirs = dirs.iter().filter_map(|dir| crate::files::canonicalize(dir).ok());
            let is_meant = |dir: &PathBuf| [&root].into_iter().chain(&*beside).any(|top| dir.starts_with(top));
            dirs.filter(|dir| is_meant(dir) && *dir != root).collect()
        };
        Self { programs: Arc::new(LazyLock::new(Box::new(find))), ..self }
    }

    /// The directories in it and beside it from which a person runs programs by name.
    pub fn programs(&self) -> &[PathBuf] {
        &self.programs
    }

    /// What rules denied to commands in it.
    pub fn denied(&self) -> &DeniedFiles {
        &self.denied
    }

    /// True if it is a home directory, or contains one.
    pub fn holds_home(&self) -> bool {
        self.home.as_ref().is_some_and(|home| home.starts_with(&self.root))
    }

    /// True if the workspace or the user's home is in `dir`, or is it.
    pub fn is_in(&self, dir: &Path) -> bool {
        self.root.starts_with(dir) || self.home.as_ref().is_some_and(|home| home.starts_with(dir))
    }

    /// True if `path`, which was resolved, contains credentials or is in a place of them.
    pub fn is_secret(&self, path: &Path) -> bool {
        // Files in a project are the project's own: a place in it counts only if the whole home is the workspace.
        let may_be = self.holds_home() || !path.starts_with(&self.root);
        may_be && self.secrets.iter().any(|secret| path.starts_with(secret))
    }

    /// The reason that a write always asks, if it does: by the path as it is `named`, relative or absolute, or by where it
    /// leads, which is resolved.
    pub fn protection(&self, named: &Path, path: &Path) -> Option<&'static str> {
        let named = Some(normalise_path(&self.root.join(named))).filter(|named| named != path);
        let linked =
            self.links.iter().filter_map(|(link, target)| Some(link.join(path.strip_prefix(target).ok()?)));
        self.protect(path).or_else(|| named.into_iter().chain(linked).find_map(|path| self.protect(&path)))
    }

    fn protect(&self, path: &Path) -> Option<&'static str> {
        let inside = path.strip_prefix(&self.root).ok();
        // A workspace may itself be in a protected place of its repository.
        let from = self.git_root.as_deref().unwrap_or(&self.root);
        let decides = protected::is_protected(path.strip_prefix(from).unwrap_or(path))
            || self.is_in_bare_repository(inside.unwrap_or(path));
        let is_hidden = |path: &Path| path.iter().any(|name| name.as_encoded_bytes().starts_with(b"."));
        if decides {
            Some("which decides what runs later")
        } else if self.programs.iter().any(|dir| path.starts_with(dir)) {
            Some("from where you run programs by their name")
        } else if self.holds_home() && inside.is_some_and(is_hidden) {
            Some("a hidden file of a home directory")
        } else {
            None
        }
    }

    /// True if a path, relative or absolute, is a protected one in a git directory of any name.
    fn is_in_bare_repository(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|dir| {
            let below = path.strip_prefix(dir).unwrap_or(path);
            let dir = self.root.join(dir);
            protected::is_protected_in_git(below)
                && ["HEAD", "objects", "refs"].iter().all(|name| dir.join(name).symlink_metadata().is_ok())
        })
    }

    /// The name of `path` for a model or a person: relative if it is inside, quoted if necessary, so that
    /// [`Workspace::resolve`] can read it back.
    pub fn display(&self, path: &Path) -> String {
        let private = self.private.as_ref().zip(self.private_dir());
        let named = private.and_then(|(private, dir)| Some(private.name.join(path.strip_prefix(dir).ok()?)));
        file_name::quote(named.as_deref().unwrap_or_else(|| self.relative(path))).into_owned()
    }

    /// `path` relative to the workspace, if it is inside.
    pub fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        match path.strip_prefix(&self.root) {
            Ok(rest) if rest.as_os_str().is_empty() => Path::new("."),
            Ok(rest) => rest,
            Err(_) => path,
        }
    }
}

/// The links in a directory, and where they lead.
fn list_links(dir: &Path) -> Vec<(PathBuf, PathBuf)> {
    let entries = Dir::open(dir).and_then(|dir| dir.entries()).unwrap_or_default();
    let links = entries.into_iter().filter(|entry| entry.kind == DirEntryKind::Link);
    links.map(|entry| dir.join(entry.name)).map(|link| (link.clone(), follow_links(&link))).collect()
}

/// Removes `.` and `..` by name, so that a path which does not exist can still be judged.
fn normalise_path(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // `link/..` means the parent of the link's target, so links before `..` are followed first.
            Component::ParentDir => {
                out = follow_links(&out);
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// Follows links as far as the path exists. A dangling link resolves to its target: that is what a write would
/// create.
fn follow_links(path: &Path) -> PathBuf {
    const MOST_LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if let Ok(real) = crate::files::canonicalize(&path) {
            return real;
        }
        match std::fs::read_link(&path) {
            Ok(target) => {
                path = normalise_path(&path.parent().unwrap_or(Path::new("/")).join(target));
            }
            Err(_) => break,
        }
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => follow_links(parent).join(name),
        _ => path,
    }
}
