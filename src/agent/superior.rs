//! The interface of a run to its helpers: what they may spend, where their events go, and the taint that they bring
//! back.
//!
//! The spending of a helper counts at once against all shared limits. The turn that called it adds it to its sums when
//! the call is answered or settled.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;

use crate::config::Limits;
use crate::conversation::event::Event;
use crate::conversation::message::Usage;
use crate::tools::{Left, Superior};

use super::Emitter;
use super::clock::Clock;
use super::limits::{Limit, Meter};
use super::live_calls::{CallSlot, LiveCalls};
use super::turn::Turn;

/// The amount that the helpers of one step may spend.
pub(super) struct Purse {
    /// The amount left when the step began.
    left: Left,
    /// The spending of helpers since then.
    spent: Mutex<Meter>,
    session: Option<String>,
    above: Option<Arc<dyn Superior>>,
}

/// The state of a conversation that its calls are judged by, and the helpers that they begin.
#[derive(Debug, Clone, Default)]
pub(super) struct TrustState {
    /// The outside source whose content is in the conversation, if any.
    pub taint: Option<String>,
    /// True if nothing may change: the turn explores, and no proposal was approved.
    pub only_reads: bool,
}

/// The place of one helper in the run that called it.
pub(super) struct Desk {
    pub purse: Arc<Purse>,
    pub emitter: Arc<Emitter>,
    pub live: Arc<LiveCalls>,
    pub slot: CallSlot,
    pub clock: Clock,
    pub standing: TrustState,
    /// The source of outside content that the helper read.
    pub brought: Mutex<Option<String>>,
}

impl Desk {
    /// The source of outside content that the report may rest on, if any.
    pub(super) fn brought(&self) -> Option<String> {
        self.brought.lock().expect("storing never panics").clone()
    }
}

impl Superior for Desk {
    fn session(&self) -> Option<&str> {
        self.purse.session.as_deref()
    }

    fn taint(&self) -> Option<&str> {
        self.standing.taint.as_deref()
    }

    fn only_reads(&self) -> bool {
        self.standing.only_reads
    }

    fn tainted(&self, source: &str) {
        *self.brought.lock().expect("storing never panics") = Some(source.to_owned());
    }

    fn left(&self) -> Left {
        let spent = *self.purse.spent.lock().expect("adding never panics");
        let left = self.purse.left.less(spent.usage.total(), spent.cost_usd);
        self.purse.above.as_ref().map_or(left, |above| left.at_most(above.left()))
    }

    fn spend(&self, usage: Usage, cost_usd: Option<f64>) {
        self.live.spend(self.slot, usage, cost_usd);
        self.purse.spent.lock().expect("adding never panics").add(usage, cost_usd);
        if let Some(above) = &self.purse.above {
            above.spend(usage, cost_usd);
        }
    }

    fn relay(&self, event: Event) {
        self.emitter.relay(event);
    }

    fn pause(&self) {
        self.clock.stop();
        if let Some(above) = &self.purse.above {
            above.pause();
        }
    }

    fn resume(&self) {
        self.clock.go_on();
        if let Some(above) = &self.purse.above {
            above.resume();
        }
    }
}

impl Turn<'_> {
    /// The amount that the helpers of the next calls may spend.
    pub(super) fn purse(&self) -> Purse {
        let Limits { max_tokens, max_cost, .. } = self.agent.limits;
        let own = Left { tokens: max_tokens, cost: max_cost };
        let session = &self.conversation.session;
        Purse {
            left: own.less(self.meter.usage.total(), self.meter.cost_usd),
            spent: Mutex::default(),
            session: session.path().map(|_| session.id().to_owned()),
            above: self.run.superior.clone(),
        }
    }

    /// The limits of the turn. Those of a helper are also bounded by what its superior has left.
    pub(super) fn limits(&self) -> Cow<'_, Limits> {
        let Some(superior) = &self.run.superior else { return Cow::Borrowed(&self.agent.limits) };
        let Left { tokens, cost } = superior.left();
        let mut limits = self.agent.limits.clone();
        let tokens = tokens.map(|left| left.saturating_add(self.meter.usage.total()));
        let cost = cost.map(|left| left + self.meter.cost_usd);
        limits.max_tokens = [limits.max_tokens, tokens].into_iter().flatten().min();
        limits.max_cost = [limits.max_cost, cost].into_iter().flatten().reduce(f64::min);
        Cow::Owned(limits)
    }

    /// True if it is a limit of the superior's, which leaves nothing for a closing answer.
    pub(super) fn is_superiors(&self, limit: Limit) -> bool {
        self.run.superior.is_some()
            && matches!(limit, Limit::Tokens { .. } | Limit::Cost { .. })
            && self.meter.reached(&self.agent.limits).is_none()
    }

    /// Counts the spending of a helper in a call. Superiors above this run have already counted it.
    pub(super) fn charge(&mut self, slot: CallSlot) {
        let (usage, cost) = self.conversation.live.take_spent(slot);
        if usage == Usage::default() {
            return;
        }
        let cost_usd = cost.usd();
        self.meter.add(usage, cost_usd);
        self.run.totals.usage += usage;
        self.run.totals.cost.add(&usage, cost_usd);
        self.conversation.session.spend(usage, cost_usd, Timestamp::now());
    }
}
