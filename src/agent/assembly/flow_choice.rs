//! The flow that a person chooses for a run.

use serde_json::{Map, Value};

use crate::config::{Config, FlowInput};

use super::SetupError;

/// The flow that a person chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowChoice {
    pub name: String,
    /// True if the person's text is one of its inputs.
    pub has_task: bool,
    /// True if a session is continued: missing inputs may be known from there.
    pub goes_on: bool,
}

impl FlowChoice {
    /// Chooses a flow by name. `says` is true if the person gives a task. Without one, a task is only read if the flow
    /// requires it and no session is continued.
    ///
    /// # Errors
    /// There is no such flow, or it takes no task.
    pub fn choose_flow(
        config: &Config,
        name: &str,
        (says, goes_on): (bool, bool),
        vars: &[(String, Value)],
    ) -> Result<Self, SetupError> {
        let flow = config.flow(name).map_err(SetupError::usage)?;
        let task = flow.task_input().filter(|task| !vars.iter().any(|(name, _)| name == task));
        if says && task.is_none() {
            let message = format!(
                "the flow `{name}` takes no task besides its inputs: it has no input `task` or `request` that is left open"
            );
            return Err(SetupError::usage(message));
        }
        let needs = task.and_then(|task| flow.inputs.get(task)).is_some_and(FlowInput::is_required);
        Ok(Self { name: name.to_owned(), has_task: says || needs && !goes_on, goes_on })
    }

    /// The text of the person's message if they choose a flow without a task.
    pub fn request(&self, vars: &[(String, Value)]) -> String {
        let given: Map<String, Value> = vars.iter().cloned().collect();
        if given.is_empty() {
            return format!("Run the flow `{}`.", self.name);
        }
        format!("Run the flow `{}` with {}.", self.name, Value::Object(given))
    }
}
