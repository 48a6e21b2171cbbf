//! Detects by its times alone that a directory has the same entries as before.

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
    Dir(Option<DirStamp>),
}

/// Device and inode, and the times of the last change of entries and attributes, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirStamp {
    identity: (u64, u64),
    changed: (i128, i128),
}

impl DirState {
    /// Checks a path. Taken before the entries are read, it reveals every later change of them.
    pub fn check(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(entry) if entry.is_dir() => Self::Dir(read_stamp(&entry)),
            Err(_) if fs::symlink_metadata(path).is_err() => Self::Nothing,
            _ => Self::Other,
        }
    }

    /// True if it is a directory in which no entry was added, removed or replaced since then.
    pub fn is_as(self, then: Self) -> bool {
        matches!(self, Self::Dir(Some(_))) && self == then
    }
}

#[cfg(unix)]
fn read_stamp(entry: &fs::Metadata) -> Option<DirStamp> {
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    /// The clocks of file systems tick: what changed within this time may change again and show the same time.
    const TICK: Duration = Duration::from_millis(100);
    let time = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let changed = (time(entry.mtime(), entry.mtime_nsec()), time(entry.ctime(), entry.ctime_nsec()));
    let settled = SystemTime::now().checked_sub(TICK)?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    let is_settled = changed.0.max(changed.1) < i128::try_from(settled).ok()?;
    is_settled.then_some(DirStamp { identity: (entry.dev(), entry.ino()), changed })
}

#[cfg(not(unix))]
fn read_stamp(_: &fs::Metadata) -> Option<DirStamp> {
    None
}
