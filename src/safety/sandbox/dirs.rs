//! Detects by its times alone that a directory has the same entries as before, or a file the same content.

use std::fs;
use std::path::Path;

/// The state of a directory's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirState {
    /// Nothing at all.
    Nothing,
    /// Not a directory: a file, or a link that does not lead to one.
    Other,
    /// A directory, unchanged as long as later checks find the same stamp; without one if it has just changed.
    Dir(Option<EntryStamp>),
}

/// What changes with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryStamp {
    pub mode: u32,
    /// Device, inode and size.
    identity: [u64; 3],
    /// The times of the last change of content and attributes, in nanoseconds.
    changed: [i128; 2],
}

/// Device and inode.
pub(super) type EntryIdentity = (u64, u64);

impl DirState {
    /// Checks a path. Taken before the entries are read, it reveals every later change of them.
    pub fn check(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(entry) if entry.is_dir() => Self::Dir(read_settled(&entry)),
            Err(_) if fs::symlink_metadata(path).is_err() => Self::Nothing,
            _ => Self::Other,
        }
    }

    /// True if it is a directory in which no entry was added, removed or replaced since then.
    pub fn is_as(self, then: Self) -> bool {
        matches!(self, Self::Dir(Some(_))) && self == then
    }
}

/// The stamp of a directory, if it has not just changed.
fn read_settled(entry: &fs::Metadata) -> Option<EntryStamp> {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    /// The clocks of file systems tick: what changed within this time may change again and show the same time.
    const TICK: Duration = Duration::from_millis(100);
    let settled = SystemTime::now().checked_sub(TICK)?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    let settled = i128::try_from(settled).ok()?;
    Some(read_stamp(entry)).filter(|stamp| cfg!(unix) && stamp.changed.iter().all(|time| *time < settled))
}

#[cfg(unix)]
pub(super) fn read_identity(entry: &fs::Metadata) -> EntryIdentity {
    use std::os::unix::fs::MetadataExt;
    (entry.dev(), entry.ino())
}

/// The same for all, as these systems do not say.
#[cfg(not(unix))]
pub(super) fn read_identity(_: &fs::Metadata) -> EntryIdentity {
    (0, 0)
}

#[cfg(unix)]
pub(super) fn read_stamp(entry: &fs::Metadata) -> EntryStamp {
    use std::os::unix::fs::MetadataExt;
    let time = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    EntryStamp {
        mode: entry.mode() & 0o7777,
        identity: [entry.dev(), entry.ino(), entry.size()],
        changed: [time(entry.mtime(), entry.mtime_nsec()), time(entry.ctime(), entry.ctime_nsec())],
    }
}

#[cfg(not(unix))]
pub(super) fn read_stamp(entry: &fs::Metadata) -> EntryStamp {
    EntryStamp { mode: 0, identity: [0, 0, entry.len()], changed: [0; 2] }
}
