//! Finds mistakes that only a run would show: undefined tools, skills and names in prompts, for every configured agent.
//! It uses the functions that assemble an agent, so the check and the run cannot disagree.

use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;

use serde_json::json;

use crate::agent::Toolbox;
use crate::config::{AgentConfig, Config, Mistake, PromptSource};
use crate::files::workspace::Workspace;
use crate::prompt::{PromptContext, Registry, Released};
use crate::safety::Approver;
use crate::skills::RunVariables;

use super::ground::AgentInputs;
use super::{RunOptions, flows, layers, toolbox};

/// Finds every mistake in the names that agents use, and every layer that is over its limit. Prompts that do not exist
/// or do not compile are not included: loading the configuration reports them, in `known`.
pub fn check_names(
    config: &Arc<Config>,
    workspace: &Workspace,
    approver: &Arc<dyn Approver>,
    known: &[Mistake],
) -> Vec<Mistake> {
    let mut mistakes = check_model_names(config);
    for name in config.agents.keys() {
        let options = RunOptions { agent: Some(name.clone()), ..RunOptions::default() };
        match super::assemble_on(AgentInputs::new(config, workspace, &options, Arc::clone(approver))) {
            Ok(services) => {
                mistakes.extend(layers::find_layer_mistakes(config, &services.agent));
                // A flow runs with the agent named on the command line, else with the default one.
                let is_default = *name == config.settings.default_agent;
                let flows = config.flows.values().filter(|_| is_default);
                mistakes.extend(flows.flat_map(|flow| flows::find_mistakes(config, flow, &services.agent.tools)));
            }
            // Otherwise a mistake reported before may be the cause, in better words.
            Err(error) if known.is_empty() && mistakes.is_empty() => {
                mistakes.push(Mistake::in_file(format!("agent `{name}`"), error.message));
            }
            Err(_) => {}
        }
    }
    for model in models_for_a_flag(config) {
        let options = RunOptions { model: Some(model.to_owned()), ..RunOptions::default() };
        let found = match super::assemble_on(AgentInputs::new(config, workspace, &options, Arc::clone(approver))) {
            Ok(services) => layers::find_layer_mistakes(config, &services.agent),
            Err(error) if known.is_empty() && mistakes.is_empty() => {
                vec![Mistake::in_file(format!("model `{model}`"), error.message)]
            }
            Err(_) => Vec::new(),
        };
        // A share that is too small is so with every model: it is reported once.
        let is_new = |new: &Mistake| !mistakes.iter().any(|old| place(old) == place(new));
        let found: Vec<Mistake> = found.into_iter().filter(is_new).collect();
        mistakes.extend(found);
    }
    mistakes
}

fn place(mistake: &Mistake) -> (&str, Option<usize>, Option<usize>) {
    (&mistake.file, mistake.line, mistake.column)
}

/// The configured models that only `--model` chooses: no agent, role or step of a flow names them.
fn models_for_a_flag(config: &Config) -> impl Iterator<Item = &str> {
    let of_agents = config.agents.values().flat_map(|agent| {
        let roles = &agent.roles;
        let roles = [&roles.router, &roles.planner, &roles.executor, &roles.reflector];
        iter::once(agent.model_name()).chain(roles.into_iter().filter_map(|role| role.model.as_deref()))
    });
    let of_steps =
        config.flows.values().flat_map(|flow| flow.all_steps()).filter_map(|(_, step)| step.model.as_deref());
    let named: BTreeSet<&str> = of_agents.chain(of_steps).collect();
    config.models.keys().map(String::as_str).filter(move |name| !named.contains(name))
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
