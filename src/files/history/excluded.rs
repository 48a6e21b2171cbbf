//! Follows what ignore files leave out of a workspace. Undo keeps nothing of it, but what can be run there is to be known:
//! `git status` does not show it either. Without a watch nothing is followed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::files::disk::{Dir, DirEntry, DirEntryKind};

#[cfg(not(target_os = "linux"))]
use super::no_watch::DirWatch;
#[cfg(target_os = "linux")]
use super::watch::DirWatch;

/// The most directories that are followed in one that is left out: those nearest to its top.
const MOST_DIRS: usize = 2_000;
/// The most in all of them: the first call waits until they are watched, and the system holds each in memory.
const MOST_IN_ALL: usize = 5_000;

/// What appeared where undo keeps nothing, relative to the workspace.
#[derive(Debug, Clone, Default)]
pub struct AppearedPaths {
    /// New `.git` entries, and bare repositories.
    pub repositories: Vec<PathBuf>,
    /// Executable files that ignore files leave out, new or changed for the first time.
    pub executables: Vec<PathBuf>,
}

/// The entries that are left out, and what tells which of them changed.
#[derive(Default)]
pub(super) struct ExcludedEntries {
    /// The directories, and how many are watched in each.
    dirs: BTreeMap<PathBuf, usize>,
    watch: Option<DirWatch>,
    told: BTreeSet<PathBuf>,
}

impl ExcludedEntries {
    /// Looks where something changed, and at the left out entries that a look at the rest came by. What changed before
    /// `since`, in nanoseconds since 1970, is not new, and nothing is to the first look. Returns the executables; repositories go into `repositories`.
    pub fn look(
        &mut self,
        root: &Path,
        come_by: Vec<(PathBuf, DirEntryKind)>,
        since: Option<i64>,
        repositories: &mut BTreeSet<PathBuf>,
    ) -> Vec<PathBuf> {
        let mut executables = Vec::new();
        let mut queue = VecDeque::new();
        for (path, kind) in come_by {
            if kind == DirEntryKind::Dir {
                self.dirs.entry(path.clone()).or_default();
                queue.push_back(path);
            } else if let (Some(above), Some(name)) = (path.parent(), path.file_name())
                && Dir::open(&root.join(above)).is_ok_and(|dir| is_new_executable(&dir, name, since))
            {
                executables.push(path);
            }
        }
        let changed = self.watch.as_mut().and_then(DirWatch::take_changed).unwrap_or_else(|| {
            self.watch = DirWatch::new();
            queue = self.dirs.keys().cloned().collect();
            self.dirs.values_mut().for_each(|watched| *watched = 0);
            BTreeSet::new()
        });
        let Some(watch) = &mut self.watch else { return Vec::new() };
        queue.extend(changed.iter().cloned());
        let mut left = MOST_IN_ALL.saturating_sub(self.dirs.values().sum());
        while let Some(path) = queue.pop_front() {
            let top = path.ancestors().find(|above| self.dirs.contains_key(*above));
            let watched = self.dirs.entry(top.unwrap_or(&path).to_path_buf()).or_default();
            let is_known = changed.contains(&path);
            if !is_known && (*watched >= MOST_DIRS || left == 0) {
                continue;
            }
            let Ok(dir) = Dir::open(&root.join(&path)) else { continue };
            if !is_known {
                if watch.add(&dir, &path) != Some(true) {
                    continue;
                }
                *watched += 1;
                left -= 1;
            }
            let entries = dir.entries().unwrap_or_default();
            if is_git_dir(&entries) {
                repositories.insert(path.clone());
            }
            for entry in entries {
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
        // Hooks of a repository are judged, which says more.
        let is_hook = |path: &Path| {
            let (dir, top) = (path.parent(), path.ancestors().nth(2));
            dir.is_some_and(|dir| dir.ends_with("hooks")) && top.is_some_and(|top| repositories.contains(top))
        };
        executables.retain(|path| !is_hook(path) && self.told.insert(path.clone()));
        executables.sort();
        executables
    }
}

/// True if git takes a directory with these entries for a repository, whatever it is called.
pub(super) fn is_git_dir(entries: &[DirEntry]) -> bool {
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

fn is_new_executable(dir: &Dir, name: &OsStr, since: Option<i64>) -> bool {
    let changed = since.and_then(|since| dir.examine(name).ok().filter(|(_, stamp)| stamp.changed >= since));
    changed.is_some_and(|(facts, _)| facts.kind == DirEntryKind::File && facts.mode & 0o111 != 0)
}
