//! `agent acp` and `agent mcp serve`: serves an editor, or sets up a model for it; serves another program.

#[cfg(feature = "mcp")]
use crate::agent::Cancel;
use crate::agent::assembly::RunOptions;
#[cfg(feature = "mcp")]
use crate::agent::exit::Signal;
use crate::config::{InitCopies, SettingFlag, SettingFlags};
use crate::faces::acp;
#[cfg(feature = "mcp")]
use crate::faces::mcp;
use crate::faces::serving::ServingSetup;

#[cfg(feature = "mcp")]
use super::CommandFailure;
use super::args::{AcpArgs, ServingArgs};
use super::setup::{CliSetup, build_runtime};
use super::signals::{self, Signals};
use super::{CommandOutcome, exit, init};

pub(super) fn run_acp(setup: CliSetup, args: AcpArgs) -> CommandOutcome {
    if args.setup {
        return init::run_init(&setup, None, &InitCopies::default());
    }
    Signals::listen()?.pass(|signal| signals::die_at_once(signal));
    let setup = prepare_serving(setup, args.serving);
    let runtime = build_runtime()?;
    acp::serve_editor(setup, &runtime)?;
    // A thread may still read or write.
    runtime.shutdown_background();
    Ok(exit::DONE)
}

/// Serves the agent to a program that speaks the Model Context Protocol.
#[cfg(feature = "mcp")]
pub(super) fn serve_mcp(setup: CliSetup, args: ServingArgs) -> CommandOutcome {
    // A configuration that is wrong is said before a client asks for anything.
    let root = setup.load()?.0.root().to_path_buf();
    let end = Cancel::default();
    Signals::listen()?.trigger(&end);
    let runtime = build_runtime()?;
    let served = mcp::serve_program(prepare_serving(setup, args), root, &runtime, &end);
    // A thread may still read.
    runtime.shutdown_background();
    served.map_err(|why| CommandFailure::word(exit::FAILED, why))?;
    Ok(end.signal().map_or(exit::DONE, Signal::code))
}

fn prepare_serving(setup: CliSetup, args: ServingArgs) -> ServingSetup {
    let ServingArgs { agent, model, approve } = args;
    let approve = approve.map(|mode| mode.name().to_owned());
    let CliSetup { global, env } = setup;
    ServingSetup {
        env,
        config_dir: global.config,
        sets: global.sets,
        trust: global.trust,
        flags: SettingFlags::default().of_agent(agent.clone()).with(SettingFlag::Approve, approve),
        options: RunOptions { agent, model, ..RunOptions::default() },
    }
}
