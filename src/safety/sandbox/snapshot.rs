//! The contents of protected files where nothing mounts over them: they are compared before and after a command, and
//! what it changed is put back. Landlock cannot exclude a file from a workspace that it grants.
//!
//! Changes by processes that outlive the command in their own session are noticed only with the next command.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::disk::{self, Dir, DirEntryKind};

use super::dirs::{DirState, EntryStamp, read_stamp};
use super::git_config::differ_harmlessly;
use super::places::{Places, is_sample};

const MOST_ENTRIES: usize = 1000;
const MOST_DEPTH: usize = 4;
/// Larger files are compared by their attributes, and cannot be put back.
pub(super) const MOST_FILE_BYTES: u64 = 1 << 20;
const MOST_BYTES: u64 = 16 << 20;

/// Files and links by their paths from the root. Directories have no entries.
#[derive(Default)]
pub(super) struct Snapshot {
    entries: BTreeMap<PathBuf, GuardedEntry>,
    /// The directories that contain them, or would.
    dirs: BTreeMap<PathBuf, DirState>,
    /// False if there was more than the limits allow to examine.
    whole: bool,
    /// The repositories that exist.
    repositories: Vec<PathBuf>,
    bytes: u64,
}

#[derive(Debug, Clone)]
pub(super) enum GuardedEntry {
    File {
        stamp: EntryStamp,
        content: Option<Arc<[u8]>>,
    },
    Link(PathBuf),
    /// A socket, a FIFO, a device.
    Other,
}

impl PartialEq for GuardedEntry {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { stamp: a, content: Some(x) }, Self::File { stamp: b, content: Some(y) }) => {
                a.mode == b.mode && x == y
            }
            (Self::File { stamp: a, .. }, Self::File { stamp: b, .. }) => a == b,
            (Self::Link(a), Self::Link(b)) => a == b,
            (Self::Other, Self::Other) => true,
            _ => false,
        }
    }
}

impl Snapshot {
    /// `known` avoids checking for files that are absent from an unchanged directory, and reading unchanged files.
    pub fn take(root: &Path, places: &Places, known: Option<&Self>) -> Self {
        let repositories = places.repositories.iter().filter(|dir| root.join(dir).is_dir()).cloned().collect();
        let mut snapshot = Self { whole: true, repositories, ..Self::default() };
        for path in &places.files {
            snapshot.look(root, path, known);
        }
        for dir in &places.dirs {
            // A link in place of the directory, or of one above it, counts as a change.
            for dir in dir.ancestors().filter(|dir| !dir.as_os_str().is_empty()) {
                snapshot.look(root, dir, known);
            }
            snapshot.walk(root, dir, known, MOST_DEPTH);
        }
        snapshot
    }

    /// The state of a directory, and true if no entry was added or removed since the known snapshot.
    fn check_dir(&mut self, root: &Path, dir: &Path, known: Option<&Self>) -> (DirState, bool) {
        let then = known.filter(|known| known.whole).and_then(|known| known.dirs.get(dir)).copied();
        if let Some(seen) = self.dirs.get(dir) {
            return (*seen, then.is_some_and(|then| seen.is_as(then)));
        }
        let above = dir.parent().map(|above| self.check_dir(root, above, known));
        let seen = match (above, then) {
            (Some((DirState::Nothing, _)), _) | (Some((_, true)), Some(DirState::Nothing)) => DirState::Nothing,
            _ => DirState::check(&root.join(dir)),
        };
        self.dirs.insert(dir.to_path_buf(), seen);
        (seen, then.is_some_and(|then| seen.is_as(then)))
    }

    fn walk(&mut self, root: &Path, dir: &Path, known: Option<&Self>, depth: usize) {
        let (seen, is_as_known) = self.check_dir(root, dir, known);
        if seen == DirState::Nothing {
            return;
        }
        if let Some(known) = known.filter(|_| is_as_known) {
            let below = |path: &&PathBuf| path.parent() == Some(dir);
            // A link to a directory is an entry, and not walked.
            let dirs = known.dirs.keys().filter(below).filter(|path| !known.entries.contains_key(*path));
            dirs.for_each(|path| self.walk(root, path, Some(known), depth.saturating_sub(1)));
            known.entries.keys().filter(below).for_each(|path| self.look(root, path, Some(known)));
            return;
        }
        let mut entries = Dir::open(&root.join(dir)).and_then(|dir| dir.entries()).unwrap_or_default();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        for entry in entries {
            let path = dir.join(&entry.name);
            if entry.kind == DirEntryKind::Dir {
                match depth.checked_sub(1) {
                    Some(depth) => self.walk(root, &path, known, depth),
                    None => self.whole = false,
                }
            } else if !is_sample(&path) {
                self.look(root, &path, known);
            }
        }
    }

