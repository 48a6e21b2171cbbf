//! Follows what ignore files leave out of a workspace. Undo keeps nothing of it, but what can be run there is to be known:
//! `git status` does not show it either. Without a watch nothing is followed.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::files::disk::{Dir, DirEntryKind};

#[cfg(not(target_os = "linux"))]
use super::no_watch::DirWatch;
#[cfg(target_os = "linux")]
use super::watch::DirWatch;

/// The most directories that are followed: those nearest to the top.
const MOST_DIRS: usize = 5_000;

/// What appeared where undo keeps nothing, relative to the workspace.
#[derive(Debug, Clone, Default)]
pub struct AppearedPaths {
    /// New `.git` entries.
    pub repositories: Vec<PathBuf>,
    /// Executable files that ignore files leave out, new or changed for the first time.
    pub executables: Vec<PathBuf>,
}

/// The entries that are left out, and what tells which of them changed.
#[derive(Default)]
pub(super) struct ExcludedEntries {
    dirs: BTreeSet<PathBuf>,
    watch: Option<DirWatch>,
    told: BTreeSet<PathBuf>,
}

impl ExcludedEntries {
    /// Looks where something changed, and at the left out entries that a look at the rest came by. What changed before
    /// `since`, in nanoseconds since 1970, is not new. Returns the executables; `.git` entries go into `repositories`.
    pub fn look(
        &mut self,
        root: &Path,
        come_by: Vec<(PathBuf, DirEntryKind)>,
        since: i64,
        repositories: &mut BTreeSet<PathBuf>,
    ) -> Vec<PathBuf> {
        let mut executables = Vec::new();
        let mut queue = VecDeque::new();
        for (path, kind) in come_by {
            if kind == DirEntryKind::Dir {
                self.dirs.insert(path.clone());
                queue.push_back(path);
            } else if let (Some(above), Some(name)) = (path.parent(), path.file_name())
                && Dir::open(&root.join(above)).is_ok_and(|dir| is_new_executable(&dir, name, since))
            {
                executables.push(path);
            }
        }
        let changed = self.watch.as_mut().and_then(DirWatch::take_changed).unwrap_or_else(|| {
            self.watch = DirWatch::new();
            queue = self.dirs.iter().cloned().collect();
            BTreeSet::new()
        });
        let Some(watch) = &mut self.watch else { return Vec::new() };
        queue.extend(changed.iter().cloned());
        while let Some(path) = queue.pop_front() {
            let Ok(dir) = Dir::open(&root.join(&path)) else { continue };
            let mut is_new = || watch.len() < MOST_DIRS && watch.add(&dir, &path) == Some(true);
            if !changed.contains(&path) && !is_new() {
                continue;
            }
            for entry in dir.entries().unwrap_or_default() {
                let path = path.join(&entry.name);
                if entry.name == ".git" {
                    repositories.insert(path);
                } else if entry.kind == DirEntryKind::Dir {
                    queue.push_back(path);
                } else if is_new_executable(&dir, &entry.name, since) {
                    executables.push(path);
                }
            }
        }
        executables.retain(|path| self.told.insert(path.clone()));
        executables.sort();
        executables
    }
}

fn is_new_executable(dir: &Dir, name: &OsStr, since: i64) -> bool {
    dir.examine(name).is_ok_and(|(facts, stamp)| {
        facts.kind == DirEntryKind::File && facts.mode & 0o111 != 0 && stamp.changed >= since
    })
}
