//! The result of a tool: data for programs, an observation for the model, one line for a person; or an error that says
//! whether a retry can help. Also the formats in which the model reads it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::image::Image;

/// The outcome of a successful call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// The result as data. Scripts read it as `results[-1].result`; the format `raw` gives it to the model.
    pub result: Value,
    /// The text that the model reads under `concise`: the facts that its next decision needs, as the tool sees it.
    pub observation: String,
    /// One line, without the tool's name: `42 lines`, `exit 0`. For the person at the screen, and for the model
    /// under `standard`. Further lines are only for the person, shown below the first.
    pub summary: String,
    /// True if the observation leaves something out.
    pub truncated: bool,
    /// The text that the observation leaves out, if the tool gave it to the spill store.
    pub kept: Option<Kept>,
    /// Pictures that the model is shown beside the observation.
    pub images: Vec<Image>,
    /// Changed keys of the session's state; `null` removes a key.
    pub state_update: Map<String, Value>,
    /// The name that the place in the conversation gets after this call.
    pub checkpoint: Option<String>,
    /// The skill whose instructions or file the observation contains.
    pub skill: Option<String>,
    /// The exit of the program that the call ran to its end; `None` if it ran none. With any but code 0 the call is
    /// not done.
    pub exit: Option<Exit>,
    /// True if the work ended before it was finished: the call is not done, although it has a result.
    pub unfinished: bool,
    /// Data for debugging. Never sent to the model, in any format.
    pub metadata: Map<String, Value>,
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// The call was done: its tool did what was asked, and a program that it ran exited with 0.
    Ok,
    /// It failed: the tool reported an error, or the program that it ran failed.
    Error,
    Denied,
    Timeout,
    Cancelled,
}

/// The exit status of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    /// Ended by the signal of this name, `SIGSEGV`.
    Signal(String),
}

/// The outcome of giving a long text to the spill store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// `recall` reads all of it.
    Whole {
        id: String,
    },
    /// `recall` reads its first bytes.
    Beginning {
        id: String,
        bytes: u64,
        why: Lost,
    },
    Nothing(Lost),
}

/// The reason that a text was not kept, or not to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The limits of the store, or the disk, left no room.
    Full,
    /// The disk failed.
    Failed,
}

impl Kept {
    /// The handle by which `recall` reads it.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Whole { id } | Self::Beginning { id, .. } => Some(id),
            Self::Nothing(_) => None,
        }
    }

    /// The handle, if it reads the whole.
    pub fn id_of_whole(&self) -> Option<&str> {
        self.id().filter(|_| matches!(self, Self::Whole { .. }))
    }

    /// A notice of the readable part, for the model: `recall id=r1 reads the whole`.
    pub fn notice(&self) -> String {
        match self {
            Self::Whole { id } => format!("recall id={id} reads the whole"),
            Self::Beginning { id, bytes, why } => {
                format!("recall id={id} reads the first {bytes} bytes; {}", why.notice())
            }
            Self::Nothing(why) => why.notice().to_owned(),
        }
    }
}

impl Lost {
    fn notice(self) -> &'static str {
        match self {
            Self::Full => "the rest is not kept: the store is full",
            Self::Failed => "the rest is not kept: the disk failed",
        }
    }
}

/// The parts of a result that the model reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Only the observation.
    #[default]
    Concise,
    /// Status and summary as well.
    Standard,
    /// Everything, including values that change from call to call (id, duration): for debugging.
    Detailed,
    /// The data as the tool returned it, unprocessed.
    Raw,
}

/// The encoding of a result for the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// Plain text between two tags.
    #[default]
    Text,
    /// One line of JSON.
    Json,
    Yaml,
    Xml,
    /// One line of `key:value` pairs.
    Compact,
}

/// The reason that a call failed. The message is for the model: what was wrong, what was expected, what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub kind: ToolErrorKind,
    pub message: String,
}

/// The kind of a failure, which says whether a retry can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorKind {
    /// The arguments were wrong: the same call fails again.
    Parameter,
    /// The environment caused the failure (a missing file, a failed command): another call may succeed.
    Permanent,
    /// The same call may succeed later.
    Transient,
    /// The call exceeded its time limit.
    Timeout,
    /// A guarantee of every such call (the sandbox) is unavailable: the run ends.
    Unavailable,
}

impl ToolOutput {
    /// The first line of the summary: the outcome of the call.
    pub fn outcome(&self) -> &str {
        self.summary.lines().next().unwrap_or_default()
    }
}

impl ToolError {
    /// A failure of this kind, with a message for the model.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The arguments were wrong.
    pub fn parameter(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Parameter, message)
    }

    /// The call was valid, but the environment made it fail.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Permanent, message)
    }
}
