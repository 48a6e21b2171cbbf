//! The roles of the modes that ask them, each with its own model and prompt.

use std::sync::Arc;

use crate::agent::{Colleague, Orchestration, Role, Roles, Toolbox};
use crate::config::{Mode, RoleConfig};
use crate::llm;

use super::beside::Common;
use super::models::chosen_model;
use super::{Options, SetupError, flows};

/// The tool by which agents take jobs.
const TASK: &str = "task";

/// The roles of an agent; `None` in a mode that asks none.
pub(super) fn assemble(
    common: &Common<'_>,
    mode: Mode,
    tools: &Toolbox,
) -> Result<Option<Orchestration>, SetupError> {
    if !Orchestration::is_for(mode) && common.options.flow.is_none() {
        return Ok(None);
    }
    let Common { config, settings, .. } = common;
    let roles = &settings.roles;
    let has_task = tools.get(TASK).is_some();
    let others = config.agents.values().filter(|agent| has_task && agent.name != settings.name);
    Ok(Some(Orchestration {
        plan_approval: settings.plan_approval,
        roles: Roles {
            router: common.role("router", &roles.router)?,
            planner: common.role("planner", &roles.planner)?,
            executor: common.role("executor", &roles.executor)?,
            reflector: common.role("reflector", &roles.reflector)?,
        },
        agents: others
            .map(|agent| Colleague { name: agent.name.clone(), description: agent.description.clone() })
            .collect(),
        flows: flows::assemble(common, mode, tools)?,
    }))
}

impl Common<'_> {
    fn role(&self, name: &'static str, role: &RoleConfig) -> Result<Role, SetupError> {
        let Self { config, settings, options, registry, model, around } = self;
        let key = format!("agents.{}.roles.{name}.prompt", settings.name);
        let origin = format!("{}: roles.{name}.prompt", config.place(&key));
        let source = role.prompt_of(name);
        let prompt =
            registry.of(&source, &origin, config.is_of_project(&key)).map_err(SetupError::configuration)?;
        let model = if role.model.is_none() && role.effort.is_none() {
            Arc::clone(model)
        } else {
            let own = Options {
                model: role.model.clone().or_else(|| options.model.clone()),
                effort: role.effort.clone(),
                ..(*options).clone()
            };
            let chosen = chosen_model(config, settings, &own)?;
            llm::connect(&chosen, around).map_err(SetupError::configuration)?
        };
        Ok(Role::new(name, model, prompt, role.reasoning))
    }
}
