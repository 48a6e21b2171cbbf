//! A copy of a workspace in which changes are tried, or the directory of a layer over it: nothing reaches the workspace
//! until they are applied.
//!
//! Copied is the whole repository around the workspace, so that git works in it, or the workspace where there is none.
//! Ignored files (dependencies, builds) come last, as far as there is room. File systems that can share blocks share
//! them. The names of copies are chosen here, and no link is followed on the way.
//!
//! Beside a copy lies a file that its process keeps locked: one that nobody holds is of a process that was killed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::iter;
use std::path::{Component, Path, PathBuf};

use crate::files::disk::{self, CopyWatch, Dir, DirEntryKind, FileFacts, copy_tree, measure_tree, split_path};
use crate::files::file_name;
use crate::files::ignored::IgnoreFiles;
use crate::files::private::make_private_dir;
use crate::files::regular::Links;
use crate::files::workspace::Workspace;

/// What a copy may have, in bytes.
const MOST_BYTES: u64 = 2 << 30;
/// The most entries of a copy.
const MOST_ENTRIES: usize = 300_000;
/// What ends the name of the file beside a copy.
const LOCK: &str = "lock";
/// The directory of a layer with what changed, as an overlay calls it.
const UPPER: &str = "upper";
/// The most paths that are named as left out.
const MOST_NAMED: usize = 5;

/// A copy of a workspace, or the directory of a layer over it. Dropping it removes it, unless it was kept.
#[derive(Debug)]
pub struct TrialCopy {
    top: PathBuf,
    /// The directory around the workspace that it is of.
    source: PathBuf,
    workspace: PathBuf,
    is_kept: bool,
    /// Locked as long as this process lives.
    lock: Option<File>,
    /// A sentence about what is not in it, if that is anything.
    pub left_out: Option<String>,
}

impl TrialCopy {
    /// Copies a workspace to a new directory in `all`. `owner` says where those are who may name it later.
    ///
    /// # Errors
    /// A sentence: it is too large, or the disk fails. Nothing is left then.
    pub fn make(workspace: &Workspace, all: &Path, owner: &Path) -> Result<Self, String> {
        let mut copy = Self::begin(workspace, all, owner, None)?;
        let failed = |error| fail(&copy.source, error);
        let (parent, name) =
            split_path(&copy.source).ok().flatten().ok_or("the root directory cannot be copied")?;
        let mut watch = WorkspaceCopy::new(parent, name);
        let made = Dir::open(parent).and_then(|from| watch.copy_all(&from, &Dir::open(&copy.top)?));
        made.map_err(failed)?;
        copy.left_out = watch.describe_left_out();
        Ok(copy)
    }

    /// Makes a new directory in `all` for a layer over the repository around a workspace; nothing is copied.
    ///
    /// # Errors
    /// A sentence: the disk fails, or the workspace cannot have one. Nothing is left then.
    pub fn make_layer(workspace: &Workspace, all: &Path, owner: &Path) -> Result<Self, String> {
        let copy = Self::begin(workspace, all, owner, Some(OsStr::new(UPPER)))?;
        let failed = |error| fail(&copy.source, error);
        if copy.source.join(".git").is_file() {
            // It names a directory outside, in which commands of the trial would change the real repository.
            return Err("it is a linked work tree".to_owned());
        }
        make_private_dir(&copy.top.join("work")).map_err(failed)?;
        let upper = copy.top.join(UPPER);
        let inner = copy.workspace.strip_prefix(&upper).unwrap_or(Path::new(""));
        let mut made = PathBuf::new();
        // Of a directory in both, the layer's owner and mode are seen.
        for part in iter::once(OsStr::new("")).chain(inner.iter()) {
            made.push(part);
            copy_dir(&copy.source.join(&made), &upper.join(&made)).map_err(failed)?;
        }
        Ok(copy)
    }

