//! Removes files and trees, without following a link.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::{Dir, DirEntryKind, MOST_LEVELS, split_path};

/// Removes a file, a link itself, or a directory with everything in it.
///
/// # Errors
/// Nothing is there, a link is on the way, or a part of it cannot be removed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let (parent, name) = split_path(path)?.ok_or(io::ErrorKind::IsADirectory)?;
    remove_entry(&Dir::open(parent)?, name, MOST_LEVELS)
}

pub(super) fn remove_entry(dir: &Dir, name: &OsStr, levels: usize) -> io::Result<()> {
    let facts = dir.facts(name)?;
    if facts.kind != DirEntryKind::Dir {
        return dir.remove(name);
    }
    let inner = dir.dir(name)?;
    let _opened = inner.open_up();
    let levels = levels.checked_sub(1).ok_or_else(|| io::Error::other("the directories are too deep"))?;
    inner.entries()?.iter().try_for_each(|entry| remove_entry(&inner, &entry.name, levels))?;
    dir.remove_dir(name)
}
