//! The shape of `tools/NAME.yaml`: a command as a tool, or the switches and limits of a built-in tool.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::duration::WrittenDuration;
use super::permissions::Permission;
use crate::base::output::{Encoding, ResponseFormat};

/// One tool. With `command` it is a new one; without, it adjusts the built-in tool of its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolConfig {
    /// The name that the model calls; the name of the file by default.
    pub name: String,
    /// A disabled tool is not shown to the model.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The time limit of one call, up to the agent's `max_tool_timeout`; `null` means the agent's `tool_timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<WrittenDuration>,
    /// The most tokens that one result may bring in; `null` means the agent's `tool_result_max_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    /// The parts of a result that the model reads; `null` means as the agent's `tool_output` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ResponseFormat>,
    /// The encoding of a result; `null` means as the agent's `tool_output` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Every call asks, even one that only reads.
    #[serde(default)]
    pub requires_confirmation: bool,
    /// The command: a list of arguments, or with `shell: true` a line for the shell. Templates over the arguments of
    /// the call, rendered when it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// True if `command` is a line for the shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<bool>,
    /// Text for the model: a sentence that says what it does, then what it returns and when not to use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments: an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
    /// The directory in which it runs; a template. By default, the workspace. One that reads arguments stays inside the
    /// workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Variables that only this command gets: templates of the call, or of the environment (`{{ env.NAME }}`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// The level of the tool; `write` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    /// Side effects besides running a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<ToolEffect>>,
    /// True if a second call has no further effect, so that it may be retried after a temporary failure (exit code 75).
    /// By default, true for a tool that only reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The format of its output; `text` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_format: Option<CommandOutputFormat>,
}

/// The command line of a command tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CommandLine {
    /// Program and arguments.
    Arguments(Vec<String>),
    /// A line for the shell.
    Shell(String),
}

/// The format of a command's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandOutputFormat {
    #[default]
    Text,
    /// One JSON document: it becomes the data of the result.
    Json,
    /// One JSON object with the parts of a result: `result`, `observation`, `summary`, `state_update`, `checkpoint`.
    Result,
}

/// A side effect of a tool besides reading the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    Files,
    Process,
    Network,
}

fn yes() -> bool {
    true
}

impl ToolConfig {
    /// The keys that only a command has.
    pub(super) const OF_COMMANDS: &str =
        "shell description parameters workdir env permission effects idempotent output_format";

    /// The schema of its arguments: an object with only the properties that it names, unless it says otherwise.
    pub fn schema(&self) -> Value {
        let mut schema = Map::from_iter([
            ("type".to_owned(), "object".into()),
            ("properties".to_owned(), Value::Object(Map::new())),
            ("additionalProperties".to_owned(), false.into()),
        ]);
        schema.extend(self.parameters.clone().unwrap_or_default());
        Value::Object(schema)
    }

    /// The names of its arguments.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        let properties = self.parameters.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        properties.into_iter().flat_map(Map::keys).map(String::as_str)
    }
}
