//! What a process is and may be, besides the files and calls: capabilities and limits.

use std::io;

use rustix::process::{DumpableBehavior, Pid, Resource, Rlimit, prlimit, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::sandbox::MOST_FILE_BYTES;

/// What the superuser keeps: files of any owner, other identities, low ports. Loading modules, raw devices, the
/// clock, the network's own settings and their like are gone; without new privileges no program brings them back.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Takes capabilities from the calling thread alone.
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

/// Limits that guard against what runs away. They are set right after the start: a process takes longer to begin than
/// this takes, but nothing makes sure of it, so they are no part of the boundary.
pub(super) fn limit(process: u32, memory: Option<u64>) {
    let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return };
    let limits = [(Resource::Fsize, Some(MOST_FILE_BYTES)), (Resource::Data, memory), (Resource::Core, Some(0))];
    for (resource, most) in limits {
        if let Some(most) = most {
            // It may have ended already, or have a lower limit that may not be raised.
            let _ = prlimit(Some(process), resource, Rlimit { current: Some(most), maximum: Some(most) });
        }
    }
}

/// What one process may allocate: three quarters of the machine's memory. Reserved address space does not count.
pub(super) fn most_memory() -> Option<u64> {
    let info = rustix::system::sysinfo();
    let bytes = u64::from(info.mem_unit).checked_mul(u64::try_from(info.totalram).ok()?)?;
    (bytes > 0).then_some(bytes / 4 * 3)
}

pub(in crate::sandbox) fn hide_this_process() {
    // Refused by no kernel that has the call; without it there is nothing to do.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
