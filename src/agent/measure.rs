//! Measures a call: noted while it runs, assembled when it is over.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::base::output::{ToolErrorKind, ToolOutput};
use crate::base::{text, tokens};
use crate::config::Effect;
use crate::conversation::event::CallTelemetry;
use crate::conversation::message::{CallStatus, ToolCall};
use crate::conversation::telemetry::milliseconds;
use crate::safety::process::{Spent, Watch};
use crate::tools::Tool;

/// The time when a call began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    at: Timestamp,
    since: Instant,
}

/// The measurements of a call.
#[derive(Debug)]
pub(super) struct Measured {
    taken_up: Moment,
    /// The time from the beginning to the end of the call.
    total: Duration,
    /// The time that the tool ran, if it did.
    pub latency: Option<Duration>,
    /// The kind of error that the tool returned.
    pub error: Option<ToolErrorKind>,
    /// The number of retries by the runtime.
    pub retries: u32,
    pub spent: Option<Spent>,
}

impl Moment {
    pub fn now() -> Self {
        Self { at: Timestamp::now(), since: Instant::now() }
    }
}

impl Measured {
    /// Measures a call that ends now and whose tool did not run.
    pub fn not_run(taken_up: Moment) -> Self {
        let total = taken_up.since.elapsed();
        Self { taken_up, total, latency: None, error: None, retries: 0, spent: None }
    }

    /// Measures a call that ends now.
    pub fn ran(taken_up: Moment, stopwatch: Stopwatch, error: Option<ToolErrorKind>) -> Self {
        let latency = Some(stopwatch.start.elapsed());
        Self { latency, error, spent: stopwatch.processes.and_then(Watch::end), ..Self::not_run(taken_up) }
    }

    /// The telemetry of the call, for the events and the log. `content` is what the model reads; `output` is
    /// redacted.
    pub fn telemetry(
        &self,
        call: &ToolCall,
        tool: Option<&dyn Tool>,
        status: CallStatus,
        output: &ToolOutput,
        content: &str,
    ) -> CallTelemetry {
        const MESSAGE: usize = 200;
        let success = status == CallStatus::Ok;
        CallTelemetry {
            execution_id: fresh_id(),
            tool_name: text::one_line(&call.name, MESSAGE),
            tool_version: tool.map_or(String::new(), |tool| tool.version().to_owned()),
            timestamp: format!("{:.3}", self.taken_up.at),
            latency_ms: self.latency.map(milliseconds),
            duration_ms: milliseconds(self.total),
            input_tokens: tokens::estimate(&call.arguments),
            output_tokens: tokens::estimate(content),
            tokens_estimated: true,
            output_bytes: content.len() as u64,
            success,
            error_code: (!success).then(|| code(status, self.error).to_owned()),
            error_message: (!success).then(|| text::one_line(&output.summary, MESSAGE)),
            retries: self.retries,
            cpu_ms: self.spent.map(|spent| milliseconds(spent.cpu)),
            peak_memory_bytes: self.spent.and_then(|spent| spent.peak_memory),
            metrics: output
                .metadata
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
                .collect(),
        }
    }
}

/// Measures a running tool.
pub(super) struct Stopwatch {
    start: Instant,
    processes: Option<Watch>,
}

impl Stopwatch {
    pub fn start(tool: &dyn Tool) -> Self {
        let starts_processes = tool.definition().effects.contains(&Effect::Process);
        Self { start: Instant::now(), processes: starts_processes.then(Watch::begin) }
    }
}

/// The telemetry of a call that was answered by settling the turn: the time of the interruption is unknown.
pub(super) fn cancelled(tool_name: &str) -> CallTelemetry {
    CallTelemetry {
        execution_id: fresh_id(),
        timestamp: format!("{:.3}", Timestamp::now()),
        ..CallTelemetry::unmeasured(tool_name, CallStatus::Cancelled)
    }
}

fn code(status: CallStatus, error: Option<ToolErrorKind>) -> &'static str {
    match (status, error) {
        (CallStatus::Denied, _) => "denied",
        (CallStatus::Cancelled, _) => "cancelled",
        (CallStatus::Timeout, _) | (_, Some(ToolErrorKind::Timeout)) => "timeout",
        (_, Some(ToolErrorKind::Parameter)) => "parameter",
        (_, Some(ToolErrorKind::Permanent)) => "permanent",
        (_, Some(ToolErrorKind::Transient)) => "transient",
        (_, Some(ToolErrorKind::Unavailable)) => "unavailable",
        (_, None) => "invalid_call",
    }
}

fn fresh_id() -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(16).map(|c| c.to_ascii_lowercase()).collect()
}
