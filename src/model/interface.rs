//! The interface to a model: requests, streamed replies, errors.

use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::image::Image;
use crate::config::{GuidanceProfile, Prices, RetryConfig};
use crate::conversation::message::{CallStatus, FinishReason, Item, ReplyPart, ToolCall, Usage};

use super::allowance::Allowance;
use super::tool_definition::ToolDefinition;

/// A model. One call is one attempt: the loop decides whether to try again.
pub trait ChatModel: Send + Sync {
    /// Facts about the model that need no request.
    fn info(&self) -> &ModelInfo;

    /// Sends the request and waits for the reply to begin.
    ///
    /// # Errors
    /// The reply did not begin; the error says why, by kind.
    fn ask<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>>;

    /// The model that this one passes requests on to; `None` if it answers itself.
    fn inner(&self) -> Option<&dyn ChatModel> {
        None
    }

    /// The request as it would be sent (`--dry-run`): the whole body as JSON.
    fn preview(&self, request: ModelRequest<'_>) -> Value;

    /// Called when a reply begins a call, so that a larger request will follow: slow preparations may begin. Does not
    /// wait.
    fn prepare(&self) {
        if let Some(inner) = self.inner() {
            inner.prepare();
        }
    }

    /// Learns what must be known before the first request, and waits for it: how large the window is to be that the
    /// server is asked for. Later calls return at once.
    fn settle(&self) -> BoxFuture<'_, ()> {
        match self.inner() {
            Some(inner) => inner.settle(),
            None => Box::pin(std::future::ready(())),
        }
    }

    /// The server's own statement of the window, if it was asked and has answered.
    fn find_window(&self) -> Option<ServerWindow> {
        self.inner()?.find_window()
    }

    /// The exact size of a request in tokens, if it is known without asking.
    fn measured(&self, request: ModelRequest<'_>) -> Option<u64> {
        self.inner()?.measured(request)
    }

    /// The lessons of the server's refusals so far.
    fn learnt(&self) -> Learnt {
        self.inner().map(ChatModel::learnt).unwrap_or_default()
    }
}

/// The parts that a server refused, although it answers without them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learnt {
    /// Its words, oldest first.
    pub refusals: Vec<String>,
    /// The keys of a model file that leave these parts out.
    pub keys: Map<String, Value>,
}

/// The window of a model as its server runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerWindow {
    /// The program, `Ollama`.
    pub server: &'static str,
    /// Tokens.
    pub window: u64,
    /// The tokens that the model could have there, if a request can ask for more than this window.
    pub largest: Option<u64>,
}

/// A reply as it arrives. Dropping it cancels the request.
pub trait ReplyStream: Send {
    /// The next piece. Nothing follows [`Delta::Finished`].
    ///
    /// # Errors
    /// A stream that ends without a final marker is [`ModelErrorKind::Incomplete`], never a short success.
    fn next(&mut self) -> BoxFuture<'_, Result<Delta, ModelError>>;

    /// What the server still takes, if it said so.
    fn allowance(&self) -> Option<Allowance> {
        None
    }

    /// What a reply that failed took as far as it came; `None` if it had not begun, or if nobody knows.
    fn count_taken(&self) -> Option<TakenTokens> {
        None
    }
}

/// What a reply took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TakenTokens {
    /// An estimate is that of the output alone.
    pub usage: Usage,
    /// USD, if the provider states the cost of the request.
    pub cost_usd: Option<f64>,
}

/// A piece of a reply. Text is joined per read from the network, not per event.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// The model began to write a call of this tool.
    CallBegun(String),
    /// Something about the request or the reply that the user should know.
    Notice(String),
    /// The provider searched the web for the model, or found something there; in words.
    Searched(String),
    Finished(ReplyEnd),
}

/// The whole of a reply, known when it has ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplyEnd {
    /// The parts in the order in which the model wrote them, with the data that the provider needs back. Includes calls
    /// that were cut off (`finish` is `Length`), as far as they were written.
    pub parts: Vec<ReplyPart>,
    pub finish: FinishReason,
    pub usage: Usage,
    /// USD, if the provider states the cost of the request.
    pub cost_usd: Option<f64>,
    /// True if it came as a stream, not as one body.
    pub streamed: bool,
}

impl ReplyEnd {
    /// The calls of the reply, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            ReplyPart::Call(call) => Some(&call.request),
            ReplyPart::Text { .. } | ReplyPart::Reasoning { .. } => None,
        })
    }
}

