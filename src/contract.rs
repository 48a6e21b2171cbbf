//! The traits between the loop and the world: a model, a tool, a sink of events, somebody to ask.
//!
//! Each has two lives at least (network and script; every tool; terminal, JSONL and a `Vec`; a person and
//! nobody). What implements them lives on higher floors and never sees its neighbours.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use crate::config::{Capabilities, Prices, Redactor, RetryConfig};
pub use crate::config::{Effect, Permission};
use crate::event::Event;
use crate::message::{CallStatus, FinishReason, Message, ToolCall, Usage};
use crate::output::{ToolError, ToolOutput};
use crate::spill::Spill;
use crate::workspace::Workspace;

// ---------------------------------------------------------------------------------------------- models

/// A model that can be asked. One call is one attempt: whether to try again is the loop's decision.
pub trait ChatModel: Send + Sync {
    /// What is known of the model without asking it.
    fn info(&self) -> &ModelInfo;

    /// Sends the request and waits for the reply to begin.
    ///
    /// # Errors
    /// Whatever kept a reply from beginning, by kind.
    fn ask<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>>;

    /// The request as it would be sent (`--dry-run`): the whole body as JSON.
    fn preview(&self, request: Request<'_>) -> Value;
}

/// A reply as it comes. Dropping it cancels the request.
pub trait ReplyStream: Send {
    /// The next piece. After [`Delta::Finished`] nothing comes any more.
    ///
    /// # Errors
    /// A stream that ended without saying so is [`ModelErrorKind::Incomplete`], never a short success.
    fn next(&mut self) -> BoxFuture<'_, Result<Delta, ModelError>>;
}

/// A piece of a reply. Text is joined per read from the network, not per event.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// The model has begun to write a call of this tool.
    CallBegun(String),
    Finished(ReplyEnd),
}

/// What is known once a reply has ended. Calls that were cut (`finish` is `Length`) are among them, as far as
/// they were written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplyEnd {
    pub tool_calls: Vec<ToolCall>,
    pub finish: FinishReason,
    pub usage: Usage,
}

/// Makes vectors of texts, such that what means the same lies close together.
pub trait Embedder: Send + Sync {
    /// One vector a text, in their order. One call is one attempt.
    ///
    /// # Errors
    /// Whatever kept them from coming, by kind.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embedded, ModelError>>;
}

/// Texts as vectors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embedded {
    pub vectors: Vec<Vec<f32>>,
    /// What they cost.
    pub tokens: u64,
}

/// One request, borrowed from the conversation.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The system prompt first, then the history.
    pub messages: &'a [Message],
    /// Sorted by name, the same for a whole session.
    pub tools: &'a [ToolDefinition],
    pub tool_choice: ToolChoice,
    /// The JSON Schema that the final answer must match, where one is asked for.
    pub schema: Option<&'a Value>,
    pub session_id: &'a str,
    /// What the calls of this run returned, as data, in order. Only scripts read it.
    pub results: &'a [CallRecord],
}

/// A finished call, for scripts.
#[derive(Debug, Clone, Serialize)]
pub struct CallRecord {
    pub name: String,
    pub arguments: Value,
    pub status: CallStatus,
    pub result: Value,
    pub observation: String,
}

/// Whether the model may call tools in this reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    /// The tools are sent, so that the prefix stays the same, but none may be called.
    None,
}

/// What is known of a model.
#[derive(Debug, Clone)]
pub struct ModelInfo {
    /// The configured name, `default`.
    pub name: String,
    /// The provider's name for it, `gpt-5-mini`.
    pub id: String,
    pub context_window: u64,
    pub window_source: WindowSource,
    pub max_output_tokens: Option<u64>,
    pub prices: Option<Prices>,
    pub capabilities: Capabilities,
    pub retry: RetryConfig,
    /// True when a script writes the replies.
    pub scripted: bool,
    /// False when there is neither a key nor a server that needs none: asking gives advice, not a reply.
    pub configured: bool,
}

