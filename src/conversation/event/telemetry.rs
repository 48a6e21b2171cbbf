//! The cost of a call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::conversation::message::CallStatus;

/// The cost and the end of one call. Never sent to the model. Times are in milliseconds, to the microsecond.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallTelemetry {
    /// Identifies this call among those of all sessions.
    pub execution_id: String,
    pub tool_name: String,
    /// Empty if there is no such tool.
    pub tool_version: String,
    /// The start of the call: RFC 3339, UTC.
    pub timestamp: String,
    /// The time that the tool itself ran; absent if it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    /// The time from the start to the end of the call, including checks and waiting for a permission or a free
    /// slot.
    pub duration_ms: f64,
    /// The tokens of the arguments, as the model wrote them.
    pub input_tokens: u64,
    /// The tokens of the result, as the model reads it.
    pub output_tokens: u64,
    /// True if both token counts are estimated (bytes over four).
    pub tokens_estimated: bool,
    pub output_bytes: u64,
    pub success: bool,
    /// `denied`, `cancelled`, `timeout`, `invalid_call`, the kind of the tool's error (`parameter`, `permanent`,
    /// `transient`), or how the program failed that it ran (`exit`, `signal`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// One line, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The number of retries of the call.
    pub retries: u32,
    /// Processor time of the processes that the call started and that ended with it. Absent if another call with
    /// processes ran at the same time: the system reports only the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<f64>,
    /// The peak memory of these processes. Known only if neither an earlier process nor this program used more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// The tool's own measurements: the numbers among its metadata.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
}

impl CallTelemetry {
    /// The code of a call whose program exited with another code than 0.
    pub const EXIT: &'static str = "exit";
    /// The code of a call whose program was ended by a signal.
    pub const SIGNAL: &'static str = "signal";

    /// True if the tool returned a result, but the program that it ran failed.
    pub fn program_failed(&self) -> bool {
        [Some(Self::EXIT), Some(Self::SIGNAL)].contains(&self.error_code.as_deref())
    }

    /// A call whose name and status alone are known.
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
