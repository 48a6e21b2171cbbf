//! What a tool gives back: data for programs, an observation for the model, one line for a person; or an error
//! that says whether trying again can help. And in which shape the model is to read it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::image::Image;

/// The outcome of a call that did what it was asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// The result as data. Scripts read it as `results[-1].result`; the format `raw` gives it to the model.
    pub result: Value,
    /// What the model reads under `concise`: what bears on its next decision, as the tool sees it.
    pub observation: String,
    /// One line, without the tool's name: `42 lines`, `exit 0`. For the person who watches, and for the model under
    /// `standard`. Lines that follow the first are for the person alone, who sees them below it.
    pub summary: String,
    /// True when the observation leaves something out.
    pub truncated: bool,
    /// What `recall` reads the whole text by, where the tool kept it.
    pub spill_id: Option<String>,
    /// Pictures that the model is shown beside the observation.
    pub images: Vec<Image>,
    /// Keys of the session's state that change; `null` removes one.
    pub state_update: Map<String, Value>,
    /// A point that the session can be told to return to, where the tool made one.
    pub checkpoint: Option<String>,
    /// For whoever debugs. Never sent to the model, in no format.
    pub metadata: Map<String, Value>,
}

/// How much of a result the model reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseFormat {
    /// The observation alone.
    #[default]
    Concise,
    /// Status and summary as well.
    Standard,
    /// Everything, with what changes from call to call (id, duration): for debugging.
    Detailed,
    /// The data as the tool returned it, unprocessed.
    Raw,
}

/// How it is written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// As it is, between two tags.
    #[default]
    Text,
    /// One line of JSON.
    Json,
    Yaml,
    Xml,
    /// One line of `key:value` pairs.
    Compact,
}

/// Why a call failed. The message is for the model: what was wrong, what was expected, what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub kind: ToolErrorKind,
    pub message: String,
}

/// What a failure means for whoever may try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolErrorKind {
    /// The arguments were wrong: the same call fails again.
    Parameter,
    /// The world was in the way (a missing file, a failed command): another call may succeed.
    Permanent,
    /// The same call may succeed later.
    Transient,
    /// The call took longer than it may.
    Timeout,
    /// What every such call was promised (the sandbox) is not to be had: the run ends.
    Unavailable,
}

impl ToolOutput {
    /// The first line of the summary: how the call ended.
    #[must_use]
    pub fn outcome(&self) -> &str {
        self.summary.lines().next().unwrap_or_default()
    }
}

impl ToolError {
    /// A failure of this kind, in words for the model.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The arguments were wrong.
    pub fn parameter(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Parameter, message)
    }

    /// The call was sound, but the world was in the way.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Permanent, message)
    }
}
