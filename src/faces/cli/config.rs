//! `agent config path / show / check / explain / schema`.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use crate::agent::assembly;
use crate::config::{self, Config, ConfigError, PromptDir, SubjectKind};
use crate::faces::chat;
use crate::files::workspace::Workspace;
use crate::prompt::Registry;
use crate::safety::{Approver, Nobody};

use super::args::ConfigCommand;
use super::setup::CliSetup;
use super::{CommandFailure, CommandOutcome, print_json, print_text, warn_person};

pub(super) fn run_config(setup: &CliSetup, command: ConfigCommand) -> CommandOutcome {
    match command {
        ConfigCommand::Check => check_config(setup),
        ConfigCommand::Path => print_text(list_paths(setup, &setup.workspace()?)),
        ConfigCommand::Show => print_text(setup.load()?.1.show()),
        ConfigCommand::Explain { key } => {
            print_text(setup.load()?.1.explain(&key).map_err(CommandFailure::usage)?)
        }
        // A schema is the same everywhere: it needs neither a workspace nor a valid configuration.
        ConfigCommand::Schema { kind } => {
            print_json(&config::write_schema(SubjectKind::parse(&kind).map_err(CommandFailure::usage)?))
        }
    }
}

fn check_config(setup: &CliSetup) -> CommandOutcome {
    let workspace = setup.workspace()?;
    let config = load_checked(setup, &workspace)?;
    let own = config.own_commands(chat::is_built_in).warnings;
    config.warnings.iter().chain(&own).for_each(|warning| warn_person(warning));
    print_text(format!("no mistakes: {} agents, {} models\n", config.agents.len(), config.models.len()))
}

/// Loads the configuration. If it has mistakes, the failure lists all of them.
pub(super) fn load_checked(setup: &CliSetup, workspace: &Workspace) -> Result<Arc<Config>, CommandFailure> {
    let options = setup.load_options(workspace)?;
    let mut prompt = |dirs: &[PromptDir], reference: &str| {
        Registry::new(dirs).get_released(reference).map(drop).map_err(|error| error.to_string())
    };
    let (config, mut mistakes) = config::check_config(&options, &mut prompt);
    let Some(config) = config else {
        return Err(ConfigError { mistakes }.into());
    };
    let config = Arc::new(config);
    let nobody: Arc<dyn Approver> = Arc::new(Nobody);
    mistakes.extend(assembly::check_names(&config, workspace, &nobody, &mistakes));
    mistakes.extend(config.own_commands(chat::is_built_in).mistakes);
    if mistakes.is_empty() { Ok(config) } else { Err(config.error(mistakes).into()) }
}

/// Lists the places where configuration is looked for; a later one takes precedence.
fn list_paths(setup: &CliSetup, workspace: &Workspace) -> String {
    let mut out = String::new();
    let mut line = |what: &str, place: &str| {
        let _ = writeln!(out, "{what:<9} {place}");
    };
    let show = |dir: &Path| format!("{}{}", dir.display(), if dir.is_dir() { "" } else { " (does not exist)" });
    line("built-in", "compiled in; `agent init` writes it out");
    if let Some(dir) = setup.given_dir() {
        line("config", &show(&dir));
    } else {
        line("user", &show(&setup.env.dirs().config));
        let dirs: Vec<&Path> = workspace.dirs_up_to_git_root().collect();
        dirs.iter().rev().for_each(|dir| line("project", &show(&dir.join(".agent"))));
    }
    line("variables", "AGENT_SET_SECTION__KEY");
    line("flags", "--set SECTION.KEY=VALUE");
    out
}
