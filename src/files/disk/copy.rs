//! Copies trees from handle to handle: links as links, with the modes and times of files.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::{Dir, DirEntryKind, FileFacts, MOST_LEVELS};

/// Decides about the entries of a tree that is copied. Paths begin with the name of the tree.
pub trait CopyWatch {
    /// True if an entry is to be copied.
    ///
    /// # Errors
    /// Ends the copying.
    fn admit(&mut self, path: &Path, facts: &FileFacts) -> io::Result<bool>;

    /// Hears that an entry could not be read.
    ///
    /// # Errors
    /// Ends the copying.
    fn miss(&mut self, path: &Path, error: io::Error) -> io::Result<()>;
}

/// Copies everything, or fails.
pub(super) struct WholeCopy;

impl CopyWatch for WholeCopy {
    fn admit(&mut self, _: &Path, _: &FileFacts) -> io::Result<bool> {
        Ok(true)
    }

    fn miss(&mut self, _: &Path, error: io::Error) -> io::Result<()> {
        Err(error)
    }
}

/// Copies an entry to a name at which nothing is. What is neither file, link nor directory is left out.
///
/// # Errors
/// It cannot be written, or `watch` ends it.
pub fn copy_tree(from: &Dir, name: &OsStr, to: &Dir, new: &OsStr, watch: &mut dyn CopyWatch) -> io::Result<()> {
    copy_entry(from, name, to, new, Path::new(name), MOST_LEVELS, watch)
}

fn copy_entry(
    from: &Dir,
    name: &OsStr,
    to: &Dir,
    new: &OsStr,
    path: &Path,
    levels: usize,
    watch: &mut dyn CopyWatch,
) -> io::Result<()> {
    let facts = match from.facts(name) {
        Ok(facts) => facts,
        Err(error) => return watch.miss(path, error),
    };
    if !watch.admit(path, &facts)? {
        return Ok(());
    }
    match facts.kind {
        DirEntryKind::File => {
            let mut opened = match from.file(name) {
                Ok(opened) => opened,
                Err(error) => return watch.miss(path, error),
            };
            let mut made = to.create_file(new, facts.mode)?;
            io::copy(&mut opened.file, &mut made)?;
            // Builds compare times.
            opened.file.metadata()?.modified().and_then(|time| made.set_modified(time))
        }
        DirEntryKind::Link => to.make_link(new, &from.link(name)?),
        DirEntryKind::Dir => {
            let levels = levels.checked_sub(1).ok_or_else(|| io::Error::other("the directories are too deep"))?;
            let (inner, made) = (from.dir(name)?, to.create_dir(new)?);
            match inner.entries() {
                Ok(entries) => entries.iter().try_for_each(|entry| {
                    let below = path.join(&entry.name);
                    copy_entry(&inner, &entry.name, &made, &entry.name, &below, levels, watch)
                })?,
                Err(error) => watch.miss(path, error)?,
            }
            to.set_mode(new, facts.mode)
        }
        _ => Ok(()),
    }
}

/// The bytes of the files of a tree, or a number above `most`.
pub fn measure_tree(dir: &Dir, name: &OsStr, most: u64) -> u64 {
    measure_entry(dir, name, most, MOST_LEVELS)
}

fn measure_entry(dir: &Dir, name: &OsStr, most: u64, levels: usize) -> u64 {
    let Ok(facts) = dir.facts(name) else { return 0 };
    let inner = (facts.kind == DirEntryKind::Dir && levels > 0).then(|| dir.dir(name).ok()).flatten();
    let Some(inner) = inner else { return facts.len };
    let mut bytes = facts.len;
    for entry in inner.entries().unwrap_or_default() {
        if bytes > most {
            break;
        }
        bytes += measure_entry(&inner, &entry.name, most - bytes.min(most), levels - 1);
    }
    bytes
}