/// Where the size of the window comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    Declared,
    Catalogue,
    /// Nobody said: a cautious guess.
    Assumed,
}

/// Why a reply did not come, or not whole.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.describe())]
pub struct ModelError {
    pub kind: ModelErrorKind,
    /// HTTP status, where there was one.
    pub status: Option<u16>,
    /// The provider's own words, or ours where it said nothing.
    pub message: String,
    /// The provider's name for the model.
    pub model: String,
    /// The least time to wait before another attempt, as the provider asked.
    pub retry_after: Option<Duration>,
}

/// What kind of failure it was: decides retry and exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelErrorKind {
    Authentication,
    RateLimit,
    /// A quota that waiting does not refill (402, `insufficient_quota`).
    Quota,
    Transient,
    ContextTooLong,
    BadRequest,
    /// The stream ended, or became unreadable, before the reply did.
    Incomplete,
}

impl ModelError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, ModelErrorKind::RateLimit | ModelErrorKind::Transient | ModelErrorKind::Incomplete)
    }

    fn describe(&self) -> String {
        match self.status {
            Some(status) => format!("{}: HTTP {status}: {}", self.model, self.message),
            None => format!("{}: {}", self.model, self.message),
        }
    }
}

// ---------------------------------------------------------------------------------------------- tools

/// One tool: its definition and its code in one file.
pub trait Tool: Send + Sync {
    /// What the model and the policy are told of it. Never changes.
    fn definition(&self) -> &ToolDefinition;

    /// Which version of it runs, for telemetry: the program's own, for what comes with it.
    #[expect(clippy::unnecessary_literal_bound, reason = "that of a configured tool is its own")]
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    /// What this very call needs, where that is less than the definition says (a command that is known to only
    /// read). The default is what the definition says.
    fn permission(&self, _arguments: &Value, _workspace: &Workspace) -> Permission {
        self.definition().permission
    }

    /// The paths that this call would read, as the model wrote them; none where it reads the workspace at large.
    fn reads<'a>(&self, _arguments: &'a Value) -> Vec<&'a str> {
        Vec::new()
    }

    /// The paths that this call would write, as the model wrote them.
    fn writes<'a>(&self, _arguments: &'a Value) -> Vec<&'a str> {
        Vec::new()
    }

    /// The command that the call would run, if any, as a line for a shell.
    fn shell_line<'a>(&'a self, _arguments: &'a Value) -> Option<ShellLine<'a>> {
        None
    }

    /// Whether what it returns may come from the network. The default is what the definition says.
    fn has_network(&self) -> bool {
        self.definition().effects.contains(&Effect::Network)
    }

    /// Whether what it returns may direct the model: instructions that the person installed, or what they said.
    /// Anything else is marked as data.
    fn trusted(&self) -> bool {
        false
    }

    /// Whether the call waits for a person: such time counts against no limit.
    fn waits_for_person(&self) -> bool {
        false
    }

    /// Whether the same call may be made twice without doing anything twice: only such a call is tried again by itself.
    fn idempotent(&self) -> bool {
        self.definition().permission == Permission::Read
    }

    /// How long this call may take, where its arguments say.
    fn time_asked(&self, _arguments: &Value) -> Option<Duration> {
        None
    }

    /// One short line for a person: what the call is about, without the tool's name (`src/main.rs`, `cargo test`).
    fn subject(&self, arguments: &Value) -> String;

    /// What a person reads before allowing the call: the exact command, or the diff.
    ///
    /// # Errors
    /// When the call would fail, so that there is nothing to ask.
    fn preview(&self, arguments: &Value, _workspace: &Workspace) -> Result<String, ToolError> {
        Ok(self.subject(arguments))
    }

    /// Runs the call. `arguments` have passed the schema. Dropping the future cancels the call.
    fn call<'a>(
        &'a self,
        arguments: Value,
        context: CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// What the model is told of a tool, and what the policy knows of it.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    pub name: String,
    /// Written for the model: what it does, what it returns, its limits, when not to use it.
    pub description: String,
    /// JSON Schema of the arguments, keys in a fixed order.
    pub parameters: Value,
    pub permission: Permission,
    pub effects: Vec<Effect>,
    /// Part of `tools: ["*"]`.
    pub default: bool,
}

