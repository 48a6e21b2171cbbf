//! The format of the log: one JSON object a line, the first of which says what follows.
//!
//! ```text
//! {"v":1,"type":"session","id":…,"workspace":…,"agent":…,"model":…,"created_at":…}
//! {"type":"turn.started","run_id":…,"time":…}
//! {"type":"message","n":1,"time":…,"role":"user","content":…}
//! {"type":"partial","text":…}                what a reply has said so far, piece by piece
//! {"type":"partial.void"}                    the reply begins anew
//! {"type":"message","n":2,"time":…,"role":"assistant",…}
//! {"type":"telemetry","call_id":…,"tool_name":…,…}      what the call cost whose answer follows
//! {"type":"turn.completed","stop":…,"time":…}
//! {"type":"state","changes":{"todo":[…]},"time":…}      keys of the session's state; null removes one
//! {"type":"taint","source":"content from …","time":…}  what came in from outside; from here on more is asked
//! {"type":"edited","time":…,"reason":{"compressed":{…}},"edits":[{"n":2,"message":{…}},{"n":3}]}   what is sent changes
//! {"type":"restored","time":…}                         everything is sent again as it was said
//! {"type":"pinned","numbers":[1,2],"time":…}           what no compression touches
//! {"type":"budget","tokens":…,"time":…}                what a request may hold, as a server taught
//! {"type":"switched","agent":…,"model":…,"time":…}     who answers from here on
//! ```
//!
//! A message makes the pieces before it void: it holds them. Readers pass over types and fields that they do not
//! know.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::CallTelemetry;
use crate::message::Message;

use super::view::{Edit, EditReason};

/// The format that this program writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub v: u32,
    #[serde(rename = "type")]
    kind: HeaderKind,
    pub id: String,
    pub workspace: String,
    pub agent: String,
    pub model: String,
    /// RFC 3339.
    pub created_at: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HeaderKind {
    Session,
}

impl Header {
    pub(super) fn new(id: String, workspace: String, agent: &str, model: &str, created_at: String) -> Self {
        let (agent, model) = (agent.to_owned(), model.to_owned());
        Self { v: FORMAT_VERSION, kind: HeaderKind::Session, id, workspace, agent, model, created_at }
    }
}

/// Any line but the first, to be written.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum Entry<'a> {
    #[serde(rename = "turn.started")]
    TurnStarted { run_id: &'a str, time: &'a str },
    #[serde(rename = "message")]
    Message {
        /// Absent for a system prompt.
        #[serde(skip_serializing_if = "Option::is_none")]
        n: Option<u64>,
        time: &'a str,
        #[serde(flatten)]
        message: &'a Message,
    },
    #[serde(rename = "edited")]
    Edited { time: &'a str, reason: &'a EditReason, edits: &'a [Edit] },
    #[serde(rename = "restored")]
    Restored { time: &'a str },
    #[serde(rename = "budget")]
    Budget { tokens: u64, time: &'a str },
    #[serde(rename = "pinned")]
    Pinned { numbers: &'a [u64], time: &'a str },
    #[serde(rename = "telemetry")]
    Telemetry {
        call_id: &'a str,
        #[serde(flatten)]
        telemetry: &'a CallTelemetry,
    },
    #[serde(rename = "partial")]
    Partial {
        #[serde(skip_serializing_if = "str::is_empty")]
        text: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        reasoning: &'a str,
    },
    #[serde(rename = "partial.void")]
    PartialVoid,
    #[serde(rename = "switched")]
    Switched { agent: &'a str, model: &'a str, time: &'a str },
    #[serde(rename = "state")]
    State { changes: &'a Map<String, Value>, time: &'a str },
    #[serde(rename = "taint")]
    Taint { source: &'a str, time: &'a str },
    #[serde(rename = "turn.completed")]
    TurnCompleted { stop: &'a str, time: &'a str },
}

/// Any line but the first, as far as it matters when it is read again.
#[derive(Debug)]
pub(super) enum Line {
    TurnStarted,
    Message(Message, Option<u64>),
    Edited(Edited),
    Restored,
    Pinned(Pinned),
    Budget(Learned),
    Partial(Piece),
    PartialVoid,
    Switched(Answering),
    Telemetry(Box<CallCost>),
    State(Changes),
    Taint(Tainted),
    /// Nothing that changes the conversation, or a type of a later version.
    Other,
}

/// What the view shows instead of what was said.
#[derive(Debug, Deserialize)]
pub(super) struct Edited {
    pub reason: EditReason,
    pub edits: Vec<Edit>,
}

/// What a request may hold at most.
#[derive(Debug, Deserialize)]
pub(super) struct Learned {
    pub tokens: u64,
}

/// What no compression touches.
#[derive(Debug, Deserialize)]
pub(super) struct Pinned {
    pub numbers: Vec<u64>,
}

/// A piece of a reply that was still being written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece {
    pub text: String,
    pub reasoning: String,
}

/// Who answers.
#[derive(Debug, Deserialize)]
pub(super) struct Answering {
    pub agent: String,
    pub model: String,
}

/// What a call cost.
#[derive(Debug, Deserialize)]
pub(super) struct CallCost {
    pub call_id: String,
    #[serde(flatten)]
    pub telemetry: CallTelemetry,
}

/// What came in from outside.
#[derive(Debug, Deserialize)]
pub(super) struct Tainted {
    pub source: String,
}

/// What of the state changed.
#[derive(Debug, Deserialize)]
pub(super) struct Changes {
    pub changes: Map<String, Value>,
}

impl Line {
    /// # Errors
    /// When the line is not an entry.
    pub fn parse(line: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(rename = "type", borrow)]
            kind: std::borrow::Cow<'a, str>,
            #[serde(default)]
            n: Option<u64>,
        }
        let Kind { kind, n } = serde_json::from_slice(line)?;
        Ok(match kind.as_ref() {
            "message" => Self::Message(serde_json::from_slice(line)?, n),
            "edited" => Self::Edited(serde_json::from_slice(line)?),
            "restored" => Self::Restored,
            "budget" => Self::Budget(serde_json::from_slice(line)?),
            "pinned" => Self::Pinned(serde_json::from_slice(line)?),
            "partial" => Self::Partial(serde_json::from_slice(line)?),
            "partial.void" => Self::PartialVoid,
            "switched" => Self::Switched(serde_json::from_slice(line)?),
            "state" => Self::State(serde_json::from_slice(line)?),
            "taint" => Self::Taint(serde_json::from_slice(line)?),
            "turn.started" => Self::TurnStarted,
            // Figures of a later version are no reason to call the log damaged.
            "telemetry" => serde_json::from_slice(line).map_or(Self::Other, Self::Telemetry),
            _ => Self::Other,
        })
    }
}
