//! Checks the configuration for mistakes, and for keys that this version does not use.

use std::sync::Arc;

use crate::config::Config;
use crate::files::workspace::Workspace;

use super::super::CommandFailure;
use super::super::config::load_checked;
use super::super::setup::CliSetup;
use super::account::{DoctorCheck, Health};

/// Returns the configuration, if a run could use it, and the result of its check.
pub(super) fn check_configuration(
    setup: &CliSetup,
    workspace: &Workspace,
) -> Result<(Option<Arc<Config>>, DoctorCheck), CommandFailure> {
    let of = "config";
    let config = match load_checked(setup, workspace) {
        Ok(config) => config,
        Err(failure) if failure.code == super::super::exit::CONFIGURATION => {
            let says =
                format!("{}\nfix it, then run `agent config check` to be sure", failure.word_reason().trim_end());
            return Ok((None, DoctorCheck::new(of, Health::Bad, says)));
        }
        Err(failure) => return Err(failure),
    };
    let dirs: Vec<String> = config.config_dirs.iter().map(|dir| dir.display().to_string()).collect();
    let from = if dirs.is_empty() {
        "built-in only; `agent init` writes files to edit".to_owned()
    } else {
        dirs.join(", ")
    };
    let counts = format!("{} agents, {} models ({from})", config.agents.len(), config.models.len());
    let check = match config.warnings.as_slice() {
        [] => DoctorCheck::new(of, Health::Good, counts),
        warnings => DoctorCheck::new(of, Health::Weak, format!("{counts}\n{}", warnings.join("\n"))),
    };
    Ok((Some(config), check))
}
