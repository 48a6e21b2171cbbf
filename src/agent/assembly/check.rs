//! Finds mistakes that only a run would show: undefined tools, skills and names in prompts, for every configured agent.
//! It uses the functions that assemble an agent, so the check and the run cannot disagree.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use crate::agent::Toolbox;
use crate::config::{AgentConfig, Config, Mistake, PromptSource, RoleConfig};
use crate::files::workspace::Workspace;
use crate::prompt::{PromptContext, Registry, Released};
use crate::safety::Approver;
use crate::skills::RunVariables;

use super::ground::AgentInputs;
use super::{RunOptions, SetupError, flows, layers, servers, toolbox};

/// Finds every mistake in the names that agents use, and every layer that is over its limit. Prompts that do not exist
/// or do not compile are not included: loading the configuration reports them, in `known`.
pub fn check_names(
    config: &Arc<Config>,
    workspace: &Workspace,
    approver: &Arc<dyn Approver>,
    known: &[Mistake],
) -> Vec<Mistake> {
    let mut mistakes = check_model_names(config);
    // Else a mistake reported before may be the cause, in better words.
    let is_news = known.is_empty() && mistakes.is_empty();
    let mut failed: Vec<Mistake> = Vec::new();
    let mut fail = |who: String, error: SetupError| {
        if is_news && !failed.iter().any(|told| told.message == error.message) {
            failed.push(Mistake::in_file(who, error.message));
        }
    };
    // Those whose lists are known are looked at, and none is started.
    let net = Arc::new(super::open_net(config));
    let gather = |agent| servers::gather_servers(config, agent, workspace, &net, None);
    let servers = config.agents.values().find_map(gather).inspect(|servers| servers.leave_unstarted());
    let unstarted = |options| RunOptions { servers: servers.clone(), ..options };
    // The place of a level says more than the agent that uses it.
    for (key, options) in efforts_of_roles(config) {
        let options = unstarted(options);
        if let Err(error) = super::assemble_on(AgentInputs::new(config, workspace, &options, Arc::clone(approver)))
        {
            fail(config.place(&key), error);
        }
    }
    for name in config.agents.keys() {
        let options = RunOptions { agent: Some(name.clone()), servers: servers.clone(), ..RunOptions::default() };
        match super::assemble_on(AgentInputs::new(config, workspace, &options, Arc::clone(approver))) {
            Ok(services) => {
                mistakes.extend(layers::find_layer_mistakes(config, &services.agent));
                // A flow runs with the agent named on the command line, else with the default one.
                let is_default = *name == config.settings.default_agent;
                let flows = config.flows.values().filter(|_| is_default);
                mistakes.extend(flows.flat_map(|flow| flows::find_mistakes(config, flow, &services.agent.tools)));
            }
            Err(error) => fail(format!("agent `{name}`"), error),
        }
    }
    for model in models_of_no_agent(config) {
        let options = unstarted(RunOptions { model: Some(model.to_owned()), ..RunOptions::default() });
        match super::assemble_on(AgentInputs::new(config, workspace, &options, Arc::clone(approver))) {
            Ok(_) if is_of_part(config, model) => {}
            Ok(services) => {
                // A share that is too small is so with every model: it is reported once.
                let mut found = layers::find_layer_mistakes(config, &services.agent);
                found.retain(|new| !mistakes.iter().any(|old| place(old) == place(new)));
                mistakes.extend(found);
            }
            Err(error) => fail(format!("model `{model}`"), error),
        }
    }
    mistakes.extend(failed);
    mistakes
}

fn place(mistake: &Mistake) -> (&str, Option<usize>, Option<usize>) {
    (&mistake.file, mistake.line, mistake.column)
}

fn roles_of(agent: &AgentConfig) -> [(&'static str, &RoleConfig); 4] {
    let roles = &agent.roles;
    [
        ("router", &roles.router),
        ("planner", &roles.planner),
        ("executor", &roles.executor),
        ("reflector", &roles.reflector),
    ]
}

/// The levels of reasoning that roles name, by their keys, each as a run would choose it.
fn efforts_of_roles(config: &Config) -> Vec<(String, RunOptions)> {
    let roles = config.agents.values().flat_map(|agent| roles_of(agent).map(|role| (&agent.name, role)));
    let effort = |(agent, (name, role)): (&String, (&str, &RoleConfig))| {
        let (model, effort) = (role.model.clone(), Some(role.effort.clone()?));
        let options = RunOptions { agent: Some(agent.clone()), model, effort, ..RunOptions::default() };
        Some((format!("agents.{agent}.roles.{name}.effort"), options))
    };
    roles.filter_map(effort).collect()
}

/// The configured models that no agent names: roles and steps of flows do, or `--model` chooses them.
fn models_of_no_agent(config: &Config) -> impl Iterator<Item = &str> {
    let named: BTreeSet<&str> = config.agents.values().map(AgentConfig::model_name).collect();
    config.models.keys().map(String::as_str).filter(move |name| !named.contains(name))
}

/// True if a role or a step of a flow names the model, which answers that alone.
fn is_of_part(config: &Config, model: &str) -> bool {
    let mut roles = config.agents.values().flat_map(roles_of);
    let mut steps = config.flows.values().flat_map(|flow| flow.all_steps());
    roles.any(|(_, role)| role.model.as_deref() == Some(model))
        || steps.any(|(_, step)| step.model.as_deref() == Some(model))
}

fn check_model_names(config: &Config) -> Vec<Mistake> {
    let registry = Registry::new(&config.prompt_dirs);
    let mut mistakes = toolbox::find_misnamed(config);
    for agent in config.agents.values() {
        check_prompts(config, agent, &registry, &mut mistakes);
        mistakes.extend(toolbox::too_slow(config, agent));
        let mut wrong = |key: &str, why: &str| {
            mistakes.push(config.mistake(&format!("agents.{}.{key}", agent.name), why));
        };
        if let Err(why) = super::skills::open_skills(config, agent, RunVariables::default(), None) {
            wrong("skills", &why);
        }
        if let Err(why) = toolbox::select_names(config, agent, &Toolbox::default(), None) {
            wrong("tools", &why);
        }
    }
    mistakes
}

fn check_prompts(config: &Config, agent: &AgentConfig, registry: &Registry, mistakes: &mut Vec<Mistake>) {
    let sources = [
        ("system_prompt", &agent.system_prompt, None, false),
        ("termination_summary_prompt", &agent.termination_summary_prompt, Some(json!(agent.limits)), false),
        ("compression_prompt", &agent.compression_prompt, None, true),
    ];
    for (key, source, ending_limits, summary) in sources {
        let Ok(Released { stable: prompt, .. }) = registry.resolve(source, key, false) else { continue };
        let context = PromptContext::anything(ending_limits, summary);
        let mut missing = prompt.undefined_in(&context);
        missing.retain(|name| !prompt.asks_for(name, &context));
        if missing.is_empty() {
            continue;
        }
        let names = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let (part, which) = match source {
            PromptSource::Registered(_) => (".ref", format!("the prompt {}", prompt.origin)),
            PromptSource::Inline(_) => ("", "the prompt".to_owned()),
        };
        let key = format!("agents.{}.{key}{part}", agent.name);
        mistakes.push(config.mistake(&key, &format!("{which} reads {names}, which nothing defines")));
    }
}
