//! `agent config path / show / check / explain / schema`.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::assembly;
use crate::config::{self, Config, ConfigError, PromptDir, SubjectKind};
use crate::faces::chat;
use crate::files::workspace::Workspace;
use crate::prompt::Registry;
use crate::safety::Approver;
use crate::safety::Nobody;

use super::args::ConfigCommand;
use super::setup::CliSetup;
use super::{CommandFailure, CommandOutcome, exit, print_text};

pub(super) fn run_config(setup: &CliSetup, command: ConfigCommand) -> CommandOutcome {
    // A schema is the same everywhere: it needs neither a workspace nor a valid configuration.
    if let ConfigCommand::Schema { kind } = &command {
        let kind = SubjectKind::parse(kind).map_err(CommandFailure::usage)?;
        return print_text(serde_json::to_string_pretty(&config::write_schema(kind))? + "\n");
    }
    let workspace = setup.workspace()?;
    match command {
        ConfigCommand::Check => check_config(setup, &workspace),
        ConfigCommand::Path => print_text(list_paths(setup, &workspace)),
        ConfigCommand::Show => print_text(setup.config(&workspace)?.show()),
        ConfigCommand::Explain { key } => {
            print_text(setup.config(&workspace)?.explain(&key).map_err(CommandFailure::usage)?)
        }
        ConfigCommand::Schema { .. } => Ok(exit::DONE),
    }
}

fn check_config(setup: &CliSetup, workspace: &Workspace) -> CommandOutcome {
    let config = load_checked(setup, workspace)?;
    let own = config.own_commands(chat::is_built_in).warnings;
    for warning in config.warnings.iter().chain(&own) {
        super::warn_person(warning);
    }
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
        return Err(CommandFailure::new(exit::CONFIGURATION, ConfigError { mistakes }));
    };
    let config = Arc::new(config);
    let nobody: Arc<dyn Approver> = Arc::new(Nobody);
    mistakes.extend(assembly::check_names(&config, workspace, &nobody, &mistakes));
    mistakes.extend(config.own_commands(chat::is_built_in).mistakes);
    if mistakes.is_empty() {
        Ok(config)
    } else {
        Err(CommandFailure::new(exit::CONFIGURATION, config.error(mistakes)))
    }
}

/// Lists the places where configuration is looked for; a later one takes precedence.
fn list_paths(setup: &CliSetup, workspace: &Workspace) -> String {
    let mut out = String::new();
    let mut line = |what: &str, place: &str| {
        let _ = writeln!(out, "{what:<9} {place}");
    };
    line("built-in", "compiled in; `agent init` writes it out");
    let given = setup.global.config.clone().or_else(|| setup.env.get("AGENT_CONFIG").map(PathBuf::from));
    if let Some(dir) = given {
        line("config", &format!("{}{}", dir.display(), describe_missing(&dir)));
    } else {
        let dir = setup.env.dirs().config;
        line("user", &format!("{}{}", dir.display(), describe_missing(&dir)));
        let mut projects: Vec<PathBuf> = workspace.dirs_up_to_git_root().map(|dir| dir.join(".agent")).collect();
        projects.reverse();
        for dir in projects {
            line("project", &format!("{}{}", dir.display(), describe_missing(&dir)));
        }
    }
    line("variables", "AGENT_SET_SECTION__KEY");
    line("flags", "--set SECTION.KEY=VALUE");
    out
}

fn describe_missing(dir: &std::path::Path) -> &'static str {
    if dir.is_dir() { "" } else { " (does not exist)" }
}
