//! Puts paths back to how they were: first a plan that a person can read, then the work.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::diff::LineCounts;
use crate::files::disk::{Dir, open_through, split_path};
use crate::files::file_name;

use super::Restored;
use super::content::ContentStore;
use super::state::{PathChange, PathState, SharedFile};
use super::view::look_at;

/// The permission bit without which a file is not replaced.
const WRITABLE_BY_OWNER: u32 = 0o200;

/// What putting back would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestorePlan {
    /// The changes to make, by path: `before` is what is there now.
    pub changes: Vec<PathChange>,
    /// The lines that each of them adds and removes; `None` for what is no text.
    pub lines: Vec<Option<LineCounts>>,
    /// Paths that changed since, which only force overwrites; a copy is kept.
    pub changed_since: Vec<String>,
    /// Paths that a call changed that was killed, or a person after it; only force puts them back.
    pub unsure: Vec<String>,
    /// Paths whose former content was not kept.
    pub lost: Vec<String>,
    /// A sentence for each gap in what is known of the changes.
    pub gaps: Vec<String>,
}

impl RestorePlan {
    /// Leaves out the other changes.
    pub fn retain_changes(&mut self, is_kept: impl Fn(&PathChange) -> bool) {
        let kept = self.changes.drain(..).zip(self.lines.drain(..)).filter(|(change, _)| is_kept(change));
        (self.changes, self.lines) = kept.collect();
    }
}

/// Plans to reverse changes, given oldest first.
///
/// # Errors
/// The store fails.
pub(super) fn plan_reversal<'a>(
    root: &Path,
    changes: impl IntoIterator<Item = &'a PathChange>,
    store: &ContentStore,
) -> io::Result<RestorePlan> {
    let mut paths: BTreeMap<&str, (PathState, PathState, bool)> = BTreeMap::new();
    for change in changes {
        let place = paths.entry(&change.path);
        let (_, last, is_broken) = place.or_insert_with(|| (change.before.clone(), change.before.clone(), false));
        *is_broken |= *last != change.before;
        *last = change.after.clone();
    }
    let mut plan = RestorePlan::default();
    for (path, (first, last, is_broken)) in paths {
        let now = look_at(&root.join(file_name::unquote(path)), store)?;
        let is_left_out = first == PathState::Special || now == PathState::Special && first == PathState::Absent;
        if now == first || is_left_out {
            continue;
        }
        let is_there = match &first {
            // It is read, as what is damaged must be known before anything is removed.
            PathState::File { sha256, .. } => store.get(sha256).is_ok(),
            state => state.is_kept(),
        };
        if !is_there {
            plan.lost.push(path.to_owned());
            continue;
        }
        // One that was stopped may have removed what has to go first.
        let is_removed = now == PathState::Absent && has_to_go(&last, &first);
        if now != last && !is_removed || is_broken {
            plan.changed_since.push(path.to_owned());
        }
        plan.lines.push(count_lines(&now, &first, store));
        plan.changes.push(PathChange { path: path.to_owned(), before: now, after: first });
    }
    Ok(plan)
}

/// Changes, and those that were made after them, path by path.
pub(super) fn join_changes(first: Vec<PathChange>, then: &[PathChange]) -> Vec<PathChange> {
    let mut joined: BTreeMap<String, PathChange> =
        first.into_iter().map(|change| (change.path.clone(), change)).collect();
    for change in then {
        let known = joined.entry(change.path.clone()).or_insert_with(|| change.clone());
        known.after.clone_from(&change.after);
    }
    joined.into_values().collect()
}

/// True if what is there has to go before the other can come.
fn has_to_go(before: &PathState, after: &PathState) -> bool {
    let is_same_kind = before.is_file() && after.is_file() || before.is_dir() && after.is_dir();
    *before != PathState::Absent && !is_same_kind
}

