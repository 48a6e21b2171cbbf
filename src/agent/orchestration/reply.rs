//! The typed replies of the roles, and how to read them.
//!
//! Harmless mistakes are corrected by the schema of the reply: unknown keys, numbers as text, a fence, missing optional
//! parts. Values that a decision depends on are never guessed: the reply is refused, and the error lists all mistakes
//! for the model.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base::json;
use crate::base::validator::Validator;
use crate::conversation::event::plan::{Evaluation, PlanStep};

use super::scratchpad;

/// The reply of the router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteReply {
    #[serde(default)]
    pub reasoning: String,
    /// A candidate, or `none`.
    pub tool_name: String,
    #[serde(default)]
    pub tool_input: Value,
    /// From 0 to 1.
    pub confidence: f64,
}

/// The reply of the planner. A plan without steps means that there is no plan, and `analysis` says why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanReply {
    #[serde(default)]
    pub analysis: String,
    pub plan: Vec<PlanStep>,
    /// The model's own count.
    #[serde(default)]
    pub estimated_steps: u32,
    /// The steps that the model thinks may run side by side. Code decides from the dependencies.
    #[serde(default)]
    pub can_parallelize: Vec<Vec<u32>>,
}

/// The reply of the executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutorReply {
    /// The call; `None` if the step is handed back, and `explanation` says why.
    pub tool_call: Option<ToolCallReply>,
    #[serde(default)]
    pub explanation: String,
}

/// The call of an executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallReply {
    pub name: String,
    #[serde(default)]
    pub arguments: Value,
}

/// The reply of the reflector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReflectorReply {
    pub evaluation: Evaluation,
    #[serde(default)]
    pub overall_pass: bool,
    pub action: ReflectorAction,
    #[serde(default)]
    pub retry_details: RetryDetails,
}

/// The action that the reflector proposes. Code decides from the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReflectorAction {
    Accept,
    RetryStep,
    Replan,
    Escalate,
}

/// The step to try again, and the change to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryDetails {
    pub step_id: Option<u32>,
    pub modification: String,
}

/// A reply that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedReply<T> {
    pub value: T,
    /// The notes, for the log. They are never sent back.
    pub scratchpad: Option<String>,
}

/// Reads a reply by the schema of its prompt.
///
/// # Errors
/// Every mistake, for the model.
pub fn read_reply<T: DeserializeOwned>(text: &str, schema: &Validator) -> Result<ParsedReply<T>, String> {
    let parts = scratchpad::split_reply(text)?;
    if parts.action.is_empty() {
        return Err("The reply is empty; send the JSON object.".to_owned());
    }
    let object =
        json::parse_object(parts.action).map_err(|why| format!("The reply is not usable JSON: {why}."))?;
    let mut value = Value::Object(object);
    fit_value(&mut value, schema.schema());
    schema.check("The reply does", &value)?;
    let value = serde_json::from_value(value).map_err(|why| format!("The reply does not fit: {why}."))?;
    Ok(ParsedReply { value, scratchpad: parts.scratchpad })
}

/// The default for a missing required part that no decision depends on.
fn default_for_key(key: &str) -> Option<Value> {
    Some(match key {
        "reasoning" | "analysis" | "explanation" | "description" | "reason" | "modification"
        | "reasoning_summary" => {
            json!("")
        }
        "depends_on" | "can_parallelize" => json!([]),
        "tool_input" | "arguments" => json!({}),
        "estimated_steps" => json!(0),
        "overall_pass" => json!(false),
        "step_id" | "check" => Value::Null,
        "retry_details" => json!({ "step_id": null, "modification": "" }),
        _ => return None,
    })
}

