//! Looks through the workspace, and finds what changed since the last look.
//!
//! A file whose stamp is the same as before is not read again, whichever session read it. What `.gitignore` and the like
//! leave out is not looked at, and neither is `.git`. A path that was once looked at stays in view.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::files::disk::{Dir, DirEntry, DirEntryKind, DiskStamp, OpenedUp, open_through};
use crate::files::file_name;
use crate::files::ignored::{Exclusions, IgnoreFiles};
use crate::files::regular::Links;

use super::content::{ContentStore, MOST_UNPACKED};
use super::excluded::{AppearedPaths, ExcludedEntries, is_git_dir};
#[cfg(not(target_os = "linux"))]
use super::no_watch::DirWatch;
use super::state::{PathChange, PathState};
#[cfg(target_os = "linux")]
use super::watch::DirWatch;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenPath {
    /// `None` if a later look must read it again.
    pub stamp: Option<DiskStamp>,
    #[serde(flatten)]
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

/// The workspace as it was at the last look, and what tells where to look again.
#[derive(Default)]
pub(super) struct WorkspaceView {
    pub root: PathBuf,
    pub seen: SeenPaths,
    /// The repositories that a look came by: `.git` entries, and bare ones; `None` before the first look.
    repositories: Option<BTreeSet<PathBuf>>,
    excluded: ExcludedEntries,
    /// When the last look began, in nanoseconds since 1970.
    looked: Option<i64>,
    /// What was not there at the first look, until it is taken.
    pub appeared: AppearedPaths,
    /// `None` if every look goes through all.
    watch: Option<DirWatch>,
}

impl WorkspaceView {
    /// What was seen by an earlier process; nothing is watched yet.
    pub fn new(root: &Path, seen: SeenPaths) -> Self {
        Self { root: root.to_path_buf(), seen, ..Self::default() }
    }

    /// Looks through the workspace, as far as something may have changed. Returns what changed since the last look.
    ///
    /// # Errors
    /// It is too large, or its root or the store cannot be read; nothing is known then.
    pub fn look(&mut self, store: &mut ContentStore) -> Result<Vec<PathChange>, ScanError> {
        // As file systems count.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let since = self.looked.replace(now - TICK);
        let ScanFindings { changes, mut repositories, excluded } = self.look_at_kept(store, now)?;
        let executables = self.excluded.look(&self.root, excluded, since, &mut repositories);
        self.appeared.executables.extend(executables);
        let known = self.repositories.get_or_insert_with(|| repositories.clone());
        self.appeared.repositories.extend(repositories.into_iter().filter(|path| known.insert(path.clone())));
        Ok(changes)
    }

    fn look_at_kept(&mut self, store: &mut ContentStore, now: i64) -> Result<ScanFindings, ScanError> {
        let changed = self.watch.as_mut().and_then(DirWatch::take_changed);
        if changed.as_ref().is_some_and(BTreeSet::is_empty) {
            return Ok(ScanFindings::default());
        }
        let seen = std::mem::take(&mut self.seen);
        let mut scan = WorkspaceScan {
            root: &self.root,
            old: SeenPaths::new(),
            fresh: SeenPaths::new(),
            watch: self.watch.take(),
            store,
            ignored: IgnoreFiles::anywhere(Links::Refuse),
            now,
            bytes: 0,
            found: ScanFindings::default(),
        };
        match changed {
            // An ignore file decides about more than its own directory.
            Some(dirs) if !dirs.iter().any(|dir| scan.has_new_rules(dir, &seen)) => {
                scan.fresh = seen;
                for dir in dirs {
                    scan.visit_again(&dir)?;
                }
            }
            _ => {
                (scan.old, scan.watch) = (seen, DirWatch::new());
                let exclusions = scan.ignored.read_in(&self.root);
                scan.visit(&Dir::open(&self.root)?, Path::new(""), &exclusions, MOST_LEVELS)?;
                scan.forget_rest();
            }
        }
        let WorkspaceScan { fresh, mut found, watch, .. } = scan;
        found.changes.sort_by(|a, b| a.path.cmp(&b.path));
        (self.seen, self.watch) = (fresh, watch);
        Ok(found)
    }
}

/// What is at an absolute path now. Its content is kept.
///
/// # Errors
/// The store fails.
pub(super) fn look_at(path: &Path, store: &mut ContentStore) -> io::Result<PathState> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(PathState::Absent) };
    let Ok((dir, _opened)) = open_through(parent) else { return Ok(PathState::Absent) };
    let Ok((facts, stamp)) = dir.examine(name) else { return Ok(PathState::Absent) };
    read_state(&dir, name, facts.kind, facts.mode, &stamp, store)
}

