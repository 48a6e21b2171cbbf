//! Looks through the workspace, and finds what changed since the last look.
//!
//! A file whose stamp is the same as before is not read again, whichever session read it. What `.gitignore` and the like
//! leave out is not looked at, and neither is `.git`. A path that was once looked at stays in view.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::Scope;

use serde::{Deserialize, Serialize};

use crate::files::disk::{Dir, DirEntry, DirEntryKind, DiskStamp, OpenedUp, is_exhaustion};
use crate::files::file_name;
use crate::files::ignored::{Exclusions, IgnoreFiles};
use crate::files::regular::Links;

use super::content::ContentStore;
use super::excluded::is_git_dir;
#[cfg(not(target_os = "linux"))]
use super::no_watch::DirWatch;
use super::readers::{FileReaders, FileReading, LARGEST_FILE, UnreadFile, read_file};
use super::state::{PathChange, PathState};
#[cfg(target_os = "linux")]
use super::watch::DirWatch;

/// What all files together may have, in bytes: a workspace with more is not looked through.
const MOST_BYTES: u64 = 512 << 20;
/// The most entries of a workspace that is looked through.
const MOST_ENTRIES: usize = 200_000;
/// A look that comes by so many files to read has threads read the others: for a few it would take longer.
const FEW_FILES: usize = 100;
/// The most levels of directories; each holds a handle and a part of the stack.
const MOST_LEVELS: usize = 200;
/// A file that changed so shortly before a look may change again without a trace in its stamp, in nanoseconds: clocks of
/// file systems advance every few milliseconds.
pub(super) const TICK: i64 = 20_000_000;

/// A path as it was at the last look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenPath {
    /// `None` if a later look must read it again.
    pub stamp: Option<DiskStamp>,
    pub state: PathState,
}

/// What was in the workspace at the last look, by path.
pub(super) type SeenPaths = BTreeMap<PathBuf, SeenPath>;

/// Why a workspace cannot be looked through.
#[derive(Debug)]
pub(super) enum ScanError {
    TooLarge(String),
    Io(io::Error),
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Looks in the directories that changed, or through all if these are not known: what is there now, what watches it, and
/// what the look came by. Nothing is known if the workspace is too large, or its root or the store cannot be read.
pub(super) fn scan(
    root: &Path,
    store: &ContentStore,
    seen: SeenPaths,
    watch: Option<DirWatch>,
    changed: Option<BTreeSet<PathBuf>>,
    now: i64,
) -> Result<(SeenPaths, Option<DirWatch>, ScanFindings), ScanError> {
    std::thread::scope(|scope| {
        let mut scan = WorkspaceScan {
            root,
            old: SeenPaths::new(),
            fresh: SeenPaths::new(),
            watch,
            store,
            ignored: IgnoreFiles::anywhere(Links::Refuse),
            now,
            bytes: 0,
            entries: 0,
            unread: Vec::new(),
            come_by: 0,
            scope,
            readers: None,
            found: ScanFindings::default(),
        };
        scan.look_in(changed, seen)?;
        scan.found.changes.sort_by(|a, b| a.path.cmp(&b.path));
        store.flush()?;
        Ok((scan.fresh, scan.watch, scan.found))
    })
}

struct WorkspaceScan<'scope, 'env> {
    root: &'scope Path,
    /// What was there and was not come by yet.
    old: SeenPaths,
    fresh: SeenPaths,
    watch: Option<DirWatch>,
    store: &'scope ContentStore,
    ignored: IgnoreFiles,
    now: i64,
    bytes: u64,
    /// The number of entries that the workspace has, as far as it is looked through.
    entries: usize,
    /// The files of the directory that is looked through, which are to be read.
    unread: Vec<UnreadFile>,
    /// The number of files to read that were come by.
    come_by: usize,
    scope: &'scope Scope<'scope, 'env>,
    /// The threads, once there are many files.
    readers: Option<FileReaders>,
    found: ScanFindings,
}

/// What a look came by.
#[derive(Default)]
pub(super) struct ScanFindings {
    /// In the order of their paths.
    pub changes: Vec<PathChange>,
    /// `.git` entries, and bare repositories.
    pub repositories: BTreeSet<PathBuf>,
    /// What is left out.
    pub excluded: Vec<(PathBuf, DirEntryKind)>,
}

impl WorkspaceScan<'_, '_> {
    /// Looks in the directories that changed, or through all.
    fn look_in(&mut self, changed: Option<BTreeSet<PathBuf>>, seen: SeenPaths) -> Result<(), ScanError> {
        match changed {
            // An ignore file decides about more than its own directory.
            Some(dirs) if !dirs.iter().any(|dir| self.has_new_rules(dir, &seen)) => {
                self.fresh = seen;
                for dir in dirs {
                    self.visit_again(&dir)?;
                }
            }
            _ => {
                (self.old, self.watch) = (seen, DirWatch::new());
                let exclusions = self.ignored.read_in(self.root);
                self.visit(&Arc::new(Dir::open(self.root)?), Path::new(""), &exclusions, MOST_LEVELS)?;
                self.wait_for_readers()?;
                self.forget_rest();
            }
        }
        Ok(())
    }