/// Makes a value fit a schema if that does not change its meaning.
fn fit_value(value: &mut Value, schema: &Value) {
    if let Some(forms) = schema["anyOf"].as_array() {
        if let Some(form) = find_form(value, forms) {
            fit_value(value, form);
        }
        return;
    }
    coerce_scalar(value, schema);
    match value {
        Value::Object(fields) => fit_fields(fields, schema),
        Value::Array(items) => items.iter_mut().for_each(|item| fit_value(item, &schema["items"])),
        _ => {}
    }
}

/// The one of several forms that a value is meant to have; `None` if that is not clear.
fn find_form<'s>(value: &Value, forms: &'s [Value]) -> Option<&'s Value> {
    let of_kind = |form: &&Value| form["type"].as_str() == Some(kind_of(value));
    let has_all = |form: &&Value| {
        let required = form["required"].as_array().map_or(&[][..], Vec::as_slice);
        required.iter().filter_map(Value::as_str).all(|name| value.get(name).is_some())
    };
    let only = |mut forms: Vec<&'s Value>| if forms.len() == 1 { forms.pop() } else { None };
    let of_kind: Vec<&Value> = forms.iter().filter(of_kind).collect();
    only(of_kind.clone()).or_else(|| only(of_kind.into_iter().filter(has_all).collect()))
}

fn fit_fields(fields: &mut Map<String, Value>, schema: &Value) {
    let Some(properties) = schema["properties"].as_object() else { return };
    if schema["additionalProperties"] == Value::Bool(false) {
        fields.retain(|key, _| properties.contains_key(key));
    }
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    for (key, of) in properties {
        if fields.get(key).is_some_and(|value| value.is_null() && !takes_kind(of, "null")) {
            fields.remove(key);
        }
        if let Some(value) = fields.get_mut(key) {
            fit_value(value, of);
        }
        let is_wrong = |value: &Value| {
            // These are only the model's opinion: a value of another form counts as missing.
            matches!(key.as_str(), "can_parallelize" | "estimated_steps") && !fits_advice(value, of)
        };
        if fields.get(key).is_some_and(is_wrong) {
            fields.remove(key);
        }
        let is_missing = !fields.contains_key(key) && required.iter().any(|name| name == key);
        if let Some(value) = default_for_key(key).filter(|value| is_missing && takes_kind(of, kind_of(value))) {
            fields.insert(key.clone(), value);
        }
    }
}

/// True if a piece of advice has the type that the schema names, down to the items of lists.
fn fits_advice(value: &Value, schema: &Value) -> bool {
    takes_kind(schema, kind_of(value))
        && value.as_array().is_none_or(|items| items.iter().all(|item| fits_advice(item, &schema["items"])))
}

/// Puts a scalar into the type that the schema names: numbers and booleans as text, whole numbers with a fraction of
/// zero, an object encoded as text, one value where a list is expected.
fn coerce_scalar(value: &mut Value, schema: &Value) {
    if takes_kind(schema, kind_of(value)) {
        return;
    }
    let fitting = match &*value {
        Value::String(text) => {
            let read: Option<Value> = serde_json::from_str(text.trim()).ok();
            read.filter(|read| !read.is_string() && !read.is_null() && takes_kind(schema, kind_of(read)))
        }
        Value::Number(number) => number
            .as_f64()
            .filter(|float| float.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(float))
            .and_then(|float| serde_json::from_str(&format!("{float:.0}")).ok()),
        _ => None,
    };
    if let Some(fitting) = fitting {
        *value = fitting;
    }
    if takes_kind(schema, "array") && takes_kind(&schema["items"], kind_of(value)) {
        *value = Value::Array(vec![value.take()]);
    }
}

/// True if a schema names a type. An integer is a number; a schema that names no type takes all.
fn takes_kind(schema: &Value, kind: &str) -> bool {
    let one = |name: &Value| name == kind || (name == "number" && kind == "integer");
    match &schema["type"] {
        Value::Null => {
            schema["anyOf"].as_array().is_none_or(|forms| forms.iter().any(|form| takes_kind(form, kind)))
        }
        Value::Array(names) => names.iter().any(one),
        name => one(name),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
