//! Resolves a reply of the router: a tool, an agent, a flow, or a question.

use serde_json::Value;

use crate::base::text;

use super::graph::{AGENT, Choices, FLOW};
use super::reply::RouteReply;

/// The lowest confidence with which a route is taken.
pub const LEAST_CONFIDENCE: f64 = 0.6;
/// The built-in flow of an ordinary conversation.
pub const DIRECT: &str = "direct";
/// The built-in flow that plans.
pub const PLAN: &str = "plan";
/// The name for no choice.
const NONE: &str = "none";

/// The destination of a request.
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
    /// An unknown name. The error is for the model.
    Unknown {
        error: String,
    },
}

impl Route {
    /// The kind and the name for events.
    pub fn describe_route(&self) -> (&'static str, &str) {
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

/// Resolves a reply of the router.
pub fn choose_route(reply: &RouteReply, choices: &Choices<'_>) -> Route {
    let name = reply.tool_name.trim();
    let is_sure = reply.confidence >= LEAST_CONFIDENCE;
    if !is_sure || name.is_empty() || name.eq_ignore_ascii_case(NONE) {
        let reasoning = reply.reasoning.trim();
        let question = if reasoning.is_empty() { "What exactly should be done?" } else { reasoning };
        return Route::Ask { question: question.to_owned() };
    }
    let candidates = list_candidates(choices);
    let exact = candidates.iter().find(|candidate| candidate.full == name);
    let bare: Vec<&RouteCandidate<'_>> = candidates.iter().filter(|candidate| candidate.name == name).collect();
    match (exact, bare.as_slice()) {
        (Some(candidate), _) => candidate.route(&reply.tool_input),
        (None, [candidate]) => candidate.route(&reply.tool_input),
        (None, []) => Route::Unknown { error: describe_unknown(name, &candidates) },
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|candidate| candidate.full.as_str()).collect();
            Route::Unknown { error: format!("`{name}` is ambiguous; write {}.", names.join(" or ")) }
        }
    }
}

/// A possible destination.
struct RouteCandidate<'a> {
    name: &'a str,
    /// The name as the router sees it.
    full: String,
    to: fn(String, Value) -> Route,
}

impl RouteCandidate<'_> {
    fn route(&self, input: &Value) -> Route {
        (self.to)(self.name.to_owned(), input.clone())
    }
}

fn list_candidates<'a>(choices: &Choices<'a>) -> Vec<RouteCandidate<'a>> {
    let of = |prefix: &str, name: &'a str, to: fn(String, Value) -> Route| RouteCandidate {
        name,
        full: format!("{prefix}{name}"),
        to,
    };
    let tools = choices.tools.keys().map(|name| of("", name, |name, input| Route::Tool { name, input }));
    let agents = choices.agents.iter().map(|name| of(AGENT, name, |name, input| Route::Agent { name, input }));
    let flows = choices.flows.iter().map(|name| of(FLOW, name, |name, input| Route::Flow { name, input }));
    let built_in = [of(FLOW, DIRECT, |_, _| Route::Direct), of(FLOW, PLAN, |_, _| Route::Plan)];
    let is_own = |candidate: &RouteCandidate<'_>| built_in.iter().all(|own| own.full != candidate.full);
    let mut all: Vec<RouteCandidate<'a>> = tools.chain(agents).chain(flows.filter(is_own)).collect();
    all.extend(built_in);
    all
}

fn describe_unknown(name: &str, candidates: &[RouteCandidate<'_>]) -> String {
    let names = || candidates.iter().map(|candidate| candidate.full.as_str());
    let near = text::find_nearest(name, names());
    let hint = if near.is_empty() {
        format!("The candidates are {}, or none.", names().collect::<Vec<_>>().join(", "))
    } else {
        format!("Did you mean {}?", near.join(" or "))
    };
    format!("There is no candidate `{}`. {hint}", text::one_line(name, 80))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::base::validator::Validator;

    use super::*;

    #[test]
    fn a_name_leads_where_it_says() {
        let schema = Validator::new(&json!({})).expect("a schema");
        let choices = Choices {
            tools: [("grep", &schema), ("review", &schema)].into(),
            agents: ["explore", "review", "triage"].into(),
            flows: ["triage", "publish"].into(),
        };
        let input = || json!({ "a": 1 });
        let asks = |question: &str| Route::Ask { question: question.to_owned() };
        for (name, confidence, expected) in [
            ("grep", 0.9, Ok(Route::Tool { name: "grep".to_owned(), input: input() })),
            (" grep ", 0.6, Ok(Route::Tool { name: "grep".to_owned(), input: input() })),
            ("grep", 0.59, Ok(asks("why"))),
            ("gone", 0.1, Ok(asks("why"))),
            ("none", 1.0, Ok(asks("why"))),
            ("None", 1.0, Ok(asks("why"))),
            ("", 1.0, Ok(asks("why"))),
            ("agent:explore", 0.9, Ok(Route::Agent { name: "explore".to_owned(), input: input() })),
            ("explore", 0.9, Ok(Route::Agent { name: "explore".to_owned(), input: input() })),
            ("review", 0.9, Ok(Route::Tool { name: "review".to_owned(), input: input() })),
            ("agent:review", 0.9, Ok(Route::Agent { name: "review".to_owned(), input: input() })),
            ("flow:publish", 0.9, Ok(Route::Flow { name: "publish".to_owned(), input: input() })),
            ("publish", 0.9, Ok(Route::Flow { name: "publish".to_owned(), input: input() })),
            ("flow:direct", 0.9, Ok(Route::Direct)),
            ("direct", 0.9, Ok(Route::Direct)),
            ("flow:plan", 0.9, Ok(Route::Plan)),
            ("plan", 0.9, Ok(Route::Plan)),
            ("triage", 0.9, Err("`triage` is ambiguous; write agent:triage or flow:triage.")),
            ("grap", 0.9, Err("There is no candidate `grap`. Did you mean grep?")),
            ("agent:grep", 0.9, Err("There is no candidate `agent:grep`.")),
            ("zzz", 0.9, Err("The candidates are grep, review, agent:explore,")),
        ] {
            let reasoning = "why".to_owned();
            let reply = RouteReply { reasoning, tool_name: name.to_owned(), tool_input: input(), confidence };
            match (choose_route(&reply, &choices), expected) {
                (route, Ok(expected)) => assert_eq!(route, expected, "{name} {confidence}"),
                (Route::Unknown { error }, Err(part)) => assert!(error.contains(part), "{name}: {error}"),
                (route, Err(_)) => panic!("{name}: {route:?}"),
            }
        }
        let silent = RouteReply {
            reasoning: " ".to_owned(),
            tool_name: "none".to_owned(),
            tool_input: Value::Null,
            confidence: f64::NAN,
        };
        assert_eq!(choose_route(&silent, &choices), asks("What exactly should be done?"));
    }
}