    /// Looks through a directory and everything below it.
    fn visit(
        &mut self,
        dir: &Arc<Dir>,
        path: &Path,
        exclusions: &Exclusions,
        levels: usize,
    ) -> Result<(), ScanError> {
        self.watch_dir(dir, path);
        let (entries, opened) = self.list(dir, path)?;
        let mut inner = Vec::new();
        for entry in entries {
            let Some((path, whole)) = self.admit(&entry, path, exclusions) else { continue };
            self.look(dir, &entry.name, path.clone())?;
            inner.extend((entry.kind == DirEntryKind::Dir).then_some((entry, path, whole)));
        }
        self.read(dir, opened.is_none())?;
        inner.iter().try_for_each(|(entry, path, whole)| self.visit_below(dir, entry, path, whole, levels))
    }

    fn visit_below(
        &mut self,
        dir: &Dir,
        entry: &DirEntry,
        path: &Path,
        whole: &Path,
        levels: usize,
    ) -> Result<(), ScanError> {
        if entry.kind == DirEntryKind::Dir
            && let Some(levels) = levels.checked_sub(1)
            && let Some(inner) = expect_room(dir.dir(&entry.name))?
        {
            let exclusions = self.ignored.read_in(whole);
            self.visit(&Arc::new(inner), path, &exclusions, levels)?;
        }
        Ok(())
    }

    /// Looks through a directory in which something changed, and those below it that are new.
    fn visit_again(&mut self, path: &Path) -> Result<(), ScanError> {
        let root = self.root.join(path);
        // If it is gone, so is its entry in the directory above, which has changed then.
        let Some(dir) = expect_room(Dir::open(&root))?.map(Arc::new) else { return Ok(()) };
        let exclusions = self.ignored.read_in(&root);
        self.take_children(path);
        self.entries = self.fresh.len();
        let levels = MOST_LEVELS.saturating_sub(path.components().count());
        let (entries, opened) = self.list(&dir, path)?;
        for entry in entries {
            let Some((path, whole)) = self.admit(&entry, path, &exclusions) else { continue };
            self.look(&dir, &entry.name, path.clone())?;
            self.read(&dir, opened.is_none())?;
            let is_dir = entry.kind == DirEntryKind::Dir;
            let inner = is_dir.then(|| expect_room(dir.dir(&entry.name))).transpose()?.flatten();
            // A directory that was here before is another now, or none.
            if inner.is_none_or(|inner| self.watch_dir(&inner, &path)) {
                move_below(&path, &mut self.fresh, &mut self.old);
                self.visit_below(&dir, &entry, &path, &whole, levels)?;
            }
        }
        self.wait_for_readers()?;
        let gone: Vec<PathBuf> = self.old.keys().cloned().collect();
        for path in gone {
            move_below(&path, &mut self.fresh, &mut self.old);
        }
        self.forget_rest();
        Ok(())
    }

