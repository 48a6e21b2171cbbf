//! Tells in which directories something changed, so that a look need not go through all: inotify, on Linux. Elsewhere,
//! and where the system watches no more directories, every look goes through all.

use std::collections::{BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::files::disk::Dir;

/// What changes an entry of a directory. A file that is written through memory is told of when it is closed.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR);

/// Watches directories of the workspace.
#[derive(Debug)]
pub(super) struct DirWatch {
    queue: OwnedFd,
    /// The directories, by the numbers of their watches.
    dirs: HashMap<i32, PathBuf>,
}

impl DirWatch {
    /// `None` where the system has no such watch.
    pub fn new() -> Option<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self { queue, dirs: HashMap::new() })
    }

    /// Watches a directory, whose path in the workspace is `path`. Returns true if it was not watched yet, `None` if it
    /// cannot be watched.
    pub fn add(&mut self, dir: &Dir, path: &Path) -> Option<bool> {
        let handle = format!("/proc/self/fd/{}", dir.handle().as_raw_fd());
        let watch = inotify::add_watch(&self.queue, handle, CHANGES).ok()?;
        Some(self.dirs.insert(watch, path.to_path_buf()).is_none())
    }

    /// The directories in which something changed since the last call; `None` if that is not known for sure.
    pub fn take_changed(&mut self) -> Option<BTreeSet<PathBuf>> {
        let mut changed = BTreeSet::new();
        let mut room = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = Reader::new(&self.queue, &mut room);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Some(changed),
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            let (flags, watch) = (event.events(), event.wd());
            let is_moved_dir =
                flags.contains(ReadFlags::ISDIR) && flags.intersects(ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO);
            if is_moved_dir || flags.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                return None;
            }
            if flags.contains(ReadFlags::IGNORED) {
                self.dirs.remove(&watch);
            } else if let Some(dir) = self.dirs.get(&watch)
                && !changed.contains(dir)
            {
                changed.insert(dir.clone());
            }
        }
    }
}
