//! The rules that bind a thread and what it starts: Landlock for files, seccomp for system calls, fewer capabilities.

use std::io;
use std::path::Path;
use std::sync::Arc;

use landlock::{RulesetCreated, RulesetStatus};
use seccompiler::BpfProgram;

use super::files::{self, RuleGround};
use super::messages::RunStage;
use super::{calls, powers};
use crate::safety::sandbox::places::Places;
use crate::safety::sandbox::{Boundary, Network, SandboxProfile};

/// Rules, ready to be applied to a thread.
pub(in crate::safety::sandbox) struct Confinement {
    /// `None` if the kernel has no Landlock, and namespaces guard the files.
    files: Option<RulesetCreated>,
    calls: BpfProgram,
    ground: RuleGround,
    /// True if the kernel's limits are to be set for each command.
    limits: bool,
}

impl Confinement {
    /// The rules without namespaces.
    ///
    /// # Errors
    /// The feature that the kernel lacks.
    pub fn build(
        plan: &Boundary,
        temp: &Path,
        _: &[Arc<Places>],
        profile: SandboxProfile,
    ) -> Result<Self, String> {
        let knows_truncate = files::supports_truncate();
        let (files, ground) = files::build_ruleset(plan, temp, profile)?;
        let calls = calls::build_filter(calls::OtherGuards {
            network: plan.network == Network::Open && profile == SandboxProfile::Write,
            namespaces: None,
            attributes: profile == SandboxProfile::Write,
            truncation: !knows_truncate,
        })?;
        powers::lower_our_limits();
        Ok(Self { files: Some(files), calls, ground, limits: true })
    }

    /// The rules inside the namespaces of a stage, which guard most by themselves.
    ///
    /// # Errors
    /// This processor is not supported.
    pub(super) fn create_in_stage(stage: &RunStage, profile: SandboxProfile) -> Result<Self, String> {
        let files = files::build_stage_ruleset(stage, profile);
        let calls = calls::build_filter(calls::OtherGuards {
            network: true,
            namespaces: Some(profile),
            attributes: true,
            truncation: false,
        })?;
        Ok(Self { files, calls, ground: RuleGround::default(), limits: false })
    }

    /// True if the listed directories are unchanged.
    pub fn is_current(&self) -> bool {
        self.ground.is_unchanged()
    }

    /// Does `work` on a thread that is bound by the rules.
    pub fn run_inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
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
    pub(super) fn close_in(&self) -> io::Result<()> {
        if self.limits {
            powers::leave_room_for_processes();
        }
        match &self.files {
            Some(files) => {
                let status = files.try_clone()?.restrict_self().map_err(io::Error::other)?;
                if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
                    return Err(io::Error::other("the kernel did not enforce Landlock"));
                }
            }
            None => rustix::thread::set_no_new_privs(true)?,
        }
        powers::drop_most()?;
        seccompiler::apply_filter(&self.calls).map_err(|error| io::Error::other(format!("seccomp: {error}")))
    }

    /// Empty, as no program wraps the command: it starts inside.
    #[expect(clippy::unused_self, reason = "the boundary of other systems is a program")]
    pub fn prefix(&self) -> Vec<String> {
        Vec::new()
    }
}
