//! What the processes of a call cost, as the system tells it: for all children of this program together, once they
//! have ended.
//!
//! So the difference between before and after belongs to one call only where no other call with processes ran in
//! between; where one did, nothing is told rather than something wrong. Of memory the system keeps a high-water mark
//! that never falls (and that begins at the size of this program, from which every child starts): it says something
//! of a call only where the call raised it.

use std::sync::Mutex;
use std::time::Duration;

/// What the processes of one call cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// User and system time.
    pub cpu: Duration,
    /// Bytes that the largest of them held, where it was larger than all before.
    pub peak_memory: Option<u64>,
}

/// Watches from its making until [`Watch::end`], or until it is dropped.
#[derive(Debug)]
pub struct Watch {
    before: Option<Sums>,
    number: u64,
    /// Whether another one was open at its beginning.
    accompanied: bool,
}

/// Which watches are open.
#[derive(Debug)]
struct Watches {
    open: u64,
    begun: u64,
}

static WATCHES: Mutex<Watches> = Mutex::new(Watches { open: 0, begun: 0 });

#[derive(Debug, Clone, Copy)]
struct Sums {
    cpu: Duration,
    /// Bytes.
    most_memory: u64,
}

impl Watch {
    /// Begins before the first process is started.
    #[must_use]
    pub fn begin() -> Self {
        let mut watches = lock();
        watches.open += 1;
        watches.begun += 1;
        Self { before: sums(), number: watches.begun, accompanied: watches.open > 1 }
    }

    /// Ends after the last process was waited for. `None` where the sums are not this call's alone, or the system
    /// does not tell them.
    #[must_use]
    pub fn end(self) -> Option<Spent> {
        let alone = !self.accompanied && lock().begun == self.number;
        let (before, after) = (self.before.filter(|_| alone)?, sums()?);
        Some(Spent {
            cpu: after.cpu.saturating_sub(before.cpu),
            peak_memory: (after.most_memory > before.most_memory).then_some(after.most_memory),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock().open -= 1;
    }
}

fn lock() -> std::sync::MutexGuard<'static, Watches> {
    WATCHES.lock().expect("nothing panics while it holds the counters")
}

#[cfg(unix)]
fn sums() -> Option<Sums> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    /// macOS counts bytes, the others kibibytes.
    const UNIT: u64 = if cfg!(target_os = "macos") { 1 } else { 1024 };
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Some(Sums {
        cpu: Duration::from_micros(u64::try_from(cpu).ok()?),
        most_memory: u64::try_from(usage.max_rss()).ok()? * UNIT,
    })
}

#[cfg(not(unix))]
fn sums() -> Option<Sums> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_that_was_alone_is_told_what_it_cost() {
        let first = Watch::begin();
        let second = Watch::begin();
        assert_eq!(first.end(), None, "the second was begun meanwhile");
        assert_eq!(second.end(), None, "the first was open when it began");
        let third = Watch::begin();
        assert!(third.end().is_some());
    }
}
