//! The event of a request to a model that has ended.

use serde::Serialize;

use crate::conversation::message::{FinishReason, Usage};

/// A request to a model that has ended. There is one for every request that was sent: also for a retried, refused or
/// cancelled one, and for those of helpers. The sums of these events are those of `run.completed`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestFinished {
    /// The step of the conversation that it belongs to; the first is 1.
    pub step: u64,
    /// Counts the requests for one reply, from 1.
    pub attempt: u32,
    /// The provider's name for the model.
    pub model: String,
    /// Who serves the model, by the names of OpenTelemetry.
    pub provider: String,
    /// `main` for a step, `closing` for an answer without calls, `summary`, or the role or the step of a flow that
    /// asked.
    pub role: String,
    /// The helper that sent it, with those that called it before its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helper: Option<String>,
    pub status: RequestStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    pub usage: Usage,
    /// `None` if it is unknown.
    pub cost_usd: Option<f64>,
    pub duration_ms: u64,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// The reply is complete.
    Ok,
    /// The server answered with an error.
    Refused,
    /// There was no reply, or no complete or usable one.
    Failed,
    /// The run did not wait for its end.
    Cancelled,
}