    /// Makes the directory, with the file that says who may name it. `name` is that of the directory in it for the
    /// source; else it is the source's.
    fn begin(workspace: &Workspace, all: &Path, owner: &Path, name: Option<&OsStr>) -> Result<Self, String> {
        let source = workspace.git_root().unwrap_or(workspace.root());
        let failed = |error| fail(source, error);
        make_private_dir(all).map_err(failed)?;
        let all = crate::files::canonicalize(all).map_err(failed)?;
        if all.starts_with(source) {
            return Err(format!("{} holds the copies of trials itself: start in a project", source.display()));
        }
        let tail = iter::repeat_with(fastrand::alphanumeric).take(8).map(|c| c.to_ascii_lowercase());
        let top = all.join(tail.collect::<String>());
        let mut lock = File::create_new(lock_of(&top)).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        lock.write_all(owner.as_os_str().as_encoded_bytes()).map_err(failed)?;
        let inner = workspace.root().strip_prefix(source).unwrap_or(Path::new(""));
        let name = name.or(source.file_name()).unwrap_or(OsStr::new(UPPER));
        let copy = Self {
            source: source.to_path_buf(),
            workspace: top.join(name).join(inner),
            top,
            is_kept: false,
            lock: Some(lock),
            left_out: None,
        };
        make_private_dir(&copy.top).map_err(failed)?;
        Ok(copy)
    }

    /// The workspace in the copy; in the layer, what changed in it.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Leaves the copy where it is, for [`find_trial`].
    pub fn keep(mut self) {
        self.is_kept = true;
        // The session that names it may not be written yet.
        std::mem::forget(self.lock.take());
    }
}

impl Drop for TrialCopy {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = remove_copy(&self.top);
        }
    }
}

/// Removes a copy with what lies beside it.
///
/// # Errors
/// The disk fails.
pub fn remove_copy(top: &Path) -> io::Result<()> {
    disk::remove_tree(top)?;
    forget_maker(top);
    Ok(())
}

/// Forgets which process made a copy: it stays until it is removed.
pub fn forget_maker(top: &Path) {
    // Without the file it is so already.
    let _ = fs::remove_file(lock_of(top));
}

/// The copies in `all` of an owner whose process has ended, however it ended, since anybody looked.
pub fn find_abandoned(all: &Path, owner: &Path) -> Vec<PathBuf> {
    let Ok(all) = crate::files::canonicalize(all) else { return Vec::new() };
    let is_own = |lock: &PathBuf| fs::read(lock).is_ok_and(|words| words == owner.as_os_str().as_encoded_bytes());
    let names = fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_free = |lock: &PathBuf| File::open(lock).is_ok_and(|file| file.try_lock().is_ok());
    let locks =
        names.filter(|path| path.extension().is_some_and(|end| end == LOCK)).filter(is_own).filter(is_free);
    locks.map(|lock| lock.with_extension("")).collect()
}

/// A layer over a directory that holds a workspace.
#[derive(Debug)]
pub struct TrialLayer {
    /// The directory of the layer, with what an overlay needs.
    pub top: PathBuf,
    /// The directory that it is over.
    pub source: PathBuf,
    /// The path of the workspace in that.
    pub inner: PathBuf,
}

/// The layer in `all` in which `changed` is what changed in a workspace.
pub fn find_layer(all: &Path, changed: &Path, workspace: &Path) -> Option<TrialLayer> {
    let top = find_trial(all, changed)?;
    let inner = changed.strip_prefix(top.join(UPPER)).ok()?.to_path_buf();
    let source = workspace.ancestors().nth(inner.components().count())?.to_path_buf();
    Some(TrialLayer { top, source, inner })
}

fn fail(source: &Path, error: io::Error) -> String {
    format!("{} cannot be copied for a trial: {error}", source.display())
}

/// Makes a directory like another one, without what is in it.
fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    let facts = fs::symlink_metadata(from)?;
    make_private_dir(to)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, chown};
        // Only the superuser can give it away.
        let _ = chown(to, Some(facts.uid()), Some(facts.gid()));
    }
    fs::set_permissions(to, facts.permissions())
}

fn lock_of(top: &Path) -> PathBuf {
    top.with_extension(LOCK)
}

/// The directory in `all` of the copy with this workspace, if it is still there.
pub fn find_trial(all: &Path, workspace: &Path) -> Option<PathBuf> {
    let all = crate::files::canonicalize(all).ok()?;
    let Component::Normal(own) = workspace.strip_prefix(&all).ok()?.components().next()? else { return None };
    let is_plain = workspace.components().all(|part| !matches!(part, Component::ParentDir));
    (is_plain && disk::read_facts(workspace).ok()?.kind == DirEntryKind::Dir).then(|| all.join(own))
}

