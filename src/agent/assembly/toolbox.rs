//! Assembles the tools of an agent: the built-in ones and the configured commands, adjusted by the configuration and
//! filtered by the agent's list.

use std::sync::Arc;

use crate::agent::{ToolEntry, ToolTerms, Toolbox};
use crate::base::text;
use crate::config::{AgentConfig, Config, Mistake, Permission, ToolConfig, format_duration};
use crate::model::ToolDefinition;
use crate::skills::SkillCatalogue;
use crate::tools::{
    self, BACKGROUND, ConfiguredCommand, Kit, LoadSkill, LoadSkillReference, McpServers, ProposePlan, RUN_COMMAND,
    SelectableName, TASK, Tool,
};

use super::SetupError;
use super::ground::AgentInputs;
use super::servers::find_awaited;
use super::skills::select_narrowed;
use super::task::{self, Task};

/// Assembles the tools of an agent.
pub(super) fn assemble_toolbox(
    config: &Config,
    agent: &AgentConfig,
    catalogue: &Arc<SkillCatalogue>,
    kit: Kit,
    servers: Option<&Arc<McpServers>>,
    is_helper: bool,
    for_helpers: impl FnOnce() -> AgentInputs,
) -> Result<Toolbox, SetupError> {
    if let Some(mistake) = find_misnamed(config).into_iter().chain(too_slow(config, agent)).next() {
        return Err(SetupError::configuration(mistake));
    }
    let mut toolbox = Toolbox::default();
    let (child_env, sandbox, jobs) = (kit.child_env.clone(), kit.sandbox.clone(), Arc::clone(&kit.jobs));
    let proxies = kit.net.proxies().clone();
    for tool in tools::list_builtin(kit) {
        register_tool(&mut toolbox, config, tool);
    }
    if catalogue.list_offered().next().is_some() {
        let disclosure = agent.skill_disclosure;
        register_tool(&mut toolbox, config, Arc::new(LoadSkill::new(Arc::clone(catalogue), disclosure)));
        register_tool(&mut toolbox, config, Arc::new(LoadSkillReference::new(Arc::clone(catalogue), disclosure)));
    }
    // In `explore` too, where its calls are refused: the prefix is that of the other modes.
    if agent.plans && agent.permissions.max != Permission::Read && !is_helper {
        register_tool(&mut toolbox, config, Arc::new(ProposePlan::new()));
    }
    for tool in list_commands(config) {
        let command = ConfiguredCommand::new(tool.clone(), child_env.clone(), sandbox.clone(), proxies.clone());
        register_tool(&mut toolbox, config, Arc::new(command));
    }
    for (server, tool) in servers.into_iter().flat_map(McpServers::tools) {
        // A configured tool of this name is the user's own.
        if toolbox.get(&tool.definition().name).is_none() {
            toolbox.register(tool, ToolTerms::of_server(&server));
        }
    }
    let helpers = task::define_tool(config, agent);
    let taken = select_names(config, agent, &toolbox, helpers.as_ref()).map_err(|why| {
        let key = format!("agents.{}.tools", agent.name);
        SetupError::configuration(config.mistake(&key, &why))
    })?;
    let is_shown = |definition: &ToolDefinition| {
        let is_on = config.tools.get(&definition.name).is_none_or(|tool| tool.enabled);
        is_on && definition.permission <= agent.permissions.max && taken.contains(&definition.name)
    };
    let hidden: Vec<String> = toolbox
        .all()
        .filter(|definition| !is_shown(definition))
        .map(|definition| definition.name.clone())
        .collect();
    for name in hidden {
        toolbox.unregister(&name);
    }
    // What comes late was not selected, so it is taken only by an agent that takes everything.
    let takes_all = agent.tools == ["*"] && agent.narrowed.tools.is_empty();
    let takes_late = takes_all && agent.permissions.max != Permission::Read;
    let has_some = toolbox.all().any(|tool| toolbox.get(&tool.name).is_some_and(ToolEntry::is_of_server));
    if let Some(servers) = servers.filter(|_| takes_late || has_some) {
        toolbox.serve(Arc::clone(servers), takes_late);
    }
    // `background` and `run_command` are useful only together.
    if toolbox.get(BACKGROUND).is_none() {
        jobs.close("No command can run in the background here, because the tool `background` is switched off.");
    } else if toolbox.get(RUN_COMMAND).is_none() {
        toolbox.unregister(BACKGROUND);
    }
    if let Some(definition) = helpers.filter(is_shown) {
        let own = toolbox.names().chain([TASK]).map(str::to_owned).collect();
        register_tool(&mut toolbox, config, Arc::new(Task::new(definition, for_helpers(), own)));
    }
    Ok(toolbox)
}

