//! The shape of `flows/NAME.yaml`: fixed steps of tools, prompts, agents, roles and other flows, with inputs,
//! conditions, bounded loops and outputs.
//!
//! Values are templates of the run: `with`, `outputs` and `answer` are filled when their step begins, `when`, `in` and
//! `until` are expressions. `texts` lists all of them with the names that each may read, so that the check and the
//! engine that runs a flow agree about what a step needs.

mod inputs;
mod texts;
mod ways;
mod check;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::base::spelling::spell;

use super::duration::WrittenDuration;
use super::prompt_source::PromptSource;

pub(super) use check::check_flows;
pub use inputs::FlowInput;

/// The most steps of a flow, including those inside other steps.
pub const MOST_STEPS: usize = 64;
/// The most rounds that a loop may state.
pub const MOST_ROUNDS: u32 = 100;
/// The depth to which flows and groups of steps may be nested.
pub const DEEPEST: usize = 4;
/// The tool that asks a person.
pub const ASK_USER: &str = "ask_user";
/// The flows that are not files: an ordinary conversation, and a plan.
pub const RESERVED: [&str; 2] = ["direct", "plan"];

/// `flows/NAME.yaml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    pub name: String,
    /// Says when to use it; the router reads this.
    #[serde(default)]
    pub description: String,
    /// Its inputs.
    #[serde(default)]
    pub inputs: BTreeMap<String, FlowInput>,
    pub steps: Vec<FlowStep>,
    /// Its outputs, by key. Texts with `{{ … }}`; one that is entirely `{{ … }}` keeps the type of its value.
    #[serde(default)]
    pub outputs: Map<String, Value>,
    /// The answer for a person at the end. By default, the outputs, and without those the result of the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// One step, with exactly one of `tool`, `prompt`, `agent`, `role`, `flow` and `steps` as its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowStep {
    /// Later steps read its result as `steps.ID`.
    pub id: String,
    /// Calls this tool; `with` are its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Asks the model with this prompt; `with` are its variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptSource>,
    /// Gives this agent a job, which is in `with.prompt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Asks the router, the planner, the executor or the reflector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<FlowRole>,
    /// Runs this flow; `with` are its inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// A group: these steps as one, to repeat or to skip them together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<FlowStep>>,
    /// Texts with `{{ … }}`; one that is entirely `{{ … }}` keeps the type of its value.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// An expression; if it is false, the step is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The step runs once for each item of a list; its result is the list of results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// The step runs again until an expression holds; its result is that of the last round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
    /// Earlier steps that it waits for without reading their results.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// The result if the step is skipped or fails. Without one, steps that need its result are skipped with it, and a
    /// failure ends the flow.
    #[serde(default, deserialize_with = "read_present", skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// A person is asked before it begins.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approve: bool,
    /// It may be repeated although it may have run in part. Prompts and tools that only read may be anyway.
    #[serde(default, skip_serializing_if = "is_default")]
    pub idempotent: bool,
    /// The most further attempts after a failure that may pass, for a step that may be repeated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: u32,
    /// The longest that one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<WrittenDuration>,
    /// For a tool: the file of the workspace that it may replace unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// For a prompt: the model to ask, instead of the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// For a prompt: a JSON Schema; the reply is data that matches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
}

/// A loop over a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForEach {
    /// An expression whose value is a list. The step reads `item`, `index` (from 0) and `results` (of the rounds
    /// before).
    #[serde(rename = "in")]
    pub list: String,
    /// The most items, from 1 to 100. With a longer list, the step fails.
    pub most: u32,
}

/// A loop until a condition is met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// An expression over `last`, the result of the latest round. The step itself reads `last` (null at first) and
    /// `round` (from 1).
    pub until: String,
    /// The most rounds, from 1 to 100. If `until` is not met after them, the step fails.
    pub most: u32,
}

/// A role of an orchestrated turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowRole {
    Router,
    Planner,
    Executor,
    Reflector,
}

/// The work of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepWork<'s> {
    Tool(&'s str),
    Prompt(&'s PromptSource),
    Agent(&'s str),
    Role(FlowRole),
    Flow(&'s str),
    Group(&'s [FlowStep]),
}

impl FlowStep {
    /// All work that is stated; exactly one in a valid flow.
    pub fn works(&self) -> impl Iterator<Item = StepWork<'_>> {
        let Self { tool, prompt, agent, role, flow, steps, .. } = self;
        [
            tool.as_deref().map(StepWork::Tool),
            prompt.as_ref().map(StepWork::Prompt),
            agent.as_deref().map(StepWork::Agent),
            role.map(StepWork::Role),
            flow.as_deref().map(StepWork::Flow),
            steps.as_deref().map(StepWork::Group),
        ]
        .into_iter()
        .flatten()
    }
}

impl StepWork<'_> {
    /// The key that states it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Prompt(_) => "prompt",
            Self::Agent(_) => "agent",
            Self::Role(_) => "role",
            Self::Flow(_) => "flow",
            Self::Group(_) => "steps",
        }
    }
}

impl FlowRole {
    /// The name that the configuration uses.
    pub fn name(self) -> &'static str {
        spell(&self)
    }

    /// The names in `with`, each with true if it is required.
    pub fn takes(self) -> &'static [(&'static str, bool)] {
        match self {
            Self::Router => &[("request", true)],
            Self::Planner => &[("request", true), ("known", false)],
            Self::Executor => &[("plan", true), ("request", false)],
            Self::Reflector => &[("request", true), ("plan", true), ("results", true), ("retries", false)],
        }
    }
}

impl FlowConfig {
    /// Every step with its key in the flow, `steps.0.steps.1`; those inside another step come after it.
    pub fn all_steps(&self) -> Vec<(String, &FlowStep)> {
        fn add_all<'f>(steps: &'f [FlowStep], above: &str, all: &mut Vec<(String, &'f FlowStep)>) {
            for (at, step) in steps.iter().enumerate() {
                let key = format!("{above}steps.{at}");
                all.push((key.clone(), step));
                add_all(step.steps.as_deref().unwrap_or_default(), &format!("{key}."), all);
            }
        }
        let mut all = Vec::new();
        add_all(&self.steps, "", &mut all);
        all
    }
}

/// True for a value that need not be written: it is that of a missing key.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a value that is present, including null.
fn read_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
