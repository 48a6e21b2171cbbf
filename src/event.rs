//! What happened, as everyone sees it: the terminal, `--output jsonl`, tests.
//!
//! The serde form of [`Event`] *is* the JSONL interface; nothing translates it. Readers ignore types and fields
//! that they do not know, so adding is free and renaming is not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::message::{CallStatus, Message, Usage};

/// Version of the event format, `v` in every event.
pub const EVENT_VERSION: u32 = 1;

/// One event with its envelope.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    pub v: u32,
    #[serde(flatten)]
    pub kind: EventKind,
    /// Counts from 0 within a run, without gaps.
    pub seq: u64,
    /// RFC 3339, UTC, milliseconds.
    pub time: String,
    pub session_id: String,
    pub run_id: String,
}

/// What happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type")]
pub enum EventKind {
    /// Always the first.
    #[serde(rename = "run.started")]
    RunStarted(RunStarted),
    /// A person, or whoever started the run, said something.
    #[serde(rename = "turn.started")]
    TurnStarted { input: String },
    /// The model is asked.
    #[serde(rename = "request.started")]
    RequestStarted {
        step: u64,
        messages: usize,
        /// An estimate: bytes of the request over four.
        input_tokens: u64,
        /// How many of them extend the previous request unchanged.
        prefix_tokens: u64,
    },
    /// A piece of the text of a reply.
    #[serde(rename = "text.delta")]
    TextDelta { text: String },
    /// A piece of the model's reasoning.
    #[serde(rename = "reasoning.delta")]
    ReasoningDelta { text: String },
    /// A message entered the conversation. The system prompt is not told.
    #[serde(rename = "message")]
    Message(Message),
    /// The first word on a call, whether it runs or is refused.
    #[serde(rename = "tool.started")]
    ToolStarted {
        call_id: String,
        name: String,
        arguments: serde_json::Value,
        /// What the call is about, in a few words for a person: `src/main.rs`, `cargo test`.
        subject: String,
    },
    /// Live output of a running command.
    #[serde(rename = "tool.output")]
    ToolOutput { call_id: String, chunk: String },
    /// A call was answered. Its answer is the `message` that follows.
    #[serde(rename = "tool.finished")]
    ToolFinished {
        call_id: String,
        name: String,
        status: CallStatus,
        summary: String,
        telemetry: CallTelemetry,
        truncated: bool,
        /// What `recall` reads the left-out text by.
        #[serde(skip_serializing_if = "Option::is_none")]
        spill_id: Option<String>,
    },
    /// A call may run only if somebody allows it.
    #[serde(rename = "permission.requested")]
    PermissionRequested { call_id: String, name: String, why: String },
    /// Somebody, or something, answered.
    #[serde(rename = "permission.resolved")]
    PermissionResolved { call_id: String, name: String, verdict: PermissionVerdict, by: DecidedBy },
    /// A skill's instructions are part of the conversation.
    #[serde(rename = "skill.loaded")]
    SkillLoaded { name: String, path: String, tokens: u64 },
    /// A skill's instructions are no longer part of the conversation.
    #[serde(rename = "skill.unloaded")]
    SkillUnloaded { name: String, path: String, tokens: u64 },
    /// A file of a skill was read.
    #[serde(rename = "skill.referenced")]
    SkillReferenced { name: String, path: String, tokens: u64 },
    /// The conversation is about to be compressed, which may take a request to the model.
    #[serde(rename = "context.compressing")]
    ContextCompressing {
        reason: CompressionReason,
        /// Of the request that was due.
        tokens: u64,
    },
    /// Fewer tokens of the conversation are sent from now on.
    #[serde(rename = "context.compressed")]
    ContextCompressed(Compressed),
    /// Voids the deltas of this step so far: the request is made again.
    #[serde(rename = "retry")]
    Retry {
        /// The attempt that comes next; the first one of a step is 1.
        attempt: u32,
        /// How many there may be.
        attempts: u32,
        delay_ms: u64,
        cause: String,
    },
    /// Something is wrong, and the run goes on.
    #[serde(rename = "warning")]
    Warning { message: String },
    /// Always the last: also after an error or a signal.
    #[serde(rename = "run.completed")]
    RunCompleted(RunCompleted),
}

