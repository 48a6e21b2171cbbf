//! What a reply of the router comes to: a tool, an agent, a flow, or a question.

use serde_json::Value;

use crate::text;

use super::graph::{AGENT, Choices, FLOW};
use super::reply::RouteReply;

/// The least confidence that a route is taken with.
pub const LEAST_CONFIDENCE: f64 = 0.6;
/// The built-in flow of an ordinary conversation.
pub const DIRECT: &str = "direct";
/// The built-in flow that plans.
pub const PLAN: &str = "plan";
/// What a router names that chooses nothing.
const NONE: &str = "none";

/// Where a request goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Route {
    Tool {
        name: String,
        input: Value,
    },
    Agent {
        name: String,
        input: Value,
    },
    Flow {
        name: String,
        input: Value,
    },
    /// An ordinary conversation.
    Direct,
    /// A plan.
    Plan,
    /// Nothing fits, or the choice is unsure: the person is asked.
    Ask {
        question: String,
    },
    /// There is nothing of that name. The error is for the model.
    Unknown {
        error: String,
    },
}

impl Route {
    /// The kind and the name, as events carry them.
    #[must_use]
    pub fn described(&self) -> (&'static str, &str) {
        match self {
            Self::Tool { name, .. } => ("tool", name),
            Self::Agent { name, .. } => ("agent", name),
            Self::Flow { name, .. } => ("flow", name),
            Self::Direct => ("flow", DIRECT),
            Self::Plan => ("flow", PLAN),
            Self::Ask { .. } | Self::Unknown { .. } => (NONE, NONE),
        }
    }
}

/// Follows a reply of the router.
#[must_use]
pub fn choose(reply: &RouteReply, choices: &Choices<'_>) -> Route {
    let name = reply.tool_name.trim();
    let is_sure = reply.confidence >= LEAST_CONFIDENCE;
    if !is_sure || name.is_empty() || name.eq_ignore_ascii_case(NONE) {
        let reasoning = reply.reasoning.trim();
        let question = if reasoning.is_empty() { "What exactly should be done?" } else { reasoning };
        return Route::Ask { question: question.to_owned() };
    }
    let candidates = candidates(choices);
    let exact = candidates.iter().find(|candidate| candidate.full == name);
    let bare: Vec<&Candidate<'_>> = candidates.iter().filter(|candidate| candidate.name == name).collect();
    match (exact, bare.as_slice()) {
        (Some(candidate), _) => candidate.route(&reply.tool_input),
        (None, [candidate]) => candidate.route(&reply.tool_input),
        (None, []) => Route::Unknown { error: unknown(name, &candidates) },
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|candidate| candidate.full.as_str()).collect();
            Route::Unknown { error: format!("`{name}` is ambiguous; write {}.", names.join(" or ")) }
        }
    }
}

/// One thing that a request can go to.
struct Candidate<'a> {
    name: &'a str,
    /// The name as the router sees it.
    full: String,
    to: fn(String, Value) -> Route,
}

impl Candidate<'_> {
    fn route(&self, input: &Value) -> Route {
        (self.to)(self.name.to_owned(), input.clone())
    }
}

fn candidates<'a>(choices: &Choices<'a>) -> Vec<Candidate<'a>> {
    let of = |prefix: &str, name: &'a str, to: fn(String, Value) -> Route| Candidate {
        name,
        full: format!("{prefix}{name}"),
        to,
    };
    let tools = choices.tools.keys().map(|name| of("", name, |name, input| Route::Tool { name, input }));
    let agents = choices.agents.iter().map(|name| of(AGENT, name, |name, input| Route::Agent { name, input }));
    let flows = choices.flows.iter().map(|name| of(FLOW, name, |name, input| Route::Flow { name, input }));
    let built_in = [of(FLOW, DIRECT, |_, _| Route::Direct), of(FLOW, PLAN, |_, _| Route::Plan)];
    let is_own = |candidate: &Candidate<'_>| built_in.iter().all(|own| own.full != candidate.full);
    let mut all: Vec<Candidate<'a>> = tools.chain(agents).chain(flows.filter(is_own)).collect();
    all.extend(built_in);
    all
}

fn unknown(name: &str, candidates: &[Candidate<'_>]) -> String {
    let names = || candidates.iter().map(|candidate| candidate.full.as_str());
    let near = text::nearest(name, names());
    let hint = if near.is_empty() {
        format!("The candidates are {}, or none.", names().collect::<Vec<_>>().join(", "))
    } else {
        format!("Did you mean {}?", near.join(" or "))
    };
    format!("There is no candidate `{}`. {hint}", text::one_line(name, 80))
}
