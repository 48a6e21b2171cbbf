//! The result of one run of a case, in the form that assertions check.

use std::cell::OnceCell;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base::tokens;
use crate::template;

/// A run of a case: its text, its calls and its figures. A recording keeps it in its serde form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunReply {
    /// The answer; the rendered prompt if no model was asked.
    pub output: String,
    /// Calls of tools in the order in which the model made them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RunCall>,
    /// Skills that the model loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// Tokens of all requests, input and output.
    pub tokens: u64,
    /// USD; `None` if no prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// USD of the judges that its assertions asked; `None` if none was asked or no prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judging_cost: Option<f64>,
    /// Milliseconds from the first request to the answer.
    pub latency_ms: u64,
    /// The exit code that `agent run` would have ended with.
    pub code: u8,
    /// The reason that it did not end with an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A call that the model made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCall {
    pub name: String,
    pub arguments: Value,
    /// True if the tool succeeded.
    pub ok: bool,
}

/// The data that the assertions of one run check; values that several of them need are computed once.
pub(super) struct AssertionData<'r> {
    /// The text that this assertion is about.
    pub output: &'r str,
    pub reply: &'r RunReply,
    pub rendered: &'r str,
    vars: &'r Map<String, Value>,
    json: OnceCell<Result<Value, String>>,
}

impl<'r> AssertionData<'r> {
    pub fn new(reply: &'r RunReply, rendered: &'r str, vars: &'r Map<String, Value>) -> Self {
        Self { output: &reply.output, reply, rendered, vars, json: OnceCell::new() }
    }

    /// The data for assertions about the prompt itself.
    pub fn of_rendered(&self) -> Self {
        Self { output: self.rendered, json: OnceCell::new(), ..*self }
    }

    /// The text as JSON, or the reason that it is not.
    pub fn json(&self) -> Result<&Value, String> {
        let read = || serde_json::from_str(self.output.trim()).map_err(|error| error.to_string());
        self.json.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// Tokens of the text by a public vocabulary, whatever the model's own is.
    pub fn tokens(&self) -> u64 {
        tokens::count_tokens(self.output)
    }

    /// The names that `expr` reads: [`EXPRESSION_NAMES`].
    pub fn names(&self) -> template::Value {
        let RunReply { calls, skills, cost, latency_ms, code, .. } = self.reply;
        let latency = *latency_ms as f64 / 1000.0;
        template::convert_value(&json!({
            "output": self.output,
            "rendered": self.rendered,
            "json": self.json().unwrap_or(&Value::Null),
            "tools": calls,
            "skills": skills,
            "tokens": self.reply.tokens,
            "cost": cost,
            "latency": latency,
            "exit_code": code,
            "vars": self.vars,
        }))
    }
}

/// The names of [`AssertionData::names`].
pub(super) const EXPRESSION_NAMES: &[&str] =
    &["output", "rendered", "json", "tools", "skills", "tokens", "cost", "latency", "exit_code", "vars"];
