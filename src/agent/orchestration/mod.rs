//! Carries out a request by roles: a router chooses, a planner lists steps, an executor fills in a call, a reflector
//! judges. Decisions are pure functions over typed replies; the drivers carry them out with the means of the turn.
//!
//! Replies of roles are not part of the conversation. The calls of a plan are: each is recorded as a step that no model
//! wrote, so later steps can refer to it.

pub mod reply;
mod scratchpad;
pub mod reference;
mod code;
pub mod command;
pub mod graph;
pub mod progress;
pub mod verdict;
pub mod route;
mod shown;
mod role;
mod input;
mod steps;
mod reflect;
mod review;
mod plan;
mod proposal;
mod routing;
mod flow;
mod by_flow;
mod explore;
mod title;
#[cfg(test)]
mod tests;

pub use flow::{ChosenFlow, FlowPrompt, Flows};
pub use role::{Role, Roles};
pub use title::{Titler, title_conversation};

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::tools::{BACKGROUND, CALL_TOOL, FIND_TOOLS, PROPOSE_PLAN, TASK};

use super::Agent;
use graph::Choices;

/// The means of plans and flows.
#[derive(Default)]
pub struct Orchestration {
    /// A person sees a plan before it runs.
    pub plan_approval: bool,
    /// The roles, in the modes that use them and for flows.
    pub roles: Option<Roles>,
    /// The agents that take jobs, besides the running one, with the text that says when to use each.
    pub agents: BTreeMap<String, String>,
    pub flows: Flows,
}

impl Orchestration {
    /// The roles.
    ///
    /// # Errors
    /// The mode has none.
    fn roles(&self) -> Result<&Roles, String> {
        self.roles.as_ref().ok_or_else(|| "no role is asked in this mode".to_owned())
    }
}

impl Agent {
    /// The candidates for a request, as the prompts of the router and the planner list them.
    fn candidates(&self, request: &str) -> Value {
        let told = |(name, description)| json!({ "name": name, "description": description });
        let agents: Value = self.orchestration.agents.iter().map(told).collect();
        let fitting = self.tools.find_fitting(request);
        let tools = shown::list_tools(self, |name| is_for_plans(name) && fitting.contains(&name));
        json!({ "tools": tools, "agents": agents, "user_request": request })
    }

    /// The names that steps and routes may use.
    fn choices(&self) -> Choices<'_> {
        let tools = self.tools.names().filter(|name| is_for_plans(name));
        Choices {
            tools: tools.filter_map(|name| Some((name, self.tools.get(name)?.validator()))).collect(),
            agents: self.orchestration.agents.keys().map(String::as_str).collect(),
            flows: self.orchestration.flows.all.keys().map(String::as_str).collect(),
        }
    }
}

/// True if a step of a plan may call this tool. Agents are named directly, and the other excluded tools only serve a
/// model that thinks between its calls.
fn is_for_plans(tool: &str) -> bool {
    ![TASK, "todo", BACKGROUND, FIND_TOOLS, CALL_TOOL, PROPOSE_PLAN].contains(&tool)
}
