//! The calls of a turn that have begun, with the facts to report if the turn is interrupted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::base::{present, text};
use crate::model::ledger::RunLedger;

/// A call's slot: the number of its step, and the position among its calls.
pub(super) type Slot = (u64, usize);

/// The calls that have begun.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<BTreeMap<Slot, Flight>>);

/// A call that has begun.
#[derive(Debug)]
pub(super) struct Flight {
    /// The time when its tool was started; `None` while the call is checked or a person is asked.
    running: Option<Instant>,
    /// The end of its live output.
    output: String,
    /// The account of the requests to models that it makes, if it makes any.
    account: Option<RunLedger>,
}

/// The most output kept for a call that may be interrupted, in bytes.
const KEPT: usize = 4096;

impl Flights {
    /// Records that the observers know of the call.
    pub(super) fn announce(&self, slot: Slot) {
        self.all().insert(slot, Flight::new(None));
    }

    /// Records that its tool runs.
    pub(super) fn run(&self, slot: Slot) {
        self.all().insert(slot, Flight::new(Some(Instant::now())));
    }

    /// Adds to its output.
    pub(super) fn output(&self, slot: Slot, chunk: &str) {
        if let Some(flight) = self.all().get_mut(&slot) {
            flight.output.push_str(chunk);
            if flight.output.len() > 2 * KEPT {
                let last = text::tail(&flight.output, KEPT).len();
                flight.output.drain(..flight.output.len() - last);
            }
        }
    }

    /// The account of the requests that a call makes, opened below that of its turn.
    pub(super) fn account(&self, slot: Slot, turn: &RunLedger) -> RunLedger {
        match self.all().get_mut(&slot) {
            Some(flight) => flight.account.get_or_insert_with(|| turn.open_below()).clone(),
            None => turn.open_below(),
        }
    }

    /// Takes the account of a call, to note what it spent.
    pub(super) fn take_account(&self, slot: Slot) -> Option<RunLedger> {
        self.all().get_mut(&slot)?.account.take()
    }

    /// Records that it was answered.
    pub(super) fn land(&self, slot: Slot) {
        self.all().remove(&slot);
    }

    /// Removes a call that the settling code answers.
    pub(super) fn take(&self, slot: Slot) -> Option<Flight> {
        self.all().remove(&slot)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Slot, Flight>> {
        self.0.lock().expect("no holder panics")
    }
}

impl Flight {
    fn new(running: Option<Instant>) -> Self {
        Self { running, output: String::new(), account: None }
    }

    /// The time that its tool ran, if it did.
    pub(super) fn ran_for(&self) -> Option<Duration> {
        self.running.map(|running| running.elapsed())
    }

    /// The text, for the model, about a call that was interrupted.
    pub(super) fn known(flight: Option<&Self>, why: &str) -> String {
        let Some(ran_for) = flight.and_then(Self::ran_for) else {
            return format!("Not run: {why}. The call was never started and had no effect.");
        };
        let output = flight.map_or("", |flight| text::tail(&flight.output, KEPT));
        let seconds = ran_for.as_secs_f64();
        let ran = format!("Cancelled: {why}. The call ran for {seconds:.1} s and may have had effects.");
        if output.trim().is_empty() {
            return ran + " No output was seen.";
        }
        format!("{ran} The last output before that:\n{}", present::neutralise(output.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_never_started_had_no_effect_and_one_that_ran_tells_its_output() {
        let flights = Flights::default();
        flights.announce((1, 0));
        let told = Flight::known(flights.take((1, 0)).as_ref(), "interrupted");
        assert_eq!(told, "Not run: interrupted. The call was never started and had no effect.");
        flights.run((1, 1));
        flights.output((1, 1), &"x".repeat(9000));
        flights.output((1, 1), "\nthe end\n");
        let told = Flight::known(flights.take((1, 1)).as_ref(), "interrupted");
        assert!(told.starts_with("Cancelled: interrupted. The call ran for 0."), "{told}");
        assert!(told.ends_with("the end") && told.len() < KEPT + 200, "{}", told.len());
    }
}