    fn look(&mut self, root: &Path, path: &Path, known: Option<&Self>) {
        if self.entries.len() >= MOST_ENTRIES {
            self.whole = false;
            return;
        }
        let (seen, is_as_known) = self.check_dir(root, path.parent().unwrap_or(path), known);
        let was_absent = is_as_known && known.is_some_and(|known| !known.entries.contains_key(path));
        if seen == DirState::Nothing || was_absent {
            return;
        }
        let full = root.join(path);
        let Ok(metadata) = fs::symlink_metadata(&full) else { return };
        let entry = match metadata.file_type() {
            kind if kind.is_dir() => return,
            kind if kind.is_symlink() => GuardedEntry::Link(fs::read_link(&full).unwrap_or_default()),
            kind if kind.is_file() => {
                let stamp = read_stamp(&metadata);
                let content = match known.and_then(|known| known.entries.get(path)) {
                    Some(GuardedEntry::File { stamp: then, content }) if *then == stamp => content.clone(),
                    _ => self.read(&full),
                };
                GuardedEntry::File { stamp, content }
            }
            _ => GuardedEntry::Other,
        };
        self.entries.insert(path.to_path_buf(), entry);
    }

    /// The content of a file. A command may have put a link in its place meanwhile, which is not followed.
    fn read(&mut self, path: &Path) -> Option<Arc<[u8]>> {
        let mut opened = disk::open_file(path).ok()?;
        let size = opened.facts.len;
        if size > MOST_FILE_BYTES || self.bytes + size > MOST_BYTES {
            return None;
        }
        self.bytes += size;
        opened.read(MOST_FILE_BYTES).ok().map(Into::into)
    }

    /// The files to restore, or to remove if they are new. New ones come first, as one may be a link that blocks
    /// another.
    pub fn changes(&self, after: &Self, places: &Places, root: &Path) -> Vec<(PathBuf, Option<GuardedEntry>)> {
        // A repository that is gone can run nothing, nor can a pointer whose directory is gone.
        let lost = |path: &Path| {
            let in_lost = |dir: &&PathBuf| path.starts_with(dir) && !after.repositories.contains(dir);
            let is_orphan = places.pointers.iter().any(|pointer| pointer == path)
                && path.parent().is_some_and(|dir| !root.join(dir).exists());
            is_orphan || self.repositories.iter().any(|dir| in_lost(&dir))
        };
        let new = after.entries.iter().filter(|(path, entry)| {
            self.whole && !self.entries.contains_key(*path) && !self.is_harmless(path, None, Some(*entry))
        });
        let changed = self.entries.iter().filter(|(path, entry)| {
            let now = after.entries.get(*path);
            now != Some(*entry) && !lost(path) && !(now.is_some() && self.is_harmless(path, Some(*entry), now))
        });
        let changed = changed.map(|(path, entry)| (path.clone(), Some(entry.clone())));
        new.map(|(path, _)| (path.clone(), None)).chain(changed).collect()
    }

    /// True if a repository's configuration, changed or new, differs only in settings that run nothing.
    fn is_harmless(&self, path: &Path, before: Option<&GuardedEntry>, after: Option<&GuardedEntry>) -> bool {
        let text = |entry: Option<&GuardedEntry>| match entry {
            None => Some(String::new()),
            Some(GuardedEntry::File { content: Some(content), .. }) => String::from_utf8(content.to_vec()).ok(),
            Some(_) => None,
        };
        let mode = |entry: Option<&GuardedEntry>| match entry {
            Some(GuardedEntry::File { stamp, .. }) => Some(stamp.mode),
            _ => None,
        };
        let is_config = path.file_name().is_some_and(|name| name == "config");
        let is_of_repository = path.parent().is_some_and(|dir| self.repositories.iter().any(|known| known == dir));
        let is_made = before.is_none() && path == Path::new(".git/config") && self.repositories.is_empty();
        let is_kept = before.is_some() && is_of_repository && mode(before) == mode(after);
        let (Some(before), Some(after)) = (text(before), text(after)) else { return false };
        is_config && (is_made || is_kept) && differ_harmlessly(&before, &after)
    }
}

/// Restores an entry through handles, so a link that a command planted has no effect.
pub(super) fn put_back(root: &Path, path: &Path, entry: &GuardedEntry) -> io::Result<()> {
    let full = root.join(path);
    let Some((parent, name)) = disk::split_path(&full)? else { return Ok(()) };
    let dir = Dir::open(parent).or_else(|_| {
        clear_the_way(if path.is_absolute() { Path::new("/") } else { root }, parent)?;
        Dir::create(parent)
    })?;
    match entry {
        GuardedEntry::File { stamp, content: Some(content) } => dir.replace(name, content, Some(stamp.mode)),
        GuardedEntry::Link(target) => dir.make_link(name, target),
        GuardedEntry::File { content: None, .. } | GuardedEntry::Other => {
            Err(io::Error::from(io::ErrorKind::Unsupported))
        }
    }
}

/// Removes the first entry on the way to `dir` that is not a directory.
fn clear_the_way(from: &Path, dir: &Path) -> io::Result<()> {
    let mut way = from.to_path_buf();
    for part in dir.strip_prefix(from).unwrap_or(dir) {
        let here = Dir::open(&way)?;
        match here.facts(part) {
            Ok(facts) if facts.kind == DirEntryKind::Dir => way.push(part),
            Ok(_) => return here.remove(part),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}
