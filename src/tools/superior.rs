//! The run that a call is part of, for a tool that begins a helper's run within it.

use std::sync::Arc;

use crate::conversation::event::Event;
use crate::files::history::FileHistory;
use crate::model::ledger::RunLedger;

/// The run that calls a helper. A helper lives as long as its call.
pub trait Superior: Send + Sync {
    /// The session of the caller, if it is kept.
    fn session(&self) -> Option<&str>;

    /// The source of the outside content in the caller's conversation, if any (`content from https://…`).
    fn taint(&self) -> Option<&str>;

    /// True if the caller, and so the helper, may change nothing (mode `explore`).
    fn only_reads(&self) -> bool;

    /// The history of what the run changes in files, if it is kept.
    fn history(&self) -> Option<Arc<FileHistory>>;

    /// Reports a source of outside content that the helper's report may rest on.
    fn report_taint(&self, source: &str);

    /// The account from which the helper spends. Parallel helpers share what is above it.
    fn ledger(&self) -> RunLedger;

    /// Shows an event of the helper to the observers of the run.
    fn relay(&self, event: Event);

    /// Called when a wait for a person begins: the time counts against no limit.
    fn pause(&self);

    /// Called when a wait for a person ends.
    fn resume(&self);
}
