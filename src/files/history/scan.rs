//! Looks through the workspace, and finds what changed since the last look.
//!
//! A file whose stamp is the same as before is not read again, whichever session read it. What `.gitignore` and the like
//! leave out is not looked at, and neither is `.git`. A path that was once looked at stays in view.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::files::disk::{Dir, DirEntryKind, DiskStamp};
use crate::files::file_name;
use crate::files::ignored::{Exclusions, IgnoreFiles};
use crate::files::regular::Links;

use super::content::{ContentStore, MOST_UNPACKED};
use super::state::{PathChange, PathState};

/// The largest file whose content is kept, in bytes.
const LARGEST_FILE: u64 = MOST_UNPACKED as u64;
/// What all files together may have, in bytes: a workspace with more is not looked through.
const MOST_BYTES: u64 = 512 << 20;
/// The most entries of a workspace that is looked through.
const MOST_ENTRIES: usize = 200_000;
/// The most levels of directories; each holds a handle and a part of the stack.
const MOST_LEVELS: usize = 200;
/// A file that changed so shortly before a look may change again without a trace in its stamp, in nanoseconds: clocks of
/// file systems advance every few milliseconds.
const TICK: i64 = 20_000_000;

/// A path as it was at the last look.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Looks through the workspace. Returns what changed since `seen`, which is up to date afterwards.
///
/// # Errors
/// It is too large, or its root or the store cannot be read; `seen` is empty then.
pub(super) fn scan_workspace(
    root: &Path,
    seen: &mut SeenPaths,
    store: &mut ContentStore,
) -> Result<Vec<PathChange>, ScanError> {
    let mut scan = WorkspaceScan {
        root,
        old: std::mem::take(seen),
        fresh: SeenPaths::new(),
        store,
        ignored: IgnoreFiles::anywhere(Links::Refuse),
        now: read_clock(),
        bytes: 0,
        changes: Vec::new(),
    };
    let exclusions = scan.ignored.read_in(root);
    scan.visit(&Dir::open(root)?, Path::new(""), &exclusions, MOST_LEVELS)?;
    for (path, known) in std::mem::take(&mut scan.old) {
        scan.find_again(path, known)?;
    }
    let WorkspaceScan { fresh, mut changes, .. } = scan;
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    *seen = fresh;
    Ok(changes)
}

/// What is at a path now. Its content is kept.
///
/// # Errors
/// The store fails.
pub(super) fn look_at(root: &Path, path: &Path, store: &mut ContentStore) -> io::Result<PathState> {
    let whole = root.join(path);
    let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else { return Ok(PathState::Absent) };
    let Ok(dir) = Dir::open(parent) else { return Ok(PathState::Absent) };
    let Ok((facts, stamp)) = dir.examine(name) else { return Ok(PathState::Absent) };
    read_state(&dir, name, facts.kind, facts.mode, &stamp, store)
}

struct WorkspaceScan<'a> {
    root: &'a Path,
    old: SeenPaths,
    fresh: SeenPaths,
    store: &'a mut ContentStore,
    ignored: IgnoreFiles,
    now: i64,
    bytes: u64,
    changes: Vec<PathChange>,
}

impl WorkspaceScan<'_> {
    fn visit(&mut self, dir: &Dir, path: &Path, exclusions: &Exclusions, levels: usize) -> Result<(), ScanError> {
        // A directory that cannot be listed, or goes away meanwhile, has nothing to show.
        let Ok(entries) = dir.entries() else { return Ok(()) };
        for entry in entries {
            let (path, whole) = (path.join(&entry.name), self.root.join(path).join(&entry.name));
            let is_dir = entry.kind == DirEntryKind::Dir;
            if entry.name == ".git" || exclusions.has(&whole, is_dir) {
                continue;
            }
            self.look(dir, &entry.name, path.clone())?;
            if is_dir
                && levels > 0
                && let Ok(inner) = dir.dir(&entry.name)
            {
                let exclusions = self.ignored.read_in(&whole);
                self.visit(&inner, &path, &exclusions, levels - 1)?;
            }
        }
        Ok(())
    }

    /// Looks at an entry, unless it is gone.
    fn look(&mut self, dir: &Dir, name: &OsStr, path: PathBuf) -> Result<(), ScanError> {
        let Ok((facts, stamp)) = dir.examine(name) else { return Ok(()) };
        self.bytes += if facts.len <= LARGEST_FILE { facts.len } else { 0 };
        if self.bytes > MOST_BYTES {
            return Err(ScanError::TooLarge(format!("its files have more than {} MiB", MOST_BYTES >> 20)));
        }
        if self.fresh.len() >= MOST_ENTRIES {
            return Err(ScanError::TooLarge(format!("it has more than {MOST_ENTRIES} files")));
        }
        let known = self.old.remove(&path);
        let is_kept = |state: &PathState| match state {
            PathState::File { sha256, .. } => self.store.has(sha256),
            _ => true,
        };
        if let Some(same) = known.as_ref().filter(|known| known.stamp == Some(stamp) && is_kept(&known.state)) {
            self.fresh.insert(path, same.clone());
            return Ok(());
        }
        let state = read_state(dir, name, facts.kind, facts.mode, &stamp, self.store)?;
        let before = known.map_or(PathState::Absent, |known| known.state);
        if before != state {
            self.changes.push(PathChange::new(&path, before, state.clone()));
        }
        let stamp = (stamp.changed < self.now - TICK).then_some(stamp);
        self.fresh.insert(path, SeenPath { stamp, state });
        Ok(())
    }

    /// Looks at a path that was seen before and that the walk did not come by: it is gone, or ignored by now.
    fn find_again(&mut self, path: PathBuf, known: SeenPath) -> Result<(), ScanError> {
        let whole = self.root.join(&path);
        let place = whole.parent().zip(whole.file_name());
        let found = place.and_then(|(parent, name)| Some((Dir::open(parent).ok()?, name)));
        if let Some((dir, name)) = found
            && dir.facts(name).is_ok()
        {
            self.old.insert(path.clone(), known);
            return self.look(&dir, name, path);
        }
        if known.state != PathState::Absent {
            self.changes.push(PathChange::new(&path, known.state, PathState::Absent));
        }
        Ok(())
    }
}

/// What an entry is. The content of a file is kept.
fn read_state(
    dir: &Dir,
    name: &OsStr,
    kind: DirEntryKind,
    mode: u32,
    stamp: &DiskStamp,
    store: &mut ContentStore,
) -> io::Result<PathState> {
    let unkept = PathState::Unkept { mode, len: stamp.len, changed: stamp.changed };
    Ok(match kind {
        DirEntryKind::File if stamp.len > LARGEST_FILE => unkept,
        DirEntryKind::File => match dir.file(name).and_then(|mut file| file.read(LARGEST_FILE + 1)) {
            Ok(content) if content.len() as u64 <= LARGEST_FILE => {
                let len = content.len() as u64;
                PathState::File { mode, len, sha256: store.put(&content)? }
            }
            _ => unkept,
        },
        DirEntryKind::Link => match dir.link(name) {
            Ok(target) => PathState::Link { target: file_name::quote(&target).into_owned() },
            Err(_) => PathState::Special,
        },
        DirEntryKind::Dir => PathState::Dir { mode },
        _ => PathState::Special,
    })
}

/// Now, in nanoseconds since 1970, as file systems count.
fn read_clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
