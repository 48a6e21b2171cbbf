//! The process group of a child: all its descendants that did not leave the group on purpose.

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
    #[cfg(unix)]
    let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), nix::sys::signal::Signal::SIGKILL);
    #[cfg(not(unix))]
    let _ = group;
}

/// The way to end a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Force {
    /// SIGTERM.
    Ask,
    /// SIGKILL.
    Kill,
}

/// Dropping it kills the group at once.
pub(super) struct ProcessGroup {
    #[cfg(unix)]
    id: Option<nix::unistd::Pid>,
}

#[cfg(unix)]
impl ProcessGroup {
    pub fn lead(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).map(nix::unistd::Pid::from_raw);
        lock_live().extend(id.map(nix::unistd::Pid::as_raw));
        Self { id }
    }

    /// The id of the group.
    pub fn id(&self) -> Option<i32> {
        self.id.map(nix::unistd::Pid::as_raw)
    }

    /// Signals every member; returns false if there is none.
    pub fn signal(&self, force: Force) -> bool {
        use nix::sys::signal::{Signal, killpg};
        let signal = match force {
            Force::Ask => Signal::SIGTERM,
            Force::Kill => Signal::SIGKILL,
        };
        self.id.is_some_and(|id| killpg(id, signal).is_ok())
    }

    pub fn is_alive(&self) -> bool {
        self.id.is_some_and(|id| nix::sys::signal::killpg(id, None).is_ok())
    }

    /// Forgets the group: its id may be reused once it is gone, so it is never signalled again.
    pub fn forget(&mut self) {
        if let Some(id) = self.id.take() {
            lock_live().remove(&id.as_raw());
        }
    }
}

#[cfg(not(unix))]
impl ProcessGroup {
    pub fn lead(_child: &Child) -> Self {
        Self {}
    }

    pub fn id(&self) -> Option<i32> {
        None
    }

    pub fn signal(&self, _force: Force) -> bool {
        false
    }

    pub fn is_alive(&self) -> bool {
        false
    }

    pub fn forget(&mut self) {}
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Force::Kill);
        self.forget();
    }
}
