//! Keeps the mounts over files complete while a command runs: a person replaces a key or saves a protected file, and its
//! mount stays behind with the old one.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

use super::lids::Lids;

/// The changes of a directory that matter: entries that come, and the directory itself that goes.
const CHANGES: WatchFlags =
    WatchFlags::CREATE.union(WatchFlags::MOVED_TO).union(WatchFlags::DELETE_SELF).union(WatchFlags::MOVE_SELF);

/// The time in which further changes come along: directories in which much is written are looked at no more often.
const MOMENT: Duration = Duration::from_millis(2);

/// Watches until the process ends. Where it cannot, mounts are completed before the next command.
pub(super) fn watch_lids(lids: &Arc<Mutex<Lids>>) {
    let Ok(watch) = inotify::init(CreateFlags::CLOEXEC) else { return };
    let mut room = [MaybeUninit::uninit(); 4096];
    loop {
        {
            let lids = lids.lock().expect("nobody panics while mounting");
            for dir in lids.list_dirs() {
                // One that is gone is noticed by the directory above.
                let _ = inotify::add_watch(&watch, dir, CHANGES);
            }
            // What cannot be mounted now fails before the next command.
            let _ = lids.repair();
        }
        if Reader::new(&watch, &mut room).next().is_err() {
            return;
        }
        std::thread::sleep(MOMENT);
    }
}
