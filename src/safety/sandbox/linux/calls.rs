//! System calls that no command needs and that would circumvent the rules for files: a seccomp filter.
//!
//! It lists the refused calls, not the allowed ones: commands are compilers, interpreters and package managers,
//! and a new call of theirs must not break them. A refused call fails with a permission error; `io_uring` and
//! `clone3` fail as unknown calls, because programs then fall back to the older way, which can be judged.
//!
//! The list is short because the kernel runs all of it for each known call whenever a filter is installed, which
//! is for each command. Mounting, other roots, modules, the clock and the like are not in it: they need
//! capabilities, which `powers` drops, and the way to regain them, a user namespace, is closed here. Landlock
//! guards the memory and descriptors of processes outside.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use crate::safety::sandbox::SandboxProfile;

/// Calls that are refused whatever the arguments.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_ptrace,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];

/// Calls that are reported as unknown, so that programs do without them.
const UNKNOWN: [libc::c_long; 4] =
    [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_clone3];

/// Calls that change modes, owners, times and other attributes of files, for which Landlock has no rule. The kernels of
/// all processors share the number of the newest ones.
const OF_ATTRIBUTES: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    452, // fchmodat2
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    463, // setxattrat
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    466, // removexattrat
    469, // file_setattr
];

/// Calls that set the mode of a file, and the position of that argument. What makes a file with such a mode and writes to
/// it loses the bit by that.
const SETTING_MODES: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (452, 2), // fchmodat2
];

/// The bit of a mode that lets whoever runs a file become its owner. The file would stay when the walls are gone.
const SETUID: u64 = 0o4000;

/// Some x86-64 kernels also accept every call by a second number, from here on (the x32 interface).
const SECOND_NUMBERS: u32 = 0x4000_0000;

/// Requests that insert input into a terminal as if typed (`TIOCSTI`, `TIOCLINUX`).
const TYPING: [u64; 2] = [0x5412, 0x541C];

/// The bits of a socket's type that are its kind; the others are flags.
const SOCKET_KIND: u64 = 0xf;

/// Limits that stay as they are: the size of files, memory, processes.
const FIXED_LIMITS: [u64; 3] = [1, 2, 6];

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;

/// The other guards of a command; the filter does the rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct OtherGuards {
    /// True if internet sockets are allowed, or lead nowhere.
    pub network: bool,
    /// The profile, if namespaces keep processes of the machine out of reach, and in `Write` its Unix sockets.
    pub namespaces: Option<SandboxProfile>,
    /// True if attributes of files are guarded by read-only mounts, or may be changed.
    pub attributes: bool,
    /// True if Landlock is too old to guard files against truncation.
    pub truncation: bool,
}

/// The filter.
///
/// # Errors
/// This processor is not supported.
pub(super) fn build_filter(around: OtherGuards) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("no filter for system calls is known on {}", std::env::consts::ARCH))?;
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = list_refused(around)
        .and_then(|rules| SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch)?.try_into());
    let filter: BpfProgram =
        filter.map_err(|error| format!("the filter for system calls cannot be made: {error}"))?;
    // Its flags are in memory, which a filter cannot read.
    let hidden = around.truncation.then_some(libc::SYS_openat2);
    let mut whole = build_unknown_filter(UNKNOWN.into_iter().chain(hidden));
    whole.extend(filter);
    Ok(whole)
}

