//! Flows: fixed steps. `values` evaluates texts and arguments, `machine` decides what runs next, and `memory` is what the
//! log knows of an interrupted one.

mod values;
mod machine;
mod memory;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::base::digest::hash_sha256;
use crate::config::{FlowConfig, FlowInput};
use crate::model::ChatModel;
use crate::prompt::Released;

pub(super) use machine::{FlowJob, FlowStepNote, Machine};
pub(super) use memory::FlowMemory;
pub(super) use values::FlowScope;

/// The flows that are configured, and the one that was chosen.
#[derive(Default)]
pub struct Flows {
    pub all: BTreeMap<String, FlowConfig>,
    /// The prompts of steps with their models, by flow and step.
    pub prompts: BTreeMap<(String, String), FlowPrompt>,
    pub chosen: Option<ChosenFlow>,
}

/// The flow that carries out every input.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenFlow {
    pub name: String,
    /// The inputs as they were given.
    pub given: Map<String, Value>,
    /// The input that takes the person's message, if there is one for it.
    pub task: Option<String>,
}

/// The prompt of a step and the model to ask.
pub struct FlowPrompt {
    pub prompt: Released,
    pub model: Arc<dyn ChatModel>,
}

/// The inputs that a router gives a flow. If it did not fill in the task, that is the request.
pub(super) fn fill_task(flow: &FlowConfig, input: &Value, request: &str) -> Map<String, Value> {
    let mut given = input.as_object().cloned().unwrap_or_default();
    if let Some(task) = flow.task_input() {
        given.entry(task).or_insert_with(|| request.into());
    }
    given
}

impl Flows {
    /// The flows as the router reads them.
    pub(super) fn list_flows(&self) -> Value {
        let input = |(name, input): (&String, &FlowInput)| {
            let about = json!({
                "type": input.input_type.name(), "description": input.description, "required": input.is_required(),
            });
            (name.clone(), about)
        };
        let flow = |flow: &FlowConfig| {
            let inputs: Map<String, Value> = flow.inputs.iter().map(input).collect();
            json!({ "name": flow.name, "description": flow.description, "inputs": inputs })
        };
        self.all.values().map(flow).collect()
    }

    /// Checks the inputs that a router gives a flow for a request.
    pub(super) fn check_inputs(&self, name: &str, input: &Value, request: &str) -> Result<(), String> {
        self.all.get(name).map_or(Ok(()), |flow| flow.inputs_of(&fill_task(flow, input, request)).map(drop))
    }

    /// A digest of all flows, because recorded results are valid only for the flows that they came from.
    pub(super) fn digest(&self) -> String {
        let text = json!(self.all).to_string();
        hash_sha256([text.as_bytes()])
    }
}
