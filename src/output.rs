//! What a tool gives back: data for programs, an observation for the model, one line for a person; or an error
//! that says whether trying again can help.

use serde_json::Value;

/// The outcome of a call that did what it was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The result as data. Scripts read it as `results[-1].result`.
    pub result: Value,
    /// What the model reads.
    pub observation: String,
    /// One line for the person who watches, without the tool's name: `42 lines`, `exit 0`.
    pub summary: String,
    /// True when the observation leaves something out.
    pub truncated: bool,
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

impl ToolError {
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
