//! The interface of a run to its helpers: the account that they spend from, where their events go, and the taint that
//! they bring back.
//!
//! A helper spends from the account of its call, which is below that of the turn: every limit above holds at once. The
//! turn notes the sum in its session when the call is answered or settled.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;

use crate::agent::Emitter;
use crate::agent::clock::PausableClock;
use crate::agent::live_calls::{CallSlot, LiveCalls};
use crate::agent::turn::Turn;
use crate::conversation::event::Event;
use crate::conversation::message::Usage;
use crate::files::history::FileHistory;
use crate::model::ledger::RunLedger;
use crate::tools::Superior;

/// The part of a run that its helpers have to do with.
pub(in crate::agent) struct CallerTerms {
    /// The account of the turn.
    pub ledger: RunLedger,
    /// The id of the caller's session.
    pub session: String,
    is_kept: bool,
    history: Option<Arc<FileHistory>>,
    above: Option<Arc<dyn Superior>>,
}

/// The state of a conversation that its calls are judged by, and the helpers that they begin.
#[derive(Debug, Clone, Default)]
pub(in crate::agent) struct TrustState {
    /// The outside source whose content is in the conversation, if any.
    pub taint: Option<String>,
    /// True if nothing may change: the turn explores, and no proposal was approved.
    pub only_reads: bool,
    /// True if what calls change cannot be undone, and the approval mode rests on that.
    pub loses_changes: bool,
}

/// The place of one helper in the run that called it.
pub(in crate::agent) struct HelperLink {
    pub terms: Arc<CallerTerms>,
    pub emitter: Arc<Emitter>,
    pub live: Arc<LiveCalls>,
    pub slot: CallSlot,
    pub clock: PausableClock,
    pub standing: TrustState,
    /// The source of outside content that the helper read.
    pub brought: Mutex<Option<String>>,
}

impl Superior for HelperLink {
    fn session(&self) -> Option<&str> {
        self.terms.is_kept.then_some(self.terms.session.as_str())
    }

    fn taint(&self) -> Option<&str> {
        self.standing.taint.as_deref()
    }

    fn only_reads(&self) -> bool {
        self.standing.only_reads
    }

    fn history(&self) -> Option<Arc<FileHistory>> {
        self.terms.history.clone()
    }

    fn report_taint(&self, source: &str) {
        *self.brought.lock().expect("storing never panics") = Some(source.to_owned());
    }

    fn ledger(&self) -> RunLedger {
        self.live.account(self.slot, &self.terms.ledger)
    }

    fn relay(&self, event: Event) {
        self.emitter.relay(event);
    }

    fn pause(&self) {
        self.clock.stop();
        if let Some(above) = &self.terms.above {
            above.pause();
        }
    }

    fn resume(&self) {
        self.clock.go_on();
        if let Some(above) = &self.terms.above {
            above.resume();
        }
    }
}

impl Turn<'_> {
    /// The terms of the helpers that the next calls may begin.
    pub(in crate::agent) fn helper_terms(&self) -> CallerTerms {
        let session = &self.conversation.session;
        CallerTerms {
            ledger: self.run.ledger.clone(),
            session: session.id().to_owned(),
            is_kept: session.path().is_some(),
            history: self.find_history(),
            above: self.run.superior.clone(),
        }
    }

    /// The history of what this turn changes in files: a helper's changes are in that of its caller.
    pub(super) fn find_history(&self) -> Option<Arc<FileHistory>> {
        let own = self.conversation.file_history().cloned();
        own.or_else(|| self.run.superior.as_ref()?.history())
    }

    /// Notes in the session what a call spent on requests of its own: those of a helper, or of a tool.
    pub(in crate::agent) fn note_spending(&mut self, slot: CallSlot) {
        let Some(account) = self.conversation.live.take_account(slot) else { return };
        let spent = account.spent();
        if spent.usage != Usage::default() {
            self.conversation.session.spend(spent.usage, spent.cost.usd(), Timestamp::now());
        }
    }
}
