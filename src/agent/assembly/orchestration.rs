//! Assembles what plans and flows need: the roles of orchestrated modes, each with its model and prompt.

use crate::agent::{Orchestration, Roles, Toolbox};
use crate::config::Mode;
use crate::tools::TASK;

use super::needs::RoleNeeds;
use super::{SetupError, flows, task};

/// Assembles the means of plans and flows, with roles in the modes that use them.
pub(super) fn assemble_roles(
    needs: &RoleNeeds<'_>,
    mode: Mode,
    tools: &Toolbox,
) -> Result<Orchestration, SetupError> {
    let RoleNeeds { config, settings, .. } = needs;
    let roles = &settings.roles;
    let has_task = tools.get(TASK).is_some();
    let others = task::list_helpers(config, settings).filter(|_| has_task);
    let asks_roles = matches!(mode, Mode::Route | Mode::Plan) || needs.options.flow.is_some();
    let assemble = || {
        Ok(Roles {
            router: needs.role("router", &roles.router)?,
            planner: needs.role("planner", &roles.planner)?,
            executor: needs.role("executor", &roles.executor)?,
            reflector: needs.role("reflector", &roles.reflector)?,
        })
    };
    Ok(Orchestration {
        plan_approval: settings.plan_approval,
        roles: asks_roles.then(assemble).transpose()?,
        agents: others.map(|agent| (agent.name.clone(), agent.description.clone())).collect(),
        flows: flows::assemble_flows(needs, mode, tools)?,
    })
}