struct WorkspaceScan<'a> {
    root: &'a Path,
    /// What was there and was not come by yet.
    old: SeenPaths,
    fresh: SeenPaths,
    watch: Option<DirWatch>,
    store: &'a mut ContentStore,
    ignored: IgnoreFiles,
    now: i64,
    bytes: u64,
    found: ScanFindings,
}

/// What a look came by.
#[derive(Default)]
struct ScanFindings {
    changes: Vec<PathChange>,
    /// `.git` entries, and bare repositories.
    repositories: BTreeSet<PathBuf>,
    /// What is left out.
    excluded: Vec<(PathBuf, DirEntryKind)>,
}

impl WorkspaceScan<'_> {
    /// Looks through a directory and everything below it.
    fn visit(&mut self, dir: &Dir, path: &Path, exclusions: &Exclusions, levels: usize) -> Result<(), ScanError> {
        self.watch_dir(dir, path);
        let (entries, _opened) = self.list(dir, path);
        for entry in entries {
            let Some((path, whole)) = self.admit(&entry, path, exclusions) else { continue };
            self.look(dir, &entry.name, path.clone())?;
            self.visit_below(dir, &entry, &path, &whole, levels)?;
        }
        Ok(())
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
            && let Ok(inner) = dir.dir(&entry.name)
        {
            let exclusions = self.ignored.read_in(whole);
            self.visit(&inner, path, &exclusions, levels)?;
        }
        Ok(())
    }

    /// Looks through a directory in which something changed, and those below it that are new.
    fn visit_again(&mut self, path: &Path) -> Result<(), ScanError> {
        let root = self.root.join(path);
        // If it is gone, so is its entry in the directory above, which has changed then.
        let Ok(dir) = Dir::open(&root) else { return Ok(()) };
        let exclusions = self.ignored.read_in(&root);
        self.take_children(path);
        let levels = MOST_LEVELS.saturating_sub(path.components().count());
        let (entries, _opened) = self.list(&dir, path);
        for entry in entries {
            let Some((path, whole)) = self.admit(&entry, path, &exclusions) else { continue };
            self.look(&dir, &entry.name, path.clone())?;
            let inner = if entry.kind == DirEntryKind::Dir { dir.dir(&entry.name).ok() } else { None };
            // A directory that was here before is another now, or none.
            if inner.is_none_or(|inner| self.watch_dir(&inner, &path)) {
                move_below(&path, &mut self.fresh, &mut self.old);
                self.visit_below(&dir, &entry, &path, &whole, levels)?;
            }
        }
        let gone: Vec<PathBuf> = self.old.keys().cloned().collect();
        for path in gone {
            move_below(&path, &mut self.fresh, &mut self.old);
        }
        self.forget_rest();
        Ok(())
    }

    /// The entries of a directory, which is open until the second result is dropped. One that goes away meanwhile has none;
    /// one that may not be listed has what it had.
    fn list(&mut self, dir: &Dir, path: &Path) -> (Vec<DirEntry>, Option<OpenedUp>) {
        let (mut listed, mut opened) = (dir.entries(), None);
        if listed.is_err() {
            opened = dir.open_up();
            listed = dir.entries();
        }
        if listed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            move_below(path, &mut self.old, &mut self.fresh);
        }
        let entries = listed.unwrap_or_default();
        if is_git_dir(&entries) {
            self.found.repositories.insert(path.to_path_buf());
        }
        (entries, opened)
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
            self.found.changes.push(PathChange::new(&path, before, state.clone()));
        }
        let stamp = (stamp.changed < self.now - TICK).then_some(stamp);
        self.fresh.insert(path, SeenPath { stamp, state });
        Ok(())
    }

    /// Notes that every path which the walk did not come by is gone.
    fn forget_rest(&mut self) {
        let gone = std::mem::take(&mut self.old).into_iter();
        self.found
            .changes
            .extend(gone.map(|(path, known)| PathChange::new(&path, known.state, PathState::Absent)));
    }
}

