//! The calls of a turn that have begun, with the facts to report if the turn is interrupted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::base::{present, text};
use crate::model::ledger::RunLedger;

/// A call's slot: the number of its step, and the position among its calls.
pub(super) type CallSlot = (u64, usize);

/// The calls that have begun.
#[derive(Debug, Default)]
pub(super) struct LiveCalls(Mutex<BTreeMap<CallSlot, LiveCall>>);

/// A call that has begun.
#[derive(Debug)]
pub(super) struct LiveCall {
    /// The time when its tool was started; `None` while the call is checked or a person is asked.
    running: Option<Instant>,
    /// The end of its live output.
    output: String,
    /// The account of the requests to models that it makes, if it makes any.
    account: Option<RunLedger>,
}

/// The most output kept for a call that may be interrupted, in bytes.
const KEPT: usize = 4096;

impl LiveCalls {
    /// Records that the observers know of the call.
    pub(super) fn announce(&self, slot: CallSlot) {
        self.all().insert(slot, LiveCall::new(None));
    }

    /// Records that its tool runs.
    pub(super) fn run(&self, slot: CallSlot) {
        self.all().insert(slot, LiveCall::new(Some(Instant::now())));
    }

    /// Adds to its output.
    pub(super) fn output(&self, slot: CallSlot, chunk: &str) {
        if let Some(call) = self.all().get_mut(&slot) {
            call.output.push_str(chunk);
            if call.output.len() > 2 * KEPT {
                let last = text::take_tail(&call.output, KEPT).len();
                call.output.drain(..call.output.len() - last);
            }
        }
    }

    /// The account of the requests that a call makes, opened below that of its turn.
    pub(super) fn account(&self, slot: CallSlot, turn: &RunLedger) -> RunLedger {
        match self.all().get_mut(&slot) {
            Some(call) => call.account.get_or_insert_with(|| turn.open_below()).clone(),
            None => turn.open_below(),
        }
    }

    /// Takes the account of a call, to note what it spent.
    pub(super) fn take_account(&self, slot: CallSlot) -> Option<RunLedger> {
        self.all().get_mut(&slot)?.account.take()
    }

    /// Records that it was answered.
    pub(super) fn land(&self, slot: CallSlot) {
        self.all().remove(&slot);
    }

    /// Removes a call that the settling code answers.
    pub(super) fn take(&self, slot: CallSlot) -> Option<LiveCall> {
        self.all().remove(&slot)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<CallSlot, LiveCall>> {
        self.0.lock().expect("no holder panics")
    }
}

impl LiveCall {
    fn new(running: Option<Instant>) -> Self {
        Self { running, output: String::new(), account: None }
    }

    /// The time that its tool ran, if it did.
    pub(super) fn ran_for(&self) -> Option<Duration> {
        self.running.map(|running| running.elapsed())
    }

    /// The text, for the model, about a call that was interrupted.
    pub(super) fn explain_interruption(call: Option<&Self>, why: &str) -> String {
        let Some(ran_for) = call.and_then(Self::ran_for) else {
            return format!("Not run: {why}. The call was never started and had no effect.");
        };
        let output = call.map_or("", |call| text::take_tail(&call.output, KEPT));
        let seconds = ran_for.as_secs_f64();
        let ran = format!("Cancelled: {why}. The call ran for {seconds:.1} s and may have had effects.");
        if output.trim().is_empty() {
            return ran + " No output was seen.";
        }
        format!("{ran} The last output before that:\n{}", present::break_text_marks(output.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_never_started_had_no_effect_and_one_that_ran_tells_its_output() {
        let live = LiveCalls::default();
        live.announce((1, 0));
        let told = LiveCall::explain_interruption(live.take((1, 0)).as_ref(), "interrupted");
        assert_eq!(told, "Not run: interrupted. The call was never started and had no effect.");
        live.run((1, 1));
        live.output((1, 1), &"x".repeat(9000));
        live.output((1, 1), "\nthe end\n");
        let told = LiveCall::explain_interruption(live.take((1, 1)).as_ref(), "interrupted");
        assert!(told.starts_with("Cancelled: interrupted. The call ran for 0."), "{told}");
        assert!(told.ends_with("the end") && told.len() < KEPT + 200, "{}", told.len());
    }
}
