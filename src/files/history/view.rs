//! The workspace as a session follows it from look to look.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::files::disk::{DirEntryKind, open_through};

use super::content::ContentStore;
use super::excluded::{AppearedPaths, ExcludedEntries};
#[cfg(not(target_os = "linux"))]
use super::no_watch::DirWatch;
use super::readers::{UnreadFile, read_file};
use super::scan::{ScanError, ScanFindings, SeenPaths, TICK, expect_room, read_other, scan};
use super::state::{PathChange, PathState};
#[cfg(target_os = "linux")]
use super::watch::DirWatch;

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
    pub fn look(&mut self, store: &ContentStore) -> Result<Vec<PathChange>, ScanError> {
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

    fn look_at_kept(&mut self, store: &ContentStore, now: i64) -> Result<ScanFindings, ScanError> {
        let changed = self.watch.as_mut().and_then(DirWatch::take_changed);
        if changed.as_ref().is_some_and(BTreeSet::is_empty) {
            return Ok(ScanFindings::default());
        }
        let seen = std::mem::take(&mut self.seen);
        let (seen, watch, found) = scan(&self.root, store, seen, self.watch.take(), changed, now)?;
        (self.seen, self.watch) = (seen, watch);
        Ok(found)
    }
}

/// What is at an absolute path now. Its content is kept.
///
/// # Errors
/// The store fails.
pub(super) fn look_at(path: &Path, store: &ContentStore) -> io::Result<PathState> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(PathState::Absent) };
    let Some((dir, _opened)) = expect_room(open_through(parent))? else { return Ok(PathState::Absent) };
    let Some((facts, stamp)) = expect_room(dir.examine(name))? else { return Ok(PathState::Absent) };
    let state = match facts.kind {
        DirEntryKind::File => {
            let found = UnreadFile {
                name: name.to_owned(),
                path: path.to_path_buf(),
                mode: facts.mode,
                stamp,
                before: PathState::Absent,
            };
            read_file(&dir, &found, store)?
        }
        kind => read_other(&dir, name, kind, facts.mode),
    };
    store.flush()?;
    Ok(state)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
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
            let store = ContentStore::open(&place.path().join("files")).expect("nothing there yet");
            let mut view = WorkspaceView::new(&root, SeenPaths::new());
            let mut all = WorkspaceView::new(&root, SeenPaths::new());
            let mut told: BTreeMap<PathBuf, PathState> = BTreeMap::new();
            for act in acts.iter().chain([&Act::Look]) {
                carry_out(&root, act);
                if let Act::Look = act {
                    for change in view.look(&store).expect("readable") {
                        let path = change.to_path().into_owned();
                        let before = told.remove(&path).unwrap_or(PathState::Absent);
                        prop_assert_eq!(&before, &change.before, "{}", path.display());
                        if change.after != PathState::Absent {
                            told.insert(path, change.after);
                        }
                    }
                    // Without a watch it goes through all.
                    all.watch = None;
                    all.look(&store).expect("readable");
                    prop_assert_eq!(states(&view.seen), states(&all.seen));
                    let told: BTreeMap<&Path, &PathState> =
                        told.iter().map(|(path, state)| (path.as_path(), state)).collect();
                    prop_assert_eq!(states(&view.seen), told, "every change was told");
                }
            }
        }
    }
}
