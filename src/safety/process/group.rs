//! The process group of a child: all its descendants that did not leave the group on purpose. On Windows it is the tree of what
//! the child started, which is found only while the child lives.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use tokio::process::Child;

/// The live groups of this process.
static LIVE: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn lock_live() -> MutexGuard<'static, BTreeSet<i32>> {
    LIVE.lock().expect("no holder of the list panics")
}

/// Kills every live group, for a process that is about to exit without unwinding.
pub fn kill_all() {
    lock_live().iter().copied().for_each(kill_group);
}

/// Kills a group at once.
pub(super) fn kill_group(group: i32) {
    signal_group(group, Some(Force::Kill));
}

/// Signals every member of a group, or only checks for one; returns false if there is none.
#[cfg(unix)]
fn signal_group(group: i32, force: Option<Force>) -> bool {
    use nix::sys::signal::{Signal, killpg};
    let signal = force.map(|force| if force == Force::Ask { Signal::SIGTERM } else { Signal::SIGKILL });
    killpg(nix::unistd::Pid::from_raw(group), signal).is_ok()
}

/// Windows can only kill them; its own program does that, which is looked for in the directory of the system first.
#[cfg(not(unix))]
fn signal_group(leader: i32, force: Option<Force>) -> bool {
    use std::process::{Command, Stdio};
    let mut kill = Command::new("taskkill");
    kill.args(["/F", "/T", "/PID", &leader.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    force == Some(Force::Kill) && kill.status().is_ok_and(|ended| ended.success())
}

/// The way to end a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Force {
    /// SIGTERM, where there is one.
    Ask,
    /// SIGKILL.
    Kill,
}

/// Dropping it kills the group at once.
pub(super) struct ProcessGroup {
    /// The id of the group.
    pub id: Option<i32>,
}

impl ProcessGroup {
    pub fn lead(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        lock_live().extend(id);
        Self { id }
    }

    /// Signals every member; returns false if there is none.
    pub fn signal(&self, force: Force) -> bool {
        self.id.is_some_and(|id| signal_group(id, Some(force)))
    }

    pub fn is_alive(&self) -> bool {
        self.id.is_some_and(|id| signal_group(id, None))
    }

    /// Forgets the group: its id may be reused once it is gone, so it is never signalled again.
    pub fn forget(&mut self) {
        if let Some(id) = self.id.take() {
            lock_live().remove(&id);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Force::Kill);
        self.forget();
    }
}
