//! The skills of an agent: those of the configured directories and of its servers, filtered by its list.

use std::sync::Arc;

use crate::config::{AgentConfig, Config};
use crate::skills::{RunVariables, SkillCatalogue};
use crate::tools::{self, McpServers, SelectableName};

use super::servers;

/// Opens them.
///
/// # Errors
/// The list of the agent names a skill that there is none of.
pub(super) fn open_skills(
    config: &Config,
    agent: &AgentConfig,
    around: RunVariables,
    servers: Option<&Arc<McpServers>>,
) -> Result<SkillCatalogue, String> {
    let mut catalogue = SkillCatalogue::discover(&config.skill_dirs, &config.dirs.cache, around);
    for (server, listed) in servers.map(McpServers::skills).unwrap_or_default() {
        catalogue.add_served(&server, &listed, |name| tools::name_tool(server.name(), name));
    }
    let present = catalogue.iter().map(|skill| SelectableName { name: &skill.name, default: true });
    let choices: Vec<SelectableName<'_>> = present.chain(servers::find_awaited(config, &agent.skills)).collect();
    let taken = select_narrowed(&agent.skills, &agent.narrowed.skills, &choices)?;
    catalogue.retain(|name| taken.iter().any(|taken| taken == name));
    Ok(catalogue)
}

/// The names that a list selects, and each of `further` lists of a project or a caller as well.
pub(super) fn select_narrowed(
    list: &[String],
    further: &[Vec<String>],
    choices: &[SelectableName<'_>],
) -> Result<Vec<String>, String> {
    let mut taken = tools::select_names(list, choices)?;
    for list in further {
        let narrower = tools::select_names(list, choices)?;
        taken.retain(|name| narrower.contains(name));
    }
    Ok(taken.into_iter().map(str::to_owned).collect())
}