/// How a run begins: who runs, where, with what.
#[derive(Debug, Clone, Serialize)]
pub struct RunStarted {
    pub cwd: String,
    pub agent: String,
    pub model: String,
    /// True when a script, not a model, writes the replies.
    pub scripted: bool,
    pub prompts: Vec<PromptUsed>,
    pub tools: Vec<String>,
    pub limits: serde_json::Value,
    pub context: ContextSize,
}

/// A prompt that the run renders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptUsed {
    pub name: String,
    pub version: String,
    pub fingerprint: String,
}

/// Tokens that the model can hold, and how many of them a request may use.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ContextSize {
    pub budget: u64,
    pub window: u64,
}

/// What a compression did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compressed {
    pub reason: CompressionReason,
    /// The configured name: `staged`, `summary`, `window`, `selective`.
    pub strategy: String,
    /// Of the request that was due, the definitions of the tools included.
    pub tokens_before: u64,
    /// Of the request that is made instead.
    pub tokens_after: u64,
    /// What a request may hold.
    pub budget: u64,
    /// Messages whose text was shortened.
    pub masked: usize,
    /// Messages that a summary or a note stands for.
    pub summarized: usize,
    /// Skills and files of skills whose text was taken out.
    pub unloaded: usize,
    /// What asking for the summary cost.
    #[serde(default)]
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Why a conversation was compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompressionReason {
    /// The next request would have passed `compress_at`.
    Threshold,
    /// A person asked for it.
    Manual,
    /// The server refused a request as too long.
    Overflow,
}

/// What one call cost, and how it ended. Never sent to the model. Times are in milliseconds, to the microsecond.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallTelemetry {
    /// Names this one call, among those of all sessions.
    pub execution_id: String,
    pub tool_name: String,
    /// Empty where there is no such tool.
    pub tool_version: String,
    /// When the call was taken up: RFC 3339, UTC.
    pub timestamp: String,
    /// How long the tool itself ran; absent where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    /// From taking the call up until it was over: checks, and waiting for a permission or a free place, included.
    pub duration_ms: f64,
    /// Of the arguments, as the model wrote them.
    pub input_tokens: u64,
    /// Of the result, as the model reads it.
    pub output_tokens: u64,
    /// True when both are bytes over four, not counted.
    pub tokens_estimated: bool,
    pub output_bytes: u64,
    pub success: bool,
    /// `denied`, `cancelled`, `timeout`, `invalid_call`, or the kind of the tool's error (`parameter`, `permanent`,
    /// `transient`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// One line, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// How often the call was tried again.
    pub retries: u32,
    /// Processor time of the processes that the call started and that ended with it. Absent where another call
    /// with processes ran at the same time: the system tells the sum alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<f64>,
    /// The most memory that one of these processes held. Known only where no process before it held more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// What the tool measured itself: the numbers among its metadata.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
}

impl CallTelemetry {
    /// A call of which only its name and its end are known.
    #[must_use]
    pub fn unmeasured(tool_name: &str, status: CallStatus) -> Self {
        let code = match status {
            CallStatus::Ok => None,
            CallStatus::Error => Some("permanent"),
            CallStatus::Denied => Some("denied"),
            CallStatus::Timeout => Some("timeout"),
            CallStatus::Cancelled => Some("cancelled"),
        };
        Self {
            tool_name: tool_name.to_owned(),
            success: code.is_none(),
            error_code: code.map(str::to_owned),
            ..Self::default()
        }
    }
}

/// The answer to a permission question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionVerdict {
    Allowed,
    Denied,
}

/// Who answered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    Person,
    /// Nobody was there to ask.
    Nobody,
    /// The approval mode.
    Policy,
    /// A rule of the configuration.
    Rule,
}

/// How a run ends. `--output json` prints this alone.
#[derive(Debug, Clone, Serialize)]
pub struct RunCompleted {
    pub status: RunStatus,
    pub exit_code: u8,
    /// One sentence: why it ended as it did.
    pub reason: String,
    /// The final answer: text, or data under `--schema`.
    pub result: serde_json::Value,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    pub turns: u64,
    pub steps: u64,
    pub tool_calls: u64,
    pub denied: u64,
    pub duration_ms: u64,
}

/// The state in which a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Completed,
    Limit,
    Error,
    Interrupted,
}