fn list_commands(config: &Config) -> impl Iterator<Item = &ToolConfig> {
    config.tools.values().filter(|tool| tool.command.is_some())
}

/// Finds commands with the name of a built-in tool, and adjustments of tools that do not exist.
pub(super) fn find_misnamed(config: &Config) -> Vec<Mistake> {
    let mistake = |(name, tool): (&String, &ToolConfig)| {
        let (why, hint) = match (tools::NAMES.contains(&name.as_str()), tool.command.is_some()) {
            (true, true) => {
                (format!("`{name}` is the name of a built-in tool"), "give the command another name".to_owned())
            }
            (false, false) => {
                let near = text::find_nearest(name, tools::NAMES);
                let add = "add `command` to define a tool".to_owned();
                let hint = near.first().map_or(add, |near| format!("did you mean `{near}`?"));
                (format!("there is no tool `{name}` to adjust, and no `command` defines one"), hint)
            }
            _ => return None,
        };
        Some(config.mistake(&format!("tools.{name}"), &why).hint(hint))
    };
    config.tools.iter().filter_map(mistake).collect()
}

/// Finds tools whose timeout exceeds the agent's limit for calls.
pub(super) fn too_slow(config: &Config, agent: &AgentConfig) -> Vec<Mistake> {
    let most = agent.limits.max_tool_timeout;
    let mistake = |(name, tool): (&String, &ToolConfig)| {
        let timeout = tool.timeout.filter(|timeout| *timeout > most)?;
        let (timeout, most) = (format_duration(*timeout), format_duration(*most));
        let why = format!("`timeout` is {timeout}, but no call of the agent `{}` may exceed {most}", agent.name);
        Some(config.mistake(&format!("tools.{name}.timeout"), &why).hint("raise limits.max_tool_timeout"))
    };
    config.tools.iter().filter_map(mistake).collect()
}

/// Selects the names of an agent's tools from its toolbox and from the tool that is registered last. The list may also
/// name built-in tools that this run does not have (a person to ask, skills).
pub(super) fn select_names(
    config: &Config,
    agent: &AgentConfig,
    toolbox: &Toolbox,
    last: Option<&ToolDefinition>,
) -> Result<Vec<String>, String> {
    let present = toolbox.all().chain(last).map(|tool| SelectableName { name: &tool.name, default: tool.default });
    let is_last = |name: &str| last.is_some_and(|last| last.name == name);
    let absent = tools::NAMES.into_iter().filter(|name| toolbox.get(name).is_none() && !is_last(name));
    let absent = absent.chain(list_commands(config).map(|tool| tool.name.as_str()));
    let absent = absent.map(|name| SelectableName { name, default: false });
    let absent = absent.chain(find_awaited(config, &agent.tools));
    let choices: Vec<SelectableName<'_>> = present.chain(absent).collect();
    select_narrowed(&agent.tools, &agent.narrowed.tools, &choices)
}

fn register_tool(toolbox: &mut Toolbox, config: &Config, tool: Arc<dyn Tool>) {
    let name = &tool.definition().name;
    let terms = config.tools.get(name).map_or_else(ToolTerms::default, |said| ToolTerms {
        file: said.command.as_ref().and_then(|_| config.where_tool_is(name)).map(str::to_owned),
        timeout: said.timeout.map(Into::into),
        max_tokens: said.max_tokens,
        format: said.format,
        encoding: said.encoding,
        requires_confirmation: said.requires_confirmation,
    });
    toolbox.register(tool, terms);
}
