//! Assembles the roles of orchestrated modes, each with its model and prompt.

use crate::agent::{Orchestration, Roles, Toolbox};
use crate::config::Mode;
use crate::tools::TASK;

use super::needs::RoleNeeds;
use super::{SetupError, flows, task};

/// Assembles the roles of an agent; `None` in a mode that uses none.
pub(super) fn assemble_roles(
    needs: &RoleNeeds<'_>,
    mode: Mode,
    tools: &Toolbox,
) -> Result<Option<Orchestration>, SetupError> {
    if !Orchestration::is_for(mode) && needs.options.flow.is_none() {
        return Ok(None);
    }
    let RoleNeeds { config, settings, .. } = needs;
    let roles = &settings.roles;
    let has_task = tools.get(TASK).is_some();
    let others = task::list_helpers(config, settings).filter(|_| has_task);
    Ok(Some(Orchestration {
        plan_approval: settings.plan_approval,
        roles: Roles {
            router: needs.role("router", &roles.router)?,
            planner: needs.role("planner", &roles.planner)?,
            executor: needs.role("executor", &roles.executor)?,
            reflector: needs.role("reflector", &roles.reflector)?,
        },
        agents: others.map(|agent| (agent.name.clone(), agent.description.clone())).collect(),
        flows: flows::assemble_flows(needs, mode, tools)?,
    }))
}
