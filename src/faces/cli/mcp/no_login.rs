//! `agent mcp login / logout` of a build without the feature `mcp`.

use crate::faces::cli::setup::CliSetup;
use crate::faces::cli::{CommandFailure, CommandOutcome};

pub(super) fn log_in(_setup: &CliSetup, _name: &str) -> CommandOutcome {
    Err(CommandFailure::usage("this program was built without the feature `mcp`"))
}

pub(super) fn log_out(setup: &CliSetup, name: &str) -> CommandOutcome {
    log_in(setup, name)
}