/// Makes the changes of a plan.
pub(super) fn apply_changes(root: &Path, changes: &[PathChange], store: &ContentStore) -> Restored {
    let mut restored = Restored::default();
    let mut sorted: Vec<(PathBuf, &PathChange)> =
        changes.iter().map(|change| (change.to_path().into_owned(), change)).collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    // What is in a directory goes before it, and comes after it.
    let mut gone = BTreeMap::new();
    for (path, change) in sorted.iter().rev().filter(|(_, change)| has_to_go(&change.before, &change.after)) {
        let removed = at_parent(&root.join(path), |dir, name| {
            if change.before.is_dir() { dir.remove_dir(name) } else { dir.remove(name) }
        });
        gone.insert(path, removed);
    }
    for (path, change) in &sorted {
        let done = match gone.remove(path) {
            Some(Err(error)) => Err(error),
            _ => make_state(&root.join(path), change, store),
        };
        match done {
            Ok(()) => restored.made.push((*change).clone()),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                // Where nothing has to come in its place, everything else can be as it was.
                let told =
                    if change.after == PathState::Absent { &mut restored.left } else { &mut restored.failed };
                told.push(format!(
                    "{}: it holds a repository, ignored files or a FIFO, which undo leaves alone",
                    change.path
                ));
            }
            Err(error) => restored.failed.push(format!("{}: {error}", change.path)),
        }
    }
    restored
}

/// Makes what a change leaves at a path, where nothing is that is in the way.
fn make_state(path: &Path, change: &PathChange, store: &ContentStore) -> io::Result<()> {
    match &change.after {
        PathState::Absent | PathState::Unkept { .. } | PathState::Special => Ok(()),
        PathState::Dir { mode } => at_parent(path, |dir, name| {
            if !change.before.is_dir() {
                dir.create_dir(name)?;
            }
            dir.set_mode(name, *mode)
        }),
        PathState::Link { target } => {
            at_parent(path, |dir, name| dir.make_link(name, &file_name::unquote(target)))
        }
        PathState::File { mode, sha256, shared, .. } => {
            let content = store.get(sha256)?;
            at_parent(path, |dir, name| {
                if change.before.is_file() {
                    return write_content(dir, name, &content, *mode, shared);
                }
                if dir.facts(name).is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                // A program that sets the user's identity for whoever runs it is not made again as one.
                dir.replace(name, &content, Some(mode & 0o777))
            })
        }
    }
}

/// Writes a new file over the name, unless it is still the file that had its other names before.
fn write_content(dir: &Dir, name: &OsStr, content: &[u8], mode: u32, shared: &SharedFile) -> io::Result<()> {
    let (facts, stamp) = dir.examine(name)?;
    if !shared.has_stamp(&stamp) {
        return dir.replace(name, content, Some(mode));
    }
    if facts.mode & WRITABLE_BY_OWNER == 0 {
        dir.set_mode(name, facts.mode | WRITABLE_BY_OWNER)?;
    }
    let former = dir.file(name)?.read(u64::MAX)?;
    // Half of it may be there.
    let put_former =
        |_: &io::Error| drop(dir.overwrite(name, &former).and_then(|()| dir.set_mode(name, facts.mode)));
    dir.overwrite(name, content).inspect_err(put_former)?;
    dir.set_mode(name, mode)
}

fn at_parent(path: &Path, work: impl FnOnce(&Dir, &OsStr) -> io::Result<()>) -> io::Result<()> {
    let (parent, name) = split_path(path)?.ok_or(io::ErrorKind::InvalidInput)?;
    let (dir, _opened) = open_through(parent)?;
    work(&dir, name)
}

/// The lines that a change adds and removes, if both sides are text of moderate length.
fn count_lines(before: &PathState, after: &PathState, store: &ContentStore) -> Option<LineCounts> {
    const LONGEST: u64 = 1 << 20;
    let read = |state: &PathState| match state {
        PathState::Absent => Some(String::new()),
        PathState::File { sha256, len, .. } if *len <= LONGEST => {
            store.get(sha256).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        }
        _ => None,
    };
    Some(LineCounts::count_changes(&read(before)?, &read(after)?))
}