/// Chooses what is copied.
struct WorkspaceCopy {
    /// The directory of the source.
    parent: PathBuf,
    name: OsString,
    ignored: IgnoreFiles,
    /// Ignored entries, which come last, by their path from `parent`.
    late: Vec<PathBuf>,
    is_late: bool,
    entries: usize,
    bytes: u64,
    left_out: Vec<String>,
}

impl WorkspaceCopy {
    fn new(parent: &Path, name: &OsStr) -> Self {
        Self {
            parent: parent.to_path_buf(),
            name: name.to_owned(),
            ignored: IgnoreFiles::anywhere(Links::Refuse),
            late: Vec::new(),
            is_late: false,
            entries: 0,
            bytes: 0,
            left_out: Vec::new(),
        }
    }

    fn copy_all(&mut self, from: &Dir, to: &Dir) -> io::Result<()> {
        let name = self.name.clone();
        copy_tree(from, &name, to, &name, self)?;
        self.is_late = true;
        for path in std::mem::take(&mut self.late) {
            let Some((above, name)) = path.parent().zip(path.file_name()) else { continue };
            let (from, to) = (open_below(from, above)?, open_below(to, above)?);
            let left = MOST_BYTES.saturating_sub(self.bytes);
            if measure_tree(&from, name, left) > left {
                self.leave_out(&path, "ignored, and too large");
                continue;
            }
            let path = path.clone();
            copy_tree(&from, name, &to, name, &mut LateCopy { all: self, above: path.parent().unwrap_or(&path) })?;
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &Path, why: &str) {
        let path = path.strip_prefix(&self.name).unwrap_or(path);
        self.left_out.push(format!("{} ({why})", file_name::quote(path)));
    }

    fn describe_left_out(&self) -> Option<String> {
        let rest = self.left_out.len().saturating_sub(MOST_NAMED);
        let named = self.left_out.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
        match (self.left_out.len(), rest) {
            (0, _) => None,
            (_, 0) => Some(format!("not in the trial: {named}")),
            (_, rest) => Some(format!("not in the trial: {named} and {rest} more")),
        }
    }
}

impl CopyWatch for WorkspaceCopy {
    fn admit(&mut self, path: &Path, facts: &FileFacts) -> io::Result<bool> {
        let whole = self.parent.join(path);
        let is_top = path.parent() == Some(Path::new(&self.name));
        if is_top && path.ends_with(".git") && facts.kind == DirEntryKind::File {
            // It names a directory outside, in which commands of the trial would change the real repository.
            self.leave_out(path, "the workspace is a linked work tree");
            return Ok(false);
        }
        let is_source = path == Path::new(&self.name);
        if !self.is_late && !is_source && self.ignored.has(&whole, facts.kind == DirEntryKind::Dir) {
            self.late.push(path.to_path_buf());
            return Ok(false);
        }
        self.entries += 1;
        self.bytes += if facts.kind == DirEntryKind::File { facts.len } else { 0 };
        if self.entries > MOST_ENTRIES {
            return Err(io::Error::other(format!("it has more than {MOST_ENTRIES} files")));
        }
        if self.bytes > MOST_BYTES {
            return Err(io::Error::other(format!("its files have more than {} GiB", MOST_BYTES >> 30)));
        }
        Ok(true)
    }

    fn miss(&mut self, path: &Path, error: io::Error) -> io::Result<()> {
        self.leave_out(path, &error.to_string());
        Ok(())
    }
}

/// Passes on what is copied below a directory.
struct LateCopy<'a> {
    all: &'a mut WorkspaceCopy,
    above: &'a Path,
}

impl CopyWatch for LateCopy<'_> {
    fn admit(&mut self, path: &Path, facts: &FileFacts) -> io::Result<bool> {
        self.all.admit(&self.above.join(path), facts)
    }

    fn miss(&mut self, path: &Path, error: io::Error) -> io::Result<()> {
        self.all.miss(&self.above.join(path), error)
    }
}

fn open_below(dir: &Dir, path: &Path) -> io::Result<Dir> {
    path.components().try_fold(dir.dir(OsStr::new("."))?, |dir, part| dir.dir(part.as_os_str()))
}