impl ToolDefinition {
    /// The first sentence of the description.
    #[must_use]
    pub fn summary(&self) -> &str {
        let text = self.description.trim();
        let line = text.lines().next().unwrap_or_default();
        line.find(". ").map_or(line, |end| &line[..=end])
    }
}

/// A command line, and what it would run in.
#[derive(Debug, Clone)]
pub struct ShellLine<'a> {
    /// As a shell would be given it.
    pub line: Cow<'a, str>,
    /// As the model wrote it; the workspace where it said nothing.
    pub workdir: Option<Cow<'a, str>>,
    /// The whole environment of the command.
    pub env: Cow<'a, [(String, String)]>,
    /// The command for a person, where it stands in the configuration and the model gives the arguments alone.
    pub configured: Option<String>,
}

/// The spill store, for text that is still to be redacted.
#[derive(Clone, Copy)]
pub struct Keep<'a> {
    pub spill: &'a Spill,
    pub redactor: &'a Redactor,
}

/// What else may end a call that takes long.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// The most that a call may ask for.
    pub most: Duration,
    /// How long a command may be silent.
    pub idle: Option<Duration>,
    /// What is left of the run's own time for calls; a call that goes on longer is dropped, and tells nothing.
    pub run: Option<Duration>,
}

/// What a call may use of the run it belongs to.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    pub workspace: &'a Workspace,
    /// The longest that this call may take.
    pub timeout: Duration,
    /// The clocks beside that one.
    pub clocks: Clocks,
    /// The most tokens that the observation may have; a tool that shapes its own output keeps below it.
    pub max_tokens: usize,
    /// Live output of a running command, for whoever watches.
    pub live: &'a (dyn Fn(&str) + Send + Sync),
    /// Where a tool keeps what its observation leaves out; `None` where nothing could read it again.
    pub keep: Option<Keep<'a>>,
    /// A person allowed this very call to run its command outside of the sandbox.
    pub unconfined: bool,
    /// Says that the sandbox may have kept the call from working: a person may then let it run outside.
    pub refused: &'a (dyn Fn() + Send + Sync),
    /// Tokens that the call spent on asking the model: they count as the run's own.
    pub spent: &'a (dyn Fn(Usage) + Send + Sync),
    /// A fact for whoever watches (a skill was loaded).
    pub notify: &'a (dyn Fn(crate::event::EventKind) + Send + Sync),
}

// ---------------------------------------------------------------------------------------------- sinks, people

/// Whoever watches a run. Called in order from one task.
pub trait EventSink: Send {
    /// # Errors
    /// When nobody can see any more (stdout was closed); the turn then ends.
    fn emit(&mut self, event: &Event) -> std::io::Result<()>;
}

/// Somebody, or nobody, to ask.
pub trait Approver: Send + Sync {
    /// Whether a person is there at all.
    fn present(&self) -> bool;

    /// May this call run?
    fn approve<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Approval>;

    /// A question of the model to the person; `None` when nobody answers.
    fn answer<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>>;
}

/// What a person is asked to allow.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub tool: &'a str,
    /// Exactly what would happen: the command, or the diff.
    pub preview: &'a str,
    /// Why it is asked.
    pub why: &'a str,
    /// Exactly what [`Approval::Always`] would allow for the rest of the session; `None` where that is no answer.
    pub always: Option<&'a str>,
    pub workspace: &'a Path,
}

/// What they answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    Allow,
    /// This call, and for the rest of the session whatever [`Question::always`] says.
    Always,
    /// With the reason, for the model; empty when none was given.
    Deny(String),
    /// Nobody could be asked.
    Nobody,
}
