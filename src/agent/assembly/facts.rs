//! Collects the facts that prompts read, once, when an agent is assembled.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::agent::Toolbox;
use crate::base::present;
use crate::config::{AgentConfig, Config, Permission};
use crate::files::workspace::Workspace;
use crate::model::ModelInfo;
use crate::prompt::{
    AgentFacts, Instructions, PromptContext, SessionFacts, SkillFacts, ToolFacts, WorkspaceFacts,
};
use crate::safety::process::shell_name;
use crate::skills::{self, RunVariables, SkillCatalogue};
use crate::template;

/// Collects the facts of an agent in a workspace. The session and the clock are filled in when a prompt is rendered.
pub(super) fn gather_facts(
    config: &Config,
    agent: &AgentConfig,
    workspace: &Workspace,
    toolbox: &Toolbox,
    catalogue: &SkillCatalogue,
    model: &ModelInfo,
    around: &RunVariables,
) -> (PromptContext, Vec<String>) {
    let Instructions { text: instructions, warnings, .. } = Instructions::read(workspace, &config.dirs.config);
    let offered = catalogue.list_offered().map(|skill| (skill.name.as_str(), skill.description.as_str()));
    let listing = skills::fit_listing(offered, model.context_window);
    let skills =
        listing.skills.into_iter().map(|(name, description)| SkillFacts { name, description, loaded: false });
    let facts = PromptContext {
        agent: AgentFacts {
            name: agent.name.clone(),
            description: agent.description.clone(),
            model: model.id.clone(),
            profile: agent.profile.or(model.profile),
            // Filled in with the policy.
            approval: "",
            has_walls: false,
            tools: list_tools(toolbox),
            skills: skills.collect(),
            skills_left_out: listing.left_out,
        },
        session: SessionFacts { user_id: config.env.user().to_owned(), ..SessionFacts::default() },
        workspace: WorkspaceFacts {
            dir: around.dir.clone(),
            git_branch: around.git_branch.clone(),
            os: around.os.clone(),
            shell: around.shell.clone(),
        },
        env: config.env.for_prompts(&config.settings.prompts.allow_env),
        open_env: config.env.for_prompts(&[]),
        datetime: template::make_clock(Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::system())),
        vars: around.vars.clone(),
        state: Map::new(),
        instructions,
        ending: None,
        summary: None,
    };
    (facts, warnings)
}

/// The variables that the body of a skill may read, if it is a template.
pub(super) fn gather_surroundings(
    config: &Config,
    workspace: &Workspace,
    vars: &[(String, Value)],
) -> RunVariables {
    RunVariables {
        dir: present::quote_word(&workspace.root().display().to_string()).into_owned(),
        // One word: the name is untrusted text in a prompt.
        git_branch: workspace.git_branch().map(|branch| present::quote_word(&branch).into_owned()),
        os: std::env::consts::OS.to_owned(),
        shell: shell_name().to_owned(),
        user_id: config.env.user().to_owned(),
        vars: vars.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

/// The tools of a toolbox. Of more than a prompt has room for, the servers are listed instead of their tools, and of
/// those that are not up yet in any case.
fn list_tools(toolbox: &Toolbox) -> Vec<ToolFacts> {
    /// The most that are left out and listed one by one.
    const MOST_LISTED: usize = 60;
    let mut tools: Vec<ToolFacts> = toolbox
        .all()
        .filter(|tool| !toolbox.is_hidden(&tool.name))
        .map(|tool| ToolFacts {
            name: tool.name.clone(),
            description: tool.summary().to_owned(),
            permission: tool.permission,
            listed: toolbox.is_left_out(&tool.name),
        })
        .collect();
    let is_crowded = tools.iter().filter(|tool| tool.listed).count() > MOST_LISTED;
    for server in toolbox.servers().into_iter().flat_map(|servers| servers.iter()) {
        let (prefix, count) = (format!("{}__", server.name()), server.status().1);
        let is_of_server = |tool: &ToolFacts| tool.listed && tool.name.starts_with(&prefix);
        let description = match count {
            0 if !toolbox.in_two_stages() => continue,
            0 => "the tools of a server that is not up yet: find_tools finds them".to_owned(),
            _ if is_crowded => format!("{count} tools of the server `{}`: find_tools finds them", server.name()),
            _ => continue,
        };
        tools.retain(|tool| !is_of_server(tool));
        let permission = Permission::Write;
        tools.push(ToolFacts { name: format!("{prefix}*"), description, permission, listed: true });
    }
    tools
}