/// One request, borrowed from the conversation.
#[derive(Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The system prompt; empty if there is none.
    pub system: &'a str,
    /// The conversation. An open call counts as not answered.
    pub items: &'a [Item],
    /// Text sent in the person's place after the conversation, without becoming part of it.
    pub aside: Option<&'a str>,
    /// Sorted by name, the same for a whole session.
    pub tools: &'a [ToolDefinition],
    pub tool_choice: ToolChoice,
    /// The JSON Schema that the final answer must match, if any.
    pub schema: Option<&'a Value>,
    pub session_id: &'a str,
    /// The most tokens that the reply may have, if that is less than the model's own limit.
    pub output_cap: Option<u64>,
    /// The results of this run's calls, as data, in order. Only scripts read them.
    pub results: &'a [CallRecord],
}

impl<'a> ModelRequest<'a> {
    /// A request with only these items: no system prompt, no tools.
    pub fn from_items(items: &'a [Item], session_id: &'a str) -> Self {
        let tool_choice = ToolChoice::None;
        Self {
            system: "",
            items,
            aside: None,
            tools: &[],
            tool_choice,
            schema: None,
            session_id,
            output_cap: None,
            results: &[],
        }
    }
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

/// The choice of tools for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    /// The tools are sent, so that the prefix stays the same, but none may be called.
    None,
}

/// What a provider takes in one request, as far as that is known. Each picture alone is made small enough for all of them
/// (`base/image/scaling.rs`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PictureLimits {
    /// The most pictures.
    pub most: Option<u64>,
    /// The most bytes of the whole request.
    pub request_bytes: Option<u64>,
}

/// Facts about a model.
#[derive(Debug, Clone)]
pub struct ModelInfo {
    /// The configured name, `default`.
    pub name: String,
    /// The provider's name for it, `gpt-5-mini`.
    pub id: String,
    /// Who serves it, by the names of OpenTelemetry: `openai`, `anthropic`; for an unknown host, that of the protocol.
    pub provider: String,
    pub context_window: u64,
    pub window_source: WindowSource,
    /// The most tokens of a request, if that is known and less than the window.
    pub max_input_tokens: Option<u64>,
    /// Tokens of the window that are kept for a reply, if known.
    pub max_output_tokens: Option<u64>,
    /// The most tokens that a reply can have: what requests ask for, else what the model can write. `None` if only the
    /// window bounds it.
    pub largest_output: Option<u64>,
    /// The tokens of thought that requests ask for, if they ask for a number.
    pub thinking_budget: Option<u64>,
    pub prices: Option<Prices>,
    /// The day on which the provider ends it, if that is known.
    pub ends: Option<Date>,
    /// True if it may be given tools.
    pub calls_tools: bool,
    /// True if it sees pictures.
    pub sees: bool,
    pub pictures: PictureLimits,
    /// True if its server takes PDFs.
    pub reads_documents: bool,
    /// The amount of guidance that it needs.
    pub profile: GuidanceProfile,
    pub retry: RetryConfig,
    /// True if a script writes the replies.
    pub scripted: bool,
    /// False if there is neither a key nor a server that needs none: a request then fails with advice.
    pub configured: bool,
}

impl ModelInfo {
    /// True if the model can be shown this picture or PDF.
    pub fn shows(&self, picture: &Image) -> bool {
        if picture.is_document() { self.reads_documents } else { self.sees }
    }
}

/// The source of the window's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    Declared,
    Catalogue,
    /// Unknown: a cautious guess.
    Assumed,
}

/// The reason that a reply did not arrive, or not completely.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.describe())]
pub struct ModelError {
    pub kind: ModelErrorKind,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The provider's own words, or ours if it sent none.
    pub message: String,
    /// The provider's name for the model.
    pub model: String,
    /// The least time to wait before another attempt, as the provider asked.
    pub retry_after: Option<Duration>,
    /// True if the form of requests has changed because of this refusal: the same request may be sent again at once.
    pub is_lesson: bool,
}

/// The kind of failure. Decides retries and the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    Authentication,
    RateLimit,
    /// A quota that waiting does not refill (402, `insufficient_quota`).
    Quota,
    Transient,
    ContextTooLong,
    BadRequest,
    /// The stream ended or became unreadable before the reply was complete.
    Incomplete,
    /// A recording has no reply to this request, or cannot be written.
    NotRecorded,
    /// The reply is larger than the limits. What came before is kept; a retry would be as large.
    TooLarge,
}

impl ModelError {
    /// A failure of a model, by the provider's name for it.
    pub fn new(kind: ModelErrorKind, model: &str, message: impl Into<String>) -> Self {
        let (message, model) = (message.into(), model.to_owned());
        Self { kind, status: None, message, model, retry_after: None, is_lesson: false }
    }

    /// True if the same request may succeed later.
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