fn list_refused(around: OtherGuards) -> Result<SeccompRules, BackendError> {
    let mut rules: SeccompRules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let sockets = match around {
        OtherGuards { namespaces: Some(SandboxProfile::Write), .. } => {
            sockets_but(&[libc::AF_INET, libc::AF_INET6, libc::AF_UNIX])?
        }
        // The servers of Unix sockets (a container engine, a key agent) act outside.
        OtherGuards { network: true, .. } => sockets_but(&[libc::AF_INET, libc::AF_INET6])?,
        _ => Vec::new(),
    };
    rules.insert(libc::SYS_socket, sockets);
    if around.attributes {
        let sets =
            |(call, mode): (libc::c_long, u8)| Ok((call, vec![match_argument(mode, MaskedEq(SETUID), SETUID)?]));
        rules.extend(SETTING_MODES.iter().copied().map(sets).collect::<Result<Vec<_>, BackendError>>()?);
    } else {
        rules.extend(OF_ATTRIBUTES.iter().map(|call| (*call, Vec::new())));
    }
    if around.namespaces != Some(SandboxProfile::Write) {
        // One of a pair of these sends to any path.
        let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| u64::from(kind.unsigned_abs()));
        let pairs = kinds.map(|kind| match_argument(1, MaskedEq(SOCKET_KIND), kind));
        rules.insert(libc::SYS_socketpair, pairs.into_iter().collect::<Result<_, _>>()?);
    }
    let user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
    rules.insert(libc::SYS_clone, vec![match_argument(0, MaskedEq(user), user)?]);
    rules.insert(libc::SYS_ioctl, vec![match_argument(1, Eq, TYPING[0])?, match_argument(1, Eq, TYPING[1])?]);
    let set = |limit: u64| {
        let sets = SeccompCondition::new(2, Qword, Ne, 0)?;
        SeccompRule::new(vec![SeccompCondition::new(1, Dword, Eq, limit)?, sets])
    };
    let mut limits = FIXED_LIMITS.map(set).into_iter().collect::<Result<Vec<_>, _>>()?;
    if around.namespaces.is_none() {
        // Those of another process, as others are visible.
        limits.push(match_argument(0, Ne, 0)?);
    }
    rules.insert(libc::SYS_prlimit64, limits);
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    rules.insert(
        libc::SYS_setrlimit,
        FIXED_LIMITS.map(|limit| match_argument(0, Eq, limit)).into_iter().collect::<Result<_, _>>()?,
    );
    if around.truncation {
        rules.insert(libc::SYS_truncate, Vec::new());
        rules.insert(libc::SYS_openat, vec![match_truncating(2)?]);
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_open, vec![match_truncating(1)?]);
    }
    Ok(rules)
}

fn match_argument(argument: u8, op: seccompiler::SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, Dword, op, value)?])
}

/// Everything except these families and the kernel's list of routes, which programs read to find their own addresses.
fn sockets_but(families: &[i32]) -> Result<Vec<SeccompRule>, BackendError> {
    let family = |op, family: i32| SeccompCondition::new(0, Dword, op, u64::from(family.unsigned_abs()));
    let routes = u64::from(libc::NETLINK_ROUTE.unsigned_abs());
    let others = families.iter().chain(&[libc::AF_NETLINK]).map(|known| family(Ne, *known));
    let other_lists = [family(Eq, libc::AF_NETLINK), SeccompCondition::new(2, Dword, Ne, routes)];
    Ok(vec![
        SeccompRule::new(others.collect::<Result<_, _>>()?)?,
        SeccompRule::new(other_lists.into_iter().collect::<Result<_, _>>()?)?,
    ])
}

/// Matches calls that open a file only for reading but truncate it. `flags` is the position of that argument.
fn match_truncating(flags: u8) -> Result<SeccompRule, BackendError> {
    let mask = u64::from((libc::O_TRUNC | libc::O_ACCMODE).unsigned_abs());
    match_argument(flags, MaskedEq(mask), u64::from((libc::O_TRUNC | libc::O_RDONLY).unsigned_abs()))
}

/// A filter before the main one with a single answer: these calls, and all second numbers, do not exist.
fn build_unknown_filter(calls: impl Iterator<Item = libc::c_long>) -> BpfProgram {
    const LOAD_CALL: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_NOT_BELOW: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let answer = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let step = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    let mut program = vec![step(LOAD_CALL, 0, 0)];
    for call in calls {
        let call = u32::try_from(call).expect("numbers of calls are small");
        program.extend([step(JUMP_IF_EQUAL, 1, call), step(RETURN, 0, answer)]);
    }
    program.extend([step(JUMP_IF_NOT_BELOW, 1, SECOND_NUMBERS), step(RETURN, 0, answer)]);
    program
}

#[cfg(test)]
mod tests {
    use super::{OtherGuards, SandboxProfile, build_filter};

    #[test]
    fn every_combination_makes_a_filter() {
        for namespaces in [None, Some(SandboxProfile::Read), Some(SandboxProfile::Write)] {
            for number in 0..8 {
                let [network, truncation, attributes] = [1, 2, 4].map(|bit| number & bit != 0);
                let guards = OtherGuards { network, namespaces, attributes, truncation };
                let made = build_filter(guards).expect("this processor is known");
                let most = if attributes { 230 } else { 300 };
                assert!(made.len() > 30 && made.len() < most, "{guards:?}: {}", made.len());
            }
        }
    }
}
