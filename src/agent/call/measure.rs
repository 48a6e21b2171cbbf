//! Measures a call: noted while it runs, assembled when it is over.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::base::output::ToolOutput;
use crate::base::{text, tokens};
use crate::conversation::event::CallTelemetry;
use crate::conversation::message::{CallStatus, ToolCall};
use crate::conversation::telemetry::to_milliseconds;
use crate::safety::process::ProcessUsage;
use crate::tools::Tool;

use super::end::CallEnd;

/// The time when a call began.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallStart {
    at: Timestamp,
    since: Instant,
}

/// The measurements of a call.
#[derive(Debug)]
pub(super) struct CallMeasurement {
    pub taken_up: CallStart,
    /// The time from the beginning to the end of the call.
    pub total: Duration,
    /// The time that the tool ran, if it did.
    pub latency: Option<Duration>,
    /// The number of retries by the runtime.
    pub retries: u32,
    pub spent: Option<ProcessUsage>,
}

impl CallStart {
    pub fn now() -> Self {
        Self { at: Timestamp::now(), since: Instant::now() }
    }
}

impl CallMeasurement {
    /// Measures a call that ends now and whose tool did not run.
    pub fn not_run(taken_up: CallStart) -> Self {
        let total = taken_up.since.elapsed();
        Self { taken_up, total, latency: None, retries: 0, spent: None }
    }

    /// The telemetry of the call, for the events and the log. `content` is what the model reads; `output` is
    /// redacted.
    pub fn telemetry(
        &self,
        call: &ToolCall,
        tool: Option<&dyn Tool>,
        end: &CallEnd,
        output: &ToolOutput,
        content: &str,
    ) -> CallTelemetry {
        const MESSAGE: usize = 200;
        let code = end.error_code();
        CallTelemetry {
            execution_id: fresh_id(),
            tool_name: text::one_line(&call.name, MESSAGE),
            tool_version: tool.map_or(String::new(), |_| env!("CARGO_PKG_VERSION").to_owned()),
            timestamp: format!("{:.3}", self.taken_up.at),
            latency_ms: self.latency.map(to_milliseconds),
            duration_ms: to_milliseconds(self.total),
            input_tokens: tokens::estimate_tokens(&call.arguments),
            output_tokens: tokens::estimate_tokens(content),
            tokens_estimated: true,
            output_bytes: content.len() as u64,
            success: code.is_none(),
            error_code: code.map(str::to_owned),
            error_message: code.map(|_| text::one_line(&output.summary, MESSAGE)),
            retries: self.retries,
            cpu_ms: self.spent.map(|spent| to_milliseconds(spent.cpu)),
            peak_memory_bytes: self.spent.and_then(|spent| spent.peak_memory),
            metrics: output
                .metadata
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
                .collect(),
        }
    }
}

/// The telemetry of a call that was interrupted after its tool ran for this long: the time of the interruption is
/// unknown.
pub(super) fn measure_interrupted(tool_name: &str, ran_for: Option<Duration>) -> CallTelemetry {
    CallTelemetry {
        execution_id: fresh_id(),
        timestamp: format!("{:.3}", Timestamp::now()),
        latency_ms: ran_for.map(to_milliseconds),
        ..CallTelemetry::unmeasured(tool_name, CallStatus::Cancelled)
    }
}

fn fresh_id() -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(16).map(|c| c.to_ascii_lowercase()).collect()
}
