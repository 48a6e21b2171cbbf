//! Whether a directory holds the same entries as before, told by its times alone.

use std::fs;
use std::path::Path;

/// What stands at the path of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing at all.
    Nothing,
    /// No directory: a file, or a link that leads to none.
    Other,
    /// A directory, as it is in all later looks that find the same stamp; without one where it changed just now.
    Dir(Option<Stamp>),
}

/// Device and inode, and the times of the last change of entries and attributes, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    identity: (u64, u64),
    changed: (i128, i128),
}

impl Seen {
    /// Looks at a path. Taken before the entries are looked at, it tells of every later change of them.
    pub fn at(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(entry) if entry.is_dir() => Self::Dir(stamp(&entry)),
            Err(_) if fs::symlink_metadata(path).is_err() => Self::Nothing,
            _ => Self::Other,
        }
    }

    /// True if it is a directory in which no entry has come, gone or been replaced since then.
    pub fn is_as(self, then: Self) -> bool {
        matches!(self, Self::Dir(Some(_))) && self == then
    }
}

#[cfg(unix)]
fn stamp(entry: &fs::Metadata) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    /// The clocks of file systems tick: what changed within this time may change again and show the same time.
    const TICK: Duration = Duration::from_millis(100);
    let time = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let changed = (time(entry.mtime(), entry.mtime_nsec()), time(entry.ctime(), entry.ctime_nsec()));
    let settled = SystemTime::now().checked_sub(TICK)?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    let is_settled = changed.0.max(changed.1) < i128::try_from(settled).ok()?;
    is_settled.then_some(Stamp { identity: (entry.dev(), entry.ino()), changed })
}

#[cfg(not(unix))]
fn stamp(_: &fs::Metadata) -> Option<Stamp> {
    None
}
