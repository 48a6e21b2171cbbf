//! Exit codes, the contract with scripts. One table decides which code wins if several apply.

pub use crate::agent::cancel::Signal;
use crate::agent::limits::ReachedLimit;
use crate::agent::turn::TurnStop;
use crate::config::ApprovalMode;
use crate::conversation::event::RunStatus;
use crate::conversation::session::SessionError;
use crate::model::ModelErrorKind;
use crate::prompt::PromptError;
use crate::skills::{SkillError, SkillErrorKind};

pub const DONE: u8 = 0;
pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;
pub const CONFIGURATION: u8 = 3;
pub const AUTHENTICATION: u8 = 4;
pub const PROVIDER: u8 = 5;
pub const RATE_LIMIT: u8 = 6;
pub const DENIED: u8 = 7;
pub const LIMIT: u8 = 8;
pub const CONTEXT: u8 = 9;
pub const SCHEMA: u8 = 10;
pub const UNAVAILABLE: u8 = 11;
pub const LOOP: u8 = 12;
pub const TESTS_FAILED: u8 = 100;
pub const TIME: u8 = 124;

/// The end of a run, in the terms of the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub code: u8,
    pub status: RunStatus,
    /// One sentence; a hint may follow as a second sentence.
    pub reason: String,
}

impl Ending {
    /// Records a failure after the turn. It sets the code only if nothing else went wrong; the answer stays one.
    pub fn fail(&mut self, reason: String) {
        if self.code == DONE {
            (self.code, self.reason) = (FAILED, reason);
        }
    }
}

/// Returns the ending for `stop`, with `unasked` calls that nobody was there to allow in `mode`. A signal beats everything; a
/// denial counts only if nothing else went wrong.
pub fn name_ending(stop: &TurnStop, unasked: u64, mode: ApprovalMode, signal: Option<Signal>) -> Ending {
    if let Some(signal) = signal {
        return end_by_signal(signal);
    }
    let (code, status, reason) = match stop {
        // The reader left, as `| head -1` does.
        TurnStop::SinkClosed => (DONE, RunStatus::Interrupted, "the reader closed the output".to_owned()),
        TurnStop::Interrupted => (Signal::Interrupt.code(), RunStatus::Interrupted, "interrupted".to_owned()),
        TurnStop::Answered if unasked > 0 => (DENIED, RunStatus::Completed, word_denial(unasked, mode)),
        TurnStop::Answered | TurnStop::Shown(_) => (DONE, RunStatus::Completed, "done".to_owned()),
        TurnStop::Limit(limit) => {
            let code = match limit {
                ReachedLimit::Time(_) => TIME,
                ReachedLimit::Loop(_) => LOOP,
                ReachedLimit::Steps { .. }
                | ReachedLimit::Spending(_)
                | ReachedLimit::Output
                | ReachedLimit::Remainder { .. }
                | ReachedLimit::Window { .. } => LIMIT,
            };
            (code, RunStatus::Limit, limit.to_string())
        }
        TurnStop::ContextFull(why) => (CONTEXT, RunStatus::Error, why.clone()),
        TurnStop::SchemaMismatch(why) => {
            (SCHEMA, RunStatus::Error, format!("the answer does not match the schema: {why}"))
        }
        // A step that was denied is not tried again.
        TurnStop::Escalated(_) if unasked > 0 => {
            let reason = format!("the task was given back: {}", word_denial(unasked, mode));
            (DENIED, RunStatus::Completed, reason)
        }
        TurnStop::Escalated(why) => (FAILED, RunStatus::Completed, format!("the task was given back: {why}")),
        TurnStop::Unasked(why) => (DENIED, RunStatus::Completed, why.clone()),
        TurnStop::Unavailable(why) => (UNAVAILABLE, RunStatus::Error, why.clone()),
        TurnStop::Model(error) => (of_model(error.kind), RunStatus::Error, error.to_string()),
        TurnStop::Failed(error) => (FAILED, RunStatus::Error, word_failure(error)),
    };
    Ending { code, status, reason }
}

fn word_denial(unasked: u64, mode: ApprovalMode) -> String {
    let (calls, them) = match unasked {
        1 => ("1 tool call was".to_owned(), "it"),
        _ => (format!("{unasked} tool calls were"), "them"),
    };
    format!("{calls} denied because nobody could be asked. {}", hint_allow(them, mode))
}

fn end_by_signal(signal: Signal) -> Ending {
    let reason = format!("stopped by {}", signal.name());
    Ending { code: signal.code(), status: RunStatus::Interrupted, reason }
}

