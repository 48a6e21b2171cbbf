//! Carries out a request by roles: a router chooses, a planner lists steps, an executor fills in a call, a reflector
//! judges. Decisions are pure functions over typed replies; the drivers do what they decide with the turn's own means.
//!
//! Replies of roles are no part of the conversation. The calls of a plan are: each stands there as a step that no model
//! wrote, so that what follows can refer to them.

pub mod reply;
mod scratchpad;
pub mod reference;
pub mod command;
pub mod graph;
pub mod progress;
pub mod verdict;
pub mod route;
mod shown;
mod role;
mod given;
mod input;
mod steps;
mod reflect;
mod review;
mod plan;
mod routing;
mod flow;
mod explore;

pub use flow::{Asked, Chosen, Flows};
pub use role::{Role, Roles};

use serde_json::{Value, json};

use crate::config::Mode;

use super::Agent;
use graph::Choices;

/// The means of the modes `route` and `plan`, and of flows.
pub struct Orchestration {
    /// A person sees a plan before it runs.
    pub plan_approval: bool,
    pub roles: Roles,
    /// The agents that take jobs, besides the running one.
    pub agents: Vec<Colleague>,
    pub flows: Flows,
}

/// An agent that takes jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Colleague {
    pub name: String,
    /// When to use it.
    pub description: String,
}

impl Orchestration {
    /// The agents that take jobs, as prompts list them.
    fn colleagues(&self) -> Value {
        let told = |agent: &Colleague| json!({ "name": agent.name, "description": agent.description });
        self.agents.iter().map(told).collect()
    }

    /// What steps and routes may name.
    fn choices<'a>(&'a self, agent: &'a Agent) -> Choices<'a> {
        let tools = agent.tools.names().filter(|name| plan::is_for_plans(name));
        let with_schema = |name: &'a str| Some((name, agent.tools.get(name)?.validator()));
        Choices {
            tools: tools.filter_map(with_schema).collect(),
            agents: self.agents.iter().map(|agent| agent.name.as_str()).collect(),
            flows: self.flows.all.keys().map(String::as_str).collect(),
        }
    }

    /// Whether a mode needs it.
    #[must_use]
    pub fn is_for(mode: Mode) -> bool {
        matches!(mode, Mode::Route | Mode::Plan)
    }
}
