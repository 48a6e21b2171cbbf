//! CPU time and memory of the processes of a call, as the system counts them: for all children of this program
//! together, once they have ended.
//!
//! So the difference between before and after belongs to one call only if no other call with processes ran in between;
//! otherwise nothing is reported. Memory is a high-water mark of all children that never falls, and a child inherits
//! the mark of this program when it starts (`vfork`, then `exec`). A mark above both is the command's own peak; below
//! them the peak is unknown, and left out. Children that others waited for ([`count_child`]) started from a smaller
//! process, so their marks are more precise.

use std::sync::Mutex;
use std::time::Duration;

/// CPU time and memory of the processes of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// User and system time.
    pub cpu: Duration,
    /// The peak memory of the largest of them in bytes, if that was more than that of all before it and of this
    /// program.
    pub peak_memory: Option<u64>,
}

/// Watches from its creation until [`ChildWatch::end`], or until it is dropped.
#[derive(Debug)]
pub struct ChildWatch {
    before: Option<Sums>,
    number: u64,
    /// True if another one was open at its beginning.
    accompanied: bool,
}

/// The number of open watches, and of all so far.
#[derive(Debug)]
struct Watches {
    open: u64,
    begun: u64,
}

static WATCHES: Mutex<Watches> = Mutex::new(Watches { open: 0, begun: 0 });

#[derive(Debug, Clone, Copy)]
struct Sums {
    cpu: Duration,
    /// The peak memory of the largest child in bytes, including this program's own mark.
    most_memory: u64,
    /// The peak memory of the largest child of others in bytes.
    most_told: u64,
}

impl ChildWatch {
    /// Begins before the first process is started.
    pub fn begin() -> Self {
        let mut watches = lock_watches();
        watches.open += 1;
        watches.begun += 1;
        Self { before: read_sums(), number: watches.begun, accompanied: watches.open > 1 }
    }

    /// Ends after the last process was waited for. `None` if the sums are not this call's alone, or the system does not
    /// report them.
    pub fn end(self) -> Option<ProcessUsage> {
        let alone = !self.accompanied && lock_watches().begun == self.number;
        let (before, after) = (self.before.filter(|_| alone)?, read_sums()?);
        let told = (after.most_told > before.most_told).then_some(after.most_told);
        let own = (after.most_memory > before.most_memory).then_some(after.most_memory).filter(|most| {
            // The kernel's counts of one process vary slightly from one reading to the next.
            own_memory().is_some_and(|inherited| *most > inherited + inherited / 8)
        });
        Some(ProcessUsage { cpu: after.cpu.saturating_sub(before.cpu), peak_memory: own.max(told) })
    }
}

impl Drop for ChildWatch {
    fn drop(&mut self) {
        lock_watches().open -= 1;
    }
}

/// The reported use of children that others waited for: total processor time, and peak memory.
#[cfg(unix)]
static TOLD: Mutex<(Duration, u64)> = Mutex::new((Duration::ZERO, 0));

/// Counts a child that another process waited for. `peak_memory` is in bytes, if it is the child's own.
#[cfg(target_os = "linux")]
pub fn count_child(cpu: Duration, peak_memory: Option<u64>) {
    let mut told = TOLD.lock().expect("nothing panics while it holds the sums");
    told.0 += cpu;
    told.1 = told.1.max(peak_memory.unwrap_or(0));
}

fn lock_watches() -> std::sync::MutexGuard<'static, Watches> {
    WATCHES.lock().expect("nothing panics while it holds the counters")
}

/// macOS counts bytes, the others kibibytes.
#[cfg(unix)]
const UNIT: u64 = if cfg!(target_os = "macos") { 1 } else { 1024 };

#[cfg(unix)]
fn read_sums() -> Option<Sums> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let (told_cpu, told_memory) = *TOLD.lock().expect("nothing panics while it holds the sums");
    Some(Sums {
        cpu: Duration::from_micros(u64::try_from(cpu).ok()?) + told_cpu,
        most_memory: u64::try_from(usage.max_rss()).ok()? * UNIT,
        most_told: told_memory,
    })
}

/// The high-water mark since the last `exec`: that of `getrusage` includes the process that started this program.
#[cfg(target_os = "linux")]
fn own_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(mark.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn own_memory() -> Option<u64> {
    use nix::sys::resource::{UsageWho, getrusage};
    u64::try_from(getrusage(UsageWho::RUSAGE_SELF).ok()?.max_rss()).ok().map(|memory| memory * UNIT)
}

#[cfg(not(unix))]
fn read_sums() -> Option<Sums> {
    None
}

#[cfg(not(unix))]
fn own_memory() -> Option<u64> {
    None
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_that_was_alone_is_told_what_it_cost() {
        let first = ChildWatch::begin();
        let second = ChildWatch::begin();
        assert_eq!(first.end(), None, "the second was begun meanwhile");
        assert_eq!(second.end(), None, "the first was open when it began");
        let third = ChildWatch::begin();
        assert!(third.end().is_some());
    }
}
