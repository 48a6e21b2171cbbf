//! The kernel under the tests: whether it has Landlock, and programs on one that lacks some system calls.

use std::io::{self, Write};
use std::process::{Child, Command};

/// Starts a command. These system calls fail for it as if the kernel did not have them.
#[cfg(target_os = "linux")]
pub fn spawn(mut command: Command, missing: &[i64]) -> io::Result<Child> {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

    if missing.is_empty() {
        return command.spawn();
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH).expect("a known processor");
    let rules = missing.iter().map(|call| (*call, Vec::new())).collect();
    let unknown = SeccompAction::Errno(nix::libc::ENOSYS.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, unknown, arch).expect("a filter");
    let filter = BpfProgram::try_from(filter).expect("a filter");
    let start = move || {
        seccompiler::apply_filter(&filter).expect("the kernel has seccomp");
        command.spawn()
    };
    // The thread and all that it starts are bound by the filter.
    std::thread::spawn(start).join().expect("it starts")
}

/// Starts a command. Other systems hide no system calls.
#[cfg(not(target_os = "linux"))]
pub fn spawn(mut command: Command, missing: &[i64]) -> io::Result<Child> {
    assert!(missing.is_empty(), "only Linux can");
    command.spawn()
}

/// Asks the kernel for what is demanded at least.
#[cfg(target_os = "linux")]
pub fn has_landlock() -> bool {
    use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

    let asked = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    asked.handle_access(AccessFs::from_all(ABI::V2)).is_ok_and(|asked| asked.create().is_ok())
}

#[cfg(not(target_os = "linux"))]
pub fn has_landlock() -> bool {
    false
}

/// True if commands are fully confined here; says it if not.
pub fn has_walls() -> bool {
    let has = has_landlock();
    if !has {
        let _ = writeln!(io::stderr(), "not tried: there is no Landlock");
    }
    has
}
