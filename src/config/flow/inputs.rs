//! The inputs of a flow: their types, and the values that a run gives them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ASK_USER, FlowConfig, FlowStep, read_present};

/// One input of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowInput {
    #[serde(default, rename = "type")]
    pub input_type: InputType,
    #[serde(default)]
    pub description: String,
    /// The value if none is given. An input without one must be given, unless `required` is false: then it is null.
    #[serde(default, deserialize_with = "read_present", skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// The type of an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
}

impl FlowConfig {
    /// The input that takes the user's message: `task`, else `request`.
    pub fn task_input(&self) -> Option<&'static str> {
        ["task", "request"].into_iter().find(|name| self.inputs.contains_key(*name))
    }

    /// The steps that ask a person. A run may be given their answers like inputs.
    pub fn list_questions(&self) -> BTreeSet<&str> {
        let asks = |step: &FlowStep| step.tool.as_deref() == Some(ASK_USER);
        self.all_steps()
            .into_iter()
            .map(|(_, step)| step)
            .filter(|step| asks(step))
            .map(|step| step.id.as_str())
            .collect()
    }

    /// The inputs of a run: each value with its type, completed by defaults; and the answers to its questions.
    ///
    /// # Errors
    /// Inputs are missing, unknown or of the wrong type; the error is one sentence that names all of them.
    pub fn inputs_of(&self, given: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let mut inputs = Map::new();
        let (mut missing, mut wrong) = (Vec::new(), Vec::new());
        for (name, input) in &self.inputs {
            let value = match given.get(name) {
                Some(value) => input.input_type.read(value).ok_or_else(|| {
                    let kind = input.input_type.describe_type();
                    wrong.push(format!("the input `{name}` is {kind}"));
                }),
                None if input.is_required() => {
                    missing.push(match input.description.trim() {
                        "" => format!("`{name}`"),
                        about => format!("`{name}` ({about})"),
                    });
                    Err(())
                }
                None => Ok(input.default.clone().unwrap_or_default()),
            };
            if let Ok(value) = value {
                inputs.insert(name.clone(), value);
            }
        }
        let answers = self.list_questions();
        for (id, answer) in given.iter().filter(|(name, _)| answers.contains(name.as_str())) {
            inputs.insert(id.clone(), answer.clone());
        }
        let known: Vec<String> = self.inputs.keys().map(|name| format!("`{name}`")).collect();
        let is_known = |name: &str| self.inputs.contains_key(name) || answers.contains(name);
        for name in given.keys().filter(|name| !is_known(name)) {
            let listed = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
            wrong.push(format!("it has no input `{name}` (its inputs: {listed})"));
        }
        if !missing.is_empty() {
            wrong.insert(0, format!("it needs {}", missing.join(", ")));
        }
        if wrong.is_empty() { Ok(inputs) } else { Err(format!("the flow `{}`: {}", self.name, wrong.join("; "))) }
    }
}

impl FlowInput {
    /// True if a run must be given it.
    pub fn is_required(&self) -> bool {
        self.required.unwrap_or(self.default.is_none())
    }
}

impl InputType {
    /// The value as this type. A text, such as from `--var n=3`, is read as the wanted type.
    pub(super) fn read(self, value: &Value) -> Option<Value> {
        if self.fits(value) {
            return Some(value.clone());
        }
        let text = value.as_str()?;
        serde_json::from_str(text.trim()).ok().filter(|value| self.fits(value))
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    pub(super) fn describe_type(self) -> &'static str {
        self.words().1
    }

    /// The name that JSON Schema uses.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// The name, and a description for people.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::String => ("string", "a text"),
            Self::Integer => ("integer", "a whole number"),
            Self::Number => ("number", "a number"),
            Self::Boolean => ("boolean", "true or false"),
            Self::Array => ("array", "a JSON list"),
            Self::Object => ("object", "a JSON object"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::config::FlowConfig;

    fn flow(inputs: Value) -> FlowConfig {
        let text = json!({ "name": "f", "inputs": inputs, "steps": [] }).to_string();
        serde_json::from_str(&text).expect("a flow")
    }

    #[test]
    fn inputs_are_typed_completed_or_named() {
        let flow = flow(json!({
            "path": { "description": "where to look" },
            "depth": { "type": "integer", "default": 2 },
            "words": { "type": "array", "required": false },
        }));
        for (given, expected) in [
            (json!({"path": "src"}), Ok(json!({"path": "src", "depth": 2, "words": null}))),
            (json!({"path": "1", "depth": "5"}), Ok(json!({"path": "1", "depth": 5, "words": null}))),
            (json!({"path": "", "words": "[1]"}), Ok(json!({"path": "", "depth": 2, "words": [1]}))),
            (json!({}), Err("the flow `f`: it needs `path` (where to look)")),
            (json!({"path": "x", "depth": "five"}), Err("the flow `f`: the input `depth` is a whole number")),
            (json!({"path": 3}), Err("the flow `f`: the input `path` is a text")),
            (
                json!({"pth": "x"}),
                Err("the flow `f`: it needs `path` (where to look); it has no input `pth` (its inputs: `depth`, \
                     `path`, `words`)"),
            ),
        ] {
            let read = flow.inputs_of(given.as_object().expect("an object")).map(Value::Object);
            assert_eq!(read, expected.map_err(str::to_owned), "{given}");
        }
    }

    #[test]
    fn a_null_that_is_written_is_a_default() {
        let flow = flow(json!({ "a": { "default": null }, "b": {} }));
        assert!(!flow.inputs["a"].is_required() && flow.inputs["b"].is_required());
    }
}
