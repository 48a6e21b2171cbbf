//! Capabilities and limits of a process.

use std::io;
use std::sync::OnceLock;

use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, getpriority_process, getrlimit, prlimit, set_dumpable_behavior,
    setrlimit,
};
use rustix::thread::{CapabilitySet, CpuSet, capabilities, sched_getaffinity, set_capabilities};

use crate::safety::sandbox::MOST_FILE_BYTES;

/// The capabilities that the superuser keeps: files of any owner, other identities, low ports. Those for modules, raw
/// devices, the clock, network settings and others are dropped; without new privileges no program regains them.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Drops capabilities of the calling thread only.
pub(super) fn drop_most() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    if sets.permitted.is_empty() && sets.inheritable.is_empty() {
        return Ok(());
    }
    sets.effective = sets.effective.intersection(KEPT);
    sets.permitted = sets.permitted.intersection(KEPT);
    sets.inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, sets)?)
}

/// The limits before they were lowered here.
static BEFORE: OnceLock<Vec<(Resource, Rlimit)>> = OnceLock::new();

/// Lowers the limits of this process, reversibly: a child inherits them, the only way to set them in time, and the
/// seccomp filter keeps it from raising them. This process stays far below them.
pub(super) fn lower_our_limits() {
    BEFORE.get_or_init(|| {
        let lowered = list_limits(None).into_iter().filter_map(|(resource, most)| {
            let before = getrlimit(resource);
            let lower = Rlimit { current: choose_lowest(before.current, most), maximum: before.maximum };
            setrlimit(resource, lower).is_ok().then_some((resource, before))
        });
        lowered.collect()
    });
}

fn list_limits(most_tasks: Option<u64>) -> [(Resource, Option<u64>); 4] {
    [
        (Resource::Fsize, Some(MOST_FILE_BYTES)),
        (Resource::Data, most_memory()),
        (Resource::Core, Some(0)),
        (Resource::Nproc, most_tasks),
    ]
}

/// The most processes and threads of a command, by the kernel's own count. It does not apply to the superuser.
const MOST_TASKS: u64 = 8192;

/// Permanently lowers the limits of this process, and so those of everything that it starts.
pub(super) fn limit_ourselves() {
    for (resource, most) in list_limits(Some(MOST_TASKS)) {
        let most = choose_lowest(getrlimit(resource).maximum, most);
        // A limit that cannot be set was already lower.
        let _ = setrlimit(resource, Rlimit { current: most, maximum: most });
    }
}

/// The attributes that the commands of a process inherit from it, and could change by its id: its limits, its priority,
/// its processors.
#[derive(PartialEq)]
pub(super) struct Nature {
    limits: [Rlimit; LIMITS.len()],
    rank: Option<i32>,
    processors: Option<CpuSet>,
}

const LIMITS: [Resource; 16] = {
    use Resource::{
        As, Core, Cpu, Data, Fsize, Locks, Memlock, Msgqueue, Nice, Nofile, Nproc, Rss, Rtprio, Rttime,
        Sigpending, Stack,
    };
    [
        Cpu, Fsize, Data, Stack, Core, Rss, Nproc, Nofile, Memlock, As, Locks, Sigpending, Msgqueue, Nice, Rtprio,
        Rttime,
    ]
};

impl Nature {
    /// The attributes of the calling thread.
    pub fn now() -> Self {
        Self {
            limits: LIMITS.map(getrlimit),
            rank: getpriority_process(None).ok(),
            processors: sched_getaffinity(None).ok(),
        }
    }
}

/// The number of processes that a user may start in addition to those already running.
const ROOM_FOR_PROCESSES: u64 = 2048;

/// The kernel counts all processes of a user, so the limit can be chosen only when a command starts. It does not
/// apply to the superuser.
pub(super) fn leave_room_for_processes() {
    if let Some(tasks) = super::flood::all_tasks().filter(|_| !nix::unistd::geteuid().is_root()) {
        let maximum = getrlimit(Resource::Nproc).maximum;
        let current = choose_lowest(maximum, Some(tasks as u64 + ROOM_FOR_PROCESSES));
        let _ = setrlimit(Resource::Nproc, Rlimit { current, maximum });
    }
}

/// Gives a child outside the sandbox the limits that it would have without this program, which lowers its own so
/// that children inside inherit them.
pub fn lift_limits(process: u32) {
    let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return };
    for (resource, before) in BEFORE.get().into_iter().flatten() {
        // It may have ended already.
        let _ = prlimit(Some(process), *resource, *before);
    }
}

/// The lower of two limits; `None` means no limit.
fn choose_lowest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// The memory that one process may allocate: three quarters of the machine's. Reserved address space does not count.
#[expect(clippy::useless_conversion, reason = "memory is counted in 32 bits on some processors")]
fn most_memory() -> Option<u64> {
    let info = rustix::system::sysinfo();
    let bytes = u64::from(info.mem_unit).checked_mul(u64::from(info.totalram))?;
    (bytes > 0).then_some(bytes / 4 * 3)
}

/// Hides this process from others of the same user: its memory and environment cannot be read, and it leaves no
/// core dump. Done before the first child starts: until then there is nobody to hide from.
pub fn hide_this_process() {
    // Every kernel with this call accepts it; without the call there is nothing to do.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
