//! The flows of a run: the chosen one with its inputs, the prompts of their steps, and the mistakes that show only once
//! the tools of an agent are known.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::agent::{ChosenFlow, FlowPrompt, Flows, Toolbox};
use crate::base::text;
use crate::config::{ASK_USER, Config, FlowConfig, Mistake, Mode, StepWork};
use crate::tools::TASK;

use super::flow_choice::FlowChoice;
use super::needs::RoleNeeds;
use super::{RunOptions, SetupError};

/// Collects the flows that a run may need: the chosen one with those that it runs; all of them if a router picks.
pub(super) fn assemble_flows(needs: &RoleNeeds<'_>, mode: Mode, tools: &Toolbox) -> Result<Flows, SetupError> {
    let RoleNeeds { config, options, .. } = needs;
    let chosen = options.flow.as_ref().map(|choice| check_chosen(config, options, choice)).transpose()?;
    let names: BTreeSet<&str> = match &options.flow {
        Some(choice) => find_reachable(config, &choice.name),
        None if mode == Mode::Route => config.flows.keys().map(String::as_str).collect(),
        None => BTreeSet::new(),
    };
    let all: BTreeMap<String, FlowConfig> = config
        .flows
        .iter()
        .filter(|(name, _)| names.contains(name.as_str()))
        .map(|(name, flow)| (name.clone(), flow.clone()))
        .collect();
    let wrong: Vec<Mistake> = all.values().flat_map(|flow| find_mistakes(config, flow, tools)).collect();
    if !wrong.is_empty() {
        return Err(SetupError::mistakes(&wrong));
    }
    let mut prompts = BTreeMap::new();
    for flow in all.values() {
        for (key, step) in flow.all_steps() {
            if let Some(source) = &step.prompt {
                let (key, what) = (format!("flows.{}.{key}", flow.name), format!("the step {}", step.id));
                let prompt = needs.resolve_prompt(&key, &what, source)?;
                let effort = step.model.as_ref().and(options.effort.as_ref());
                let model = needs.connect(step.model.as_ref(), effort)?;
                prompts.insert((flow.name.clone(), step.id.clone()), FlowPrompt { prompt, model });
            }
        }
    }
    Ok(Flows { all, prompts, chosen })
}

/// Checks the inputs of the chosen flow.
fn check_chosen(config: &Config, options: &RunOptions, choice: &FlowChoice) -> Result<ChosenFlow, SetupError> {
    let flow = config.flow(&choice.name).map_err(SetupError::usage)?;
    let given: Map<String, Value> = options.vars.iter().cloned().collect();
    let task = flow.task_input().filter(|_| choice.has_task).map(str::to_owned);
    let mut complete = given.clone();
    complete.extend(task.clone().map(|task| (task, Value::String(String::new()))));
    if let Err(why) = flow.inputs_of(&complete)
        && !(choice.goes_on && given.is_empty())
    {
        return Err(SetupError::usage(format!("{why} (--var NAME=VALUE gives an input)")));
    }
    Ok(ChosenFlow { name: choice.name.clone(), given, task })
}

/// The names of a flow and of those that it runs.
fn find_reachable<'c>(config: &'c Config, name: &'c str) -> BTreeSet<&'c str> {
    let mut found = BTreeSet::new();
    let mut rest = vec![name];
    while let Some(name) = rest.pop() {
        if let Some(flow) = config.flows.get(name).filter(|_| found.insert(name)) {
            rest.extend(flow.all_steps().into_iter().filter_map(|(_, step)| step.flow.as_deref()));
        }
    }
    found
}

/// Finds tools that an agent does not have, and arguments that its tools do not take.
pub(super) fn find_mistakes(config: &Config, flow: &FlowConfig, tools: &Toolbox) -> Vec<Mistake> {
    let mut found = Vec::new();
    for (key, step) in flow.all_steps() {
        let mut tell = |key: String, message: String| {
            found.push(config.mistake(&format!("flows.{}.{key}", flow.name), &message));
        };
        match step.works().next() {
            Some(StepWork::Agent(_)) if tools.get(TASK).is_none() => {
                tell(
                    format!("{key}.agent"),
                    "the running agent has no tool `task`, which gives agents jobs".to_owned(),
                );
            }
            Some(StepWork::Tool(name)) => match tools.get(name) {
                // Where nobody is there to be asked, its answer is given beforehand.
                None if name == ASK_USER => {}
                None => {
                    let near = text::find_nearest(name, tools.names());
                    let hint = if near.is_empty() {
                        String::new()
                    } else {
                        format!("; did you mean `{}`?", near.join("` or `"))
                    };
                    tell(format!("{key}.tool"), format!("the agent has no tool `{name}`{hint}"));
                }
                Some(tool) => {
                    if step.retry > 0 && !step.idempotent && !tool.tool.idempotent() {
                        let why = format!(
                            "`{name}` may change something: a step that is retried says `idempotent: true`"
                        );
                        tell(format!("{key}.retry"), why);
                    }
                    let parameters = &tool.tool.definition().parameters;
                    for (name, why) in find_misfits(&step.with, parameters) {
                        let place =
                            if step.with.contains_key(&name) { format!("with.{name}") } else { "with".to_owned() };
                        let place = if step.with.is_empty() { "tool".to_owned() } else { place };
                        tell(format!("{key}.{place}"), why);
                    }
                }
            },
            _ => {}
        }
    }
    found
}

/// Finds missing and unknown arguments.
fn find_misfits(with: &Map<String, Value>, parameters: &Value) -> Vec<(String, String)> {
    let required = parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|name| !with.contains_key(*name));
    let mut found: Vec<(String, String)> =
        missing.map(|name| (name.to_owned(), format!("the tool needs the argument `{name}`"))).collect();
    let known = parameters["properties"].as_object();
    if parameters["additionalProperties"] == false {
        let unknown = with.keys().filter(|name| !known.is_some_and(|known| known.contains_key(*name)));
        found.extend(unknown.map(|name| (name.clone(), format!("the tool takes no argument `{name}`"))));
    }
    found
}
