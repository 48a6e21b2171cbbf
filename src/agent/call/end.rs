//! The end of a call, in types: done, cut, failed, denied, cancelled. The status of the events and of the log, and the code
//! of the telemetry, follow from it here alone.

use std::time::Duration;

use crate::base::output::{Exit, ToolErrorKind, ToolOutput};
use crate::conversation::event::{CallTelemetry, DecidedBy};
use crate::conversation::message::CallStatus;

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallEnd {
    /// The tool did what was asked.
    Done,
    /// The tool did what was asked, but the result lacks a part that the call asked for. The whole is elsewhere: in the
    /// spill store ([`ToolOutput::kept`]), or to be had in parts.
    Cut,
    Failed(CallFailure),
    Denied(DecidedBy),
    /// It was interrupted.
    Cancelled {
        /// The time that its tool ran: it may have had effects. `None` if it never started.
        ran_for: Option<Duration>,
    },
}

/// The reason that a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFailure {
    /// The call could not be run as it was written: no such tool, arguments that do not fit.
    Invalid,
    /// The tool reported an error in place of a result.
    Tool(ToolErrorKind),
    /// The tool ran a program to its end, and that failed. The result is whole.
    Program(Exit),
    /// The tool returned a result, but the work was not finished: a helper reached a limit.
    Unfinished,
}

impl CallEnd {
    /// The end of a call whose tool returned a result.
    pub(super) fn of_output(output: &ToolOutput) -> Self {
        match &output.exit {
            Some(exit) if *exit != Exit::Code(0) => Self::Failed(CallFailure::Program(exit.clone())),
            _ if output.unfinished => Self::Failed(CallFailure::Unfinished),
            _ => Self::Done,
        }
    }

    /// True if the tool did what was asked, whether the result is whole or cut.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done | Self::Cut)
    }

    /// True if the tool returned a result: it did what was asked, or the program that it ran failed.
    pub fn has_result(&self) -> bool {
        self.is_done() || matches!(self, Self::Failed(CallFailure::Program(_) | CallFailure::Unfinished))
    }

    /// True if it failed for a reason that may be gone when the call is made again.
    pub fn may_pass(&self) -> bool {
        use ToolErrorKind::{Timeout, Transient};
        matches!(
            self,
            Self::Failed(
                CallFailure::Program(_) | CallFailure::Unfinished | CallFailure::Tool(Timeout | Transient)
            )
        )
    }

    /// The status of the call in events and in the log.
    pub fn status(&self) -> CallStatus {
        match self {
            Self::Done | Self::Cut => CallStatus::Ok,
            Self::Failed(CallFailure::Tool(ToolErrorKind::Timeout)) => CallStatus::Timeout,
            Self::Failed(_) => CallStatus::Error,
            Self::Denied(_) => CallStatus::Denied,
            Self::Cancelled { .. } => CallStatus::Cancelled,
        }
    }

    /// The code of [`CallTelemetry::error_code`]; `None` if the call was done.
    pub(super) fn error_code(&self) -> Option<&'static str> {
        Some(match self {
            Self::Done | Self::Cut => return None,
            Self::Failed(CallFailure::Invalid) => "invalid_call",
            Self::Failed(CallFailure::Unfinished) => "unfinished",
            Self::Failed(CallFailure::Program(Exit::Code(_))) => CallTelemetry::EXIT,
            Self::Failed(CallFailure::Program(Exit::Signal(_))) => CallTelemetry::SIGNAL,
            Self::Failed(CallFailure::Tool(kind)) => match kind {
                ToolErrorKind::Parameter => "parameter",
                ToolErrorKind::Permanent => "permanent",
                ToolErrorKind::Transient => "transient",
                ToolErrorKind::Timeout => "timeout",
                ToolErrorKind::Unavailable => "unavailable",
            },
            Self::Denied(_) => "denied",
            Self::Cancelled { .. } => "cancelled",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_done_is_ok() {
        let program = |exit| CallEnd::Failed(CallFailure::Program(exit));
        let tool = |kind| CallEnd::Failed(CallFailure::Tool(kind));
        for (end, status, code, has_result) in [
            (CallEnd::Done, CallStatus::Ok, None, true),
            (CallEnd::Cut, CallStatus::Ok, None, true),
            (program(Exit::Code(1)), CallStatus::Error, Some("exit"), true),
            (program(Exit::Signal("SIGSEGV".to_owned())), CallStatus::Error, Some("signal"), true),
            (tool(ToolErrorKind::Permanent), CallStatus::Error, Some("permanent"), false),
            (tool(ToolErrorKind::Timeout), CallStatus::Timeout, Some("timeout"), false),
            (CallEnd::Failed(CallFailure::Unfinished), CallStatus::Error, Some("unfinished"), true),
            (CallEnd::Failed(CallFailure::Invalid), CallStatus::Error, Some("invalid_call"), false),
            (CallEnd::Denied(DecidedBy::Rule), CallStatus::Denied, Some("denied"), false),
            (CallEnd::Cancelled { ran_for: None }, CallStatus::Cancelled, Some("cancelled"), false),
        ] {
            assert_eq!((end.status(), end.error_code(), end.has_result()), (status, code, has_result), "{end:?}");
            assert_eq!(end.is_done(), status == CallStatus::Ok, "{end:?}");
        }
        let output = |exit| ToolOutput { exit, ..ToolOutput::default() };
        assert_eq!(CallEnd::of_output(&output(None)), CallEnd::Done);
        assert_eq!(CallEnd::of_output(&output(Some(Exit::Code(0)))), CallEnd::Done);
        assert_eq!(CallEnd::of_output(&output(Some(Exit::Code(3)))), program(Exit::Code(3)));
    }
}
