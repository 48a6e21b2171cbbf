//! The boundary on Linux. Landlock and seccomp bind the calling thread and everything it starts afterwards: so a
//! separate thread applies them to itself, does its one task, and ends.

mod calls;
mod files;
mod flood;
mod powers;

use std::io;
use std::path::Path;
use std::sync::Arc;

use landlock::{RulesetCreated, RulesetStatus};
use seccompiler::BpfProgram;

use crate::sandbox::Boundary;
use crate::sandbox::places::Places;
use files::Ground;

pub(in crate::sandbox) use flood::Watch;
pub(in crate::sandbox) use powers::{hide_this_process, lift_limits};

pub(super) struct Walls {
    files: RulesetCreated,
    calls: BpfProgram,
    ground: Ground,
}

impl Walls {
    /// # Errors
    /// The feature that the kernel lacks.
    pub fn build(plan: &Boundary, temp: &Path, _places: &[Arc<Places>]) -> Result<Self, String> {
        let knows_truncate = files::supports_truncate();
        let (files, ground) = files::build(plan, temp)?;
        let calls = calls::filter(plan.network, !knows_truncate)?;
        powers::lower_our_limits();
        Ok(Self { files, calls, ground })
    }

    /// Whether the listed directories are unchanged.
    pub fn is_current(&self) -> bool {
        self.ground.is_unchanged()
    }

    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("inside".to_owned());
            let thread = thread.spawn_scoped(scope, || {
                self.close_in()?;
                Ok(work())
            })?;
            thread.join().map_err(|_| io::Error::other("what was to be done inside the sandbox panicked"))?
        })
    }

    /// Confines the calling thread from here on.
    fn close_in(&self) -> io::Result<()> {
        powers::leave_room_for_processes();
        let status = self.files.try_clone()?.restrict_self().map_err(io::Error::other)?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err(io::Error::other("the kernel did not enforce Landlock"));
        }
        powers::drop_most()?;
        seccompiler::apply_filter(&self.calls).map_err(|error| io::Error::other(format!("seccomp: {error}")))
    }

    #[expect(clippy::unused_self, reason = "the boundary of other systems watches by itself, or not at all")]
    pub fn watch(&self, group: i32) -> Watch {
        Watch::over(group)
    }

    /// No program wraps the command: it starts inside.
    #[expect(clippy::unused_self, reason = "the boundary of other systems is a program")]
    pub fn prefix(&self) -> Vec<&str> {
        Vec::new()
    }
}