    /// The entries of a directory, which is open until the second result is dropped. One that goes away meanwhile has none;
    /// one that cannot be listed has what it had.
    fn list(&mut self, dir: &Dir, path: &Path) -> io::Result<(Vec<DirEntry>, Option<OpenedUp>)> {
        let (mut listed, mut opened) = (dir.entries(), None);
        if listed.is_err() {
            opened = dir.open_up();
            listed = dir.entries();
        }
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        if listed.as_ref().is_err_and(|error| !is_gone(error)) {
            move_below(path, &mut self.old, &mut self.fresh);
        }
        let entries = expect_room(listed)?.unwrap_or_default();
        if is_git_dir(&entries) {
            self.found.repositories.insert(path.to_path_buf());
        }
        Ok((entries, opened))
    }

    /// The path of an entry in the workspace, and the whole one; `None` if it is left out.
    fn admit(&mut self, entry: &DirEntry, path: &Path, exclusions: &Exclusions) -> Option<(PathBuf, PathBuf)> {
        let path = path.join(&entry.name);
        if entry.name == ".git" {
            self.found.repositories.insert(path);
            return None;
        }
        let whole = self.root.join(&path);
        let is_known = || self.old.contains_key(&path) || self.fresh.contains_key(&path);
        if exclusions.has(&whole, entry.kind == DirEntryKind::Dir) && !is_known() {
            self.found.excluded.push((path, entry.kind));
            return None;
        }
        Some((path, whole))
    }

    /// Watches a directory, before it is listed: what changes later is told. Returns true if it was not watched yet.
    fn watch_dir(&mut self, dir: &Dir, path: &Path) -> bool {
        let added = self.watch.as_mut().and_then(|watch| watch.add(dir, path));
        if added.is_none() {
            self.watch = None;
        }
        added.unwrap_or(true)
    }

    /// Takes the entries of a directory out of what is up to date, without what is below them.
    fn take_children(&mut self, dir: &Path) {
        let mut next = self.fresh.range::<Path, _>((Bound::Excluded(dir), Bound::Unbounded)).next();
        let mut children = Vec::new();
        while let Some((path, _)) = next.filter(|(path, _)| path.starts_with(dir)) {
            children.push(path.clone());
            // No name contains a NUL: this comes after everything below the path, and before the next entry.
            let mut end = path.clone().into_os_string();
            end.push("\0");
            next = self.fresh.range(PathBuf::from(end)..).next();
        }
        self.old.extend(children.into_iter().filter_map(|path| self.fresh.remove_entry(&path)));
    }

    /// True if what a directory leaves out may have changed.
    fn has_new_rules(&self, dir: &Path, seen: &SeenPaths) -> bool {
        let here = Dir::open(&self.root.join(dir));
        [".gitignore", ".ignore"].iter().any(|name| {
            let now = here.as_ref().ok().and_then(|here| here.examine(OsStr::new(name)).ok()).map(|found| found.1);
            let known = seen.get(&dir.join(name));
            known.is_some() != now.is_some() || known.is_some_and(|known| known.stamp != now)
        })
    }

