//! `agent acp`: serves an editor, or sets up a model for it.

use crate::agent::assembly::RunOptions;
use crate::config::{InitCopies, SettingFlag, SettingFlags};
use crate::faces::acp::{self, AcpSetup};

use super::args::AcpArgs;
use super::setup::{CliSetup, build_runtime};
use super::signals::{self, Signals};
use super::{CommandOutcome, exit, init};

pub(super) fn run_acp(setup: CliSetup, args: AcpArgs) -> CommandOutcome {
    let AcpArgs { setup: sets_up, agent, model, approve } = args;
    if sets_up {
        return init::run_init(&setup, None, &InitCopies::default());
    }
    let signals = Signals::listen()?;
    signals.pass(|signal| signals::die_at_once(signal));
    let approve = approve.map(|mode| mode.name().to_owned());
    let CliSetup { global, env } = setup;
    let setup = AcpSetup {
        env,
        config_dir: global.config,
        sets: global.sets,
        trust: global.trust,
        flags: SettingFlags::default().of_agent(agent.clone()).with(SettingFlag::Approve, approve),
        options: RunOptions { agent, model, ..RunOptions::default() },
    };
    let runtime = build_runtime()?;
    acp::serve_editor(setup, &runtime)?;
    // A thread may still read or write.
    runtime.shutdown_background();
    Ok(exit::DONE)
}
