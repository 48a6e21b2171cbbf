//! The servers of tools of a run, with the walls around them and the rules for their calls.

use std::sync::Arc;

use crate::config::{AgentConfig, Config, McpServerConfig, McpWalls, Permission, PermissionRule};
use crate::files::workspace::Workspace;
use crate::safety::net::Net;
use crate::safety::sandbox::{Network, Sandbox};
use crate::tools::{McpServers, McpSurroundings, SelectableName};

use super::{SetupError, boundary};

/// The servers of the configuration, those of an `earlier` agent if they are the same; `None` without any.
pub(super) fn gather_servers(
    config: &Config,
    agent: &AgentConfig,
    workspace: &Workspace,
    net: &Arc<Net>,
    earlier: Option<&Arc<McpServers>>,
) -> Option<Arc<McpServers>> {
    let enabled: Vec<&McpServerConfig> = config.servers.values().filter(|server| server.enabled).collect();
    // All of their tools write.
    if enabled.is_empty() || agent.permissions.max == Permission::Read {
        return None;
    }
    if let Some(earlier) = earlier.filter(|earlier| earlier.are_of(&enabled, workspace.root())) {
        return Some(Arc::clone(earlier));
    }
    let with_walls = |server: &McpServerConfig| {
        let walls = server.sandbox.walls().map(|walls| create_walls(config, agent, workspace, walls));
        (server.clone(), walls)
    };
    let around = McpSurroundings {
        env: super::choose_environment(config, agent, workspace),
        dir: workspace.root().to_path_buf(),
        net: Arc::clone(net),
        cache: config.dirs.cache.join("mcp"),
        tokens: config.mcp_token_dir(),
        redactor: Arc::new(config.redactor()),
    };
    Some(Arc::new(McpServers::new(enabled.into_iter().map(with_walls).collect(), around)))
}

/// The servers of the default agent, without one.
///
/// # Errors
/// There is no such agent.
pub fn gather_servers_alone(
    config: &Config,
    workspace: &Workspace,
) -> Result<Option<Arc<McpServers>>, SetupError> {
    let agent = config.agent(None).map_err(SetupError::usage)?;
    Ok(gather_servers(config, agent, workspace, &Arc::new(super::open_net(config)), None))
}

/// The names of a list that a configured server may have once it is up.
pub(super) fn find_awaited<'a>(
    config: &'a Config,
    list: &'a [String],
) -> impl Iterator<Item = SelectableName<'a>> {
    let is_of_server =
        |name: &&String| name.split_once("__").is_some_and(|(server, _)| config.servers.contains_key(server));
    list.iter().filter(is_of_server).map(|name| SelectableName { name, default: false })
}

fn create_walls(config: &Config, agent: &AgentConfig, workspace: &Workspace, walls: &McpWalls) -> Sandbox {
    let mut agent = agent.clone();
    agent.sandbox.write.clone_from(&walls.write);
    agent.sandbox.network.clone_from(&walls.network);
    let mut plan = boundary::plan_boundary(config, &agent, workspace);
    if plan.network != Network::Open {
        plan.network = Network::Closed;
    }
    Sandbox::new(plan)
}

/// The rules that the files of servers make. They name each tool, as a glob could reach another server's.
pub(super) fn list_rules(servers: &Arc<McpServers>) -> Vec<PermissionRule> {
    let tools = servers.tools().into_iter().filter(|(server, _)| server.is_allowed());
    let rule = |name: &String| PermissionRule { allow: Some(name.clone()), ..PermissionRule::default() };
    tools.map(|(_, tool)| rule(&tool.definition().name)).collect()
}