    /// Looks at an entry, unless it is gone.
    fn look(&mut self, dir: &Dir, name: &OsStr, path: PathBuf) -> Result<(), ScanError> {
        let Some((facts, stamp)) = expect_room(dir.examine(name))? else { return Ok(()) };
        self.bytes += if facts.len <= LARGEST_FILE { facts.len } else { 0 };
        if self.bytes > MOST_BYTES {
            return Err(ScanError::TooLarge(format!("its files have more than {} MiB", MOST_BYTES >> 20)));
        }
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return Err(ScanError::TooLarge(format!("it has more than {MOST_ENTRIES} files")));
        }
        let known = self.old.remove(&path);
        let is_kept = |state: &PathState| match state {
            PathState::File { sha256, .. } => self.store.has(sha256),
            _ => true,
        };
        let known = match known {
            Some(same) if same.stamp == Some(stamp) && is_kept(&same.state) => {
                self.fresh.insert(path, same);
                return Ok(());
            }
            known => known,
        };
        let before = known.map_or(PathState::Absent, |known| known.state);
        let found = UnreadFile { name: name.to_owned(), path, mode: facts.mode, stamp, before };
        if facts.kind == DirEntryKind::File {
            self.unread.push(found);
        } else {
            let state = read_other(dir, name, facts.kind, facts.mode);
            self.note(found, state);
        }
        Ok(())
    }

    /// Reads the files that were found in a directory. What is read by threads may be noted later, unless the directory is
    /// about to be closed.
    fn read(&mut self, dir: &Arc<Dir>, stays_open: bool) -> Result<(), ScanError> {
        let files = std::mem::take(&mut self.unread);
        self.come_by += files.len();
        if self.come_by > FEW_FILES && stays_open && self.readers.is_none() {
            self.readers = FileReaders::start(self.scope, self.store);
        }
        if let Some(readers) = self.readers.as_mut().filter(|_| stays_open) {
            let read = readers.give(dir, files);
            return self.note_all(read);
        }
        let store = self.store;
        self.note_all(files.into_iter().map(|file| read_file(dir, &file, store).map(|state| (file, state))))
    }

    fn wait_for_readers(&mut self) -> Result<(), ScanError> {
        let read = self.readers.as_mut().map(FileReaders::wait).unwrap_or_default();
        self.note_all(read)
    }

    fn note_all(&mut self, read: impl IntoIterator<Item = FileReading>) -> Result<(), ScanError> {
        for read in read {
            let (found, state) = read?;
            self.note(found, state);
        }
        Ok(())
    }

    /// Notes what is at a path now.
    fn note(&mut self, UnreadFile { path, stamp, before, .. }: UnreadFile, state: PathState) {
        if before != state {
            self.found.changes.push(PathChange::new(&path, before, state.clone()));
        }
        let stamp = (stamp.changed < self.now - TICK).then_some(stamp);
        self.fresh.insert(path, SeenPath { stamp, state });
    }

    /// Notes that every path which the walk did not come by is gone.
    fn forget_rest(&mut self) {
        let gone = std::mem::take(&mut self.old).into_iter();
        self.found
            .changes
            .extend(gone.map(|(path, known)| PathChange::new(&path, known.state, PathState::Absent)));
    }
}

/// What was opened; `None` if it cannot be, unless that is for want of room: then nothing is known of the workspace.
pub(super) fn expect_room<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Err(error) if is_exhaustion(&error) => Err(error),
        opened => Ok(opened.ok()),
    }
}

/// Moves everything below a path.
fn move_below(path: &Path, from: &mut SeenPaths, to: &mut SeenPaths) {
    let below = from.range::<Path, _>((Bound::Excluded(path), Bound::Unbounded)).map(|(below, _)| below);
    let below: Vec<PathBuf> = below.take_while(|below| below.starts_with(path)).cloned().collect();
    to.extend(below.into_iter().filter_map(|below| from.remove_entry(&below)));
}

/// What an entry is that is no file.
pub(super) fn read_other(dir: &Dir, name: &OsStr, kind: DirEntryKind, mode: u32) -> PathState {
    match kind {
        DirEntryKind::Link => match dir.link(name) {
            Ok(target) => PathState::Link { target: file_name::quote(&target).into_owned() },
            Err(_) => PathState::Special,
        },
        DirEntryKind::Dir => PathState::Dir { mode },
        _ => PathState::Special,
    }
}