/// Moves everything below a path.
fn move_below(path: &Path, from: &mut SeenPaths, to: &mut SeenPaths) {
    let below = from.range::<Path, _>((Bound::Excluded(path), Bound::Unbounded)).map(|(below, _)| below);
    let below: Vec<PathBuf> = below.take_while(|below| below.starts_with(path)).cloned().collect();
    to.extend(below.into_iter().filter_map(|below| from.remove_entry(&below)));
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    /// One change of a workspace.
    #[derive(Debug, Clone)]
    enum Act {
        Write(String, u8),
        Remove(String),
        Rename(String, String),
        Replace(String),
        Link(String),
        Ignore(String),
        Look,
    }

    fn act() -> impl Strategy<Value = Act> {
        let path = || prop::collection::vec("[abc]", 1..4).prop_map(|parts| parts.join("/"));
        prop_oneof![
            4 => (path(), any::<u8>()).prop_map(|(path, byte)| Act::Write(path, byte)),
            2 => path().prop_map(Act::Remove),
            2 => (path(), path()).prop_map(|(from, to)| Act::Rename(from, to)),
            1 => path().prop_map(Act::Replace),
            1 => path().prop_map(Act::Link),
            1 => path().prop_map(Act::Ignore),
            3 => Just(Act::Look),
        ]
    }

    /// Does it, as far as it can be done.
    fn carry_out(root: &Path, act: &Act) {
        let make = |path: &str| {
            let path = root.join(path);
            let _ = fs::create_dir_all(path.parent().expect("below the root"));
            path
        };
        let _ = match act {
            Act::Write(path, byte) => fs::write(make(path), [*byte]),
            Act::Remove(path) => fs::remove_dir_all(root.join(path)).or_else(|_| fs::remove_file(root.join(path))),
            Act::Rename(from, to) => fs::rename(root.join(from), make(to)),
            Act::Replace(path) => fs::remove_dir_all(root.join(path))
                .and_then(|()| fs::create_dir(root.join(path)))
                .and_then(|()| fs::write(root.join(path).join("fresh"), "x")),
            Act::Link(path) => std::os::unix::fs::symlink("target", make(path)),
            Act::Ignore(path) => fs::write(make(path).with_file_name(".gitignore"), "b\n"),
            Act::Look => Ok(()),
        };
    }

    fn states(seen: &SeenPaths) -> BTreeMap<&Path, &PathState> {
        seen.iter().map(|(path, seen)| (path.as_path(), &seen.state)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn a_look_at_what_changed_sees_what_a_look_at_everything_sees(acts in prop::collection::vec(act(), 1..40)) {
            let place = tempfile::tempdir().expect("a directory can be made");
            let root = crate::files::canonicalize(place.path()).expect("it exists").join("w");
            fs::create_dir(&root).expect("made");
            let mut store = ContentStore::open(&place.path().join("files")).expect("nothing there yet");
            let mut view = WorkspaceView::new(&root, SeenPaths::new());
            let mut all = WorkspaceView::new(&root, SeenPaths::new());
            let mut told: BTreeMap<PathBuf, PathState> = BTreeMap::new();
            for act in acts.iter().chain([&Act::Look]) {
                carry_out(&root, act);
                if let Act::Look = act {
                    for change in view.look(&mut store).expect("readable") {
                        let path = change.to_path().into_owned();
                        let before = told.remove(&path).unwrap_or(PathState::Absent);
                        prop_assert_eq!(&before, &change.before, "{}", path.display());
                        if change.after != PathState::Absent {
                            told.insert(path, change.after);
                        }
                    }
                    // Without a watch it goes through all.
                    all.watch = None;
                    all.look(&mut store).expect("readable");
                    prop_assert_eq!(states(&view.seen), states(&all.seen));
                    let told: BTreeMap<&Path, &PathState> =
                        told.iter().map(|(path, state)| (path.as_path(), state)).collect();
                    prop_assert_eq!(states(&view.seen), told, "every change was told");
                }
            }
        }
    }
}
