//! System calls that no command needs and that would lead around the rules for files: a seccomp filter.
//!
//! A list of what is refused, not of what is allowed: commands are compilers, interpreters and package managers, and a
//! new call of theirs must not break them. What is refused fails as if by permission; io_uring and `clone3` as if the
//! kernel did not know them, because programs then take the older way, which can be judged.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Refused whatever the arguments.
const REFUSED: &[libc::c_long] = &[
    // other file systems, other roots, other namespaces
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_acct,
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // keys
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // the kernel itself
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Unknown, so that programs do without.
const UNKNOWN: &[libc::c_long] =
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_clone3];

const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests that type into a terminal as if somebody sat there.
const TYPING: [u64; 2] = [0x5412, 0x541C];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, to be applied in this order. `guard_truncation` where Landlock is too old to do it.
///
/// # Errors
/// When this processor is not known.
pub(super) fn filters(network: bool, guard_truncation: bool) -> Result<Vec<BpfProgram>, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("no filter for system calls is known on {}", std::env::consts::ARCH))?;
    let compile = |rules: Rules, errno: i32| -> Result<BpfProgram, BackendError> {
        let answer = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(with_twins(rules), SeccompAction::Allow, answer, arch)?.try_into()
    };
    let refused = refused(network, guard_truncation).and_then(|rules| compile(rules, libc::EPERM));
    let mut unknown: Rules = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    if guard_truncation {
        // Its flags lie in memory, where no filter can look.
        unknown.insert(libc::SYS_openat2, Vec::new());
    }
    let filters = refused.and_then(|refused| Ok(vec![refused, compile(unknown, libc::ENOSYS)?]));
    filters.map_err(|error| format!("the filter for system calls cannot be made: {error}"))
}

fn refused(network: bool, guard_truncation: bool) -> Result<Rules, BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, if network { other_sockets()? } else { Vec::new() });
    let namespaces = NEW_NAMESPACES.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        SeccompRule::new(vec![SeccompCondition::new(0, Dword, MaskedEq(flag), flag)?])
    });
    rules.insert(libc::SYS_clone, namespaces.into_iter().collect::<Result<_, _>>()?);
    let typing = TYPING.map(|request| SeccompRule::new(vec![SeccompCondition::new(1, Dword, Eq, request)?]));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);
    if guard_truncation {
        rules.insert(libc::SYS_truncate, Vec::new());
        rules.insert(libc::SYS_openat, vec![truncating(2)?]);
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_open, vec![truncating(1)?]);
    }
    Ok(rules)
}

/// Everything but the internet and the kernel's list of routes, which programs read to find their own addresses. Unix
/// sockets are among the refused: whoever listens there (a container engine, an agent for keys) acts outside.
fn other_sockets() -> Result<Vec<SeccompRule>, BackendError> {
    let family = |op, family: i32| SeccompCondition::new(0, Dword, op, u64::from(family.unsigned_abs()));
    let routes = u64::from(libc::NETLINK_ROUTE.unsigned_abs());
    Ok(vec![
        SeccompRule::new(vec![
            family(Ne, libc::AF_INET)?,
            family(Ne, libc::AF_INET6)?,
            family(Ne, libc::AF_NETLINK)?,
        ])?,
        SeccompRule::new(vec![family(Eq, libc::AF_NETLINK)?, SeccompCondition::new(2, Dword, Ne, routes)?])?,
    ])
}

/// Opened for reading only, and cut off all the same. `flags` is the position of that argument.
fn truncating(flags: u8) -> Result<SeccompRule, BackendError> {
    let mask = u64::from((libc::O_TRUNC | libc::O_ACCMODE).unsigned_abs());
    let value = u64::from((libc::O_TRUNC | libc::O_RDONLY).unsigned_abs());
    SeccompRule::new(vec![SeccompCondition::new(flags, Dword, MaskedEq(mask), value)?])
}

/// Some x86-64 kernels know every call by a second number as well (the x32 interface).
fn with_twins(rules: Rules) -> Rules {
    const X32: i64 = 0x4000_0000;
    /// Those whose second number is another one: `ioctl`, `ptrace`, `process_vm_readv`, `process_vm_writev`.
    const MOVED: [(i64, i64); 4] = [(16, 514), (101, 521), (310, 539), (311, 540)];
    if !cfg!(target_arch = "x86_64") {
        return rules;
    }
    let twins = rules.iter().map(|(call, rules)| (call | X32, rules.clone()));
    let moved = MOVED.iter().filter_map(|(call, twin)| Some((twin | X32, rules.get(call)?.clone())));
    let mut all: Rules = twins.chain(moved).collect();
    all.extend(rules);
    all
}

#[cfg(test)]
mod tests {
    use super::filters;

    #[test]
    fn every_combination_makes_a_filter() {
        for (network, truncation) in [(false, false), (false, true), (true, false), (true, true)] {
            let made = filters(network, truncation).expect("this processor is known");
            assert!(made.iter().all(|filter| !filter.is_empty() && filter.len() < 4096));
        }
    }
}