/// Returns the ending of a run that did not begin, because a skill or a prompt is wrong, or a signal ended its rendering.
pub fn refuse_run(error: &anyhow::Error, signal: Option<Signal>) -> Ending {
    if let Some(signal) = signal {
        return end_by_signal(signal);
    }
    let code = match (error.downcast_ref::<SkillError>(), error.is::<PromptError>()) {
        (Some(error), _) => of_skill(error.kind),
        (None, true) => CONFIGURATION,
        (None, false) => FAILED,
    };
    Ending { code, status: RunStatus::Error, reason: word_failure(error) }
}

/// The code for a skill that cannot be loaded.
pub fn of_skill(kind: SkillErrorKind) -> u8 {
    match kind {
        SkillErrorKind::Unknown | SkillErrorKind::Outside => USAGE,
        SkillErrorKind::Unreadable => FAILED,
    }
}

/// The code for a failure of the model or its server.
pub fn of_model(kind: ModelErrorKind) -> u8 {
    match kind {
        ModelErrorKind::Authentication => AUTHENTICATION,
        ModelErrorKind::RateLimit | ModelErrorKind::Quota => RATE_LIMIT,
        ModelErrorKind::ContextTooLong => CONTEXT,
        ModelErrorKind::NotRecorded => FAILED,
        ModelErrorKind::Transient
        | ModelErrorKind::BadRequest
        | ModelErrorKind::Incomplete
        | ModelErrorKind::TooLarge => PROVIDER,
    }
}

/// Returns the ending of a run that was stopped by a signal or by `--max-time` while its output was not read.
pub fn end_unread(signal: Option<Signal>) -> Ending {
    let (code, why) = match signal {
        Some(signal) => (signal.code(), format!("stopped by {}", signal.name())),
        None => (TIME, "stopped: max_time ran out".to_owned()),
    };
    Ending { code, status: RunStatus::Interrupted, reason: format!("{why} before the output was read") }
}

/// The hint after a denial because nobody was there: the modes that allow more than this one, and rules.
pub fn hint_allow(what: &str, mode: ApprovalMode) -> String {
    let wider = match mode {
        ApprovalMode::All => "",
        ApprovalMode::Edits => "--approve all or ",
        ApprovalMode::Ask | ApprovalMode::Auto | ApprovalMode::Never => {
            "--approve edits (where it only changes the workspace), --approve all or "
        }
    };
    format!(
        "Allow {what} with {wider}permissions.rules; calls that read keys or change what runs later, steps and \
        tools that ask for a person, still ask, in a terminal."
    )
}

/// Formats an error with its causes and, on a separate line, a hint.
pub fn word_failure(error: &anyhow::Error) -> String {
    let hint = error.chain().find_map(|error| error.downcast_ref::<SessionError>()?.hint());
    hint.map_or_else(|| format!("{error:#}"), |hint| format!("{error:#}\nhint: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::loops::Standstill;
    use crate::model::ledger::Spent;

    #[test]
    fn the_hint_names_only_modes_that_allow_more() {
        let hint = |mode| name_ending(&TurnStop::Answered, 1, mode, None).reason;
        assert!(
            hint(ApprovalMode::Ask)
                .contains("with --approve edits (where it only changes the workspace), --approve all or ")
        );
        assert!(hint(ApprovalMode::Edits).contains("with --approve all or permissions.rules"));
        assert!(hint(ApprovalMode::All).contains("Allow it with permissions.rules"));
    }

    #[test]
    fn a_signal_beats_everything_and_a_denial_nothing() {
        let steps = || TurnStop::Limit(ReachedLimit::Steps { most: 3, spent: Spent::default() });
        let table = [
            (TurnStop::Answered, 0, None, DONE),
            (TurnStop::Answered, 2, None, DENIED),
            (steps(), 2, None, LIMIT),
            (TurnStop::Limit(ReachedLimit::Loop(Standstill::SameResult(6))), 1, None, LOOP),
            (TurnStop::SchemaMismatch(String::new()), 1, None, SCHEMA),
            (TurnStop::ContextFull(String::new()), 1, None, CONTEXT),
            (TurnStop::Unavailable(String::new()), 1, None, UNAVAILABLE),
            (steps(), 2, Some(Signal::Interrupt), 130),
            (TurnStop::Answered, 0, Some(Signal::Hangup), 143),
            (TurnStop::SinkClosed, 1, None, DONE),
        ];
        for (stop, denied, signal, code) in table {
            assert_eq!(
                name_ending(&stop, denied, ApprovalMode::Ask, signal).code,
                code,
                "{stop:?} {denied} {signal:?}"
            );
        }
    }
}
