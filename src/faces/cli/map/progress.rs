//! How far many tasks are, what they are called, and what stops them.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::agent::Cancel;
use crate::agent::exit::Signal;
use crate::base::text;
use crate::conversation::message::{Cost, Usage};

use super::super::note_progress;
use super::super::signals::{self, Signals};
use super::input::MapItem;

/// What a signal does: the first SIGINT lets the running tasks end, anything else stops them.
#[derive(Default)]
pub struct StopSwitch {
    is_draining: AtomicBool,
    changed: Notify,
}

impl StopSwitch {
    /// Hears the signals from now on.
    pub fn listen(self: &Arc<Self>, signals: &Signals, cancel: &Cancel) {
        let (switch, cancel) = (Arc::clone(self), cancel.clone());
        signals.pass(move |signal| {
            let was_draining = switch.is_draining.swap(true, Ordering::SeqCst);
            if cancel.is_triggered() {
                signals::die_at_once(signal);
            }
            if was_draining || signal != Signal::Interrupt {
                cancel.trigger_by(signal);
            } else {
                note_progress("No new task begins; those that run end. Ctrl-C again stops them.");
            }
            switch.changed.notify_one();
        });
    }

    /// True if no task begins any more.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }

    /// Returns at the next signal.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Fewer tasks say nothing about the others.
const FEW: u64 = 3;

/// A span of time as a person says it: seconds below two minutes, then minutes, then hours.
fn round_time(span: Duration) -> String {
    match span.as_secs() {
        seconds @ ..120 => format!("{} s", seconds.max(1)),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// How far it is.
#[derive(Default)]
pub struct MapProgress {
    /// The items that were read.
    pub read: usize,
    pub done: usize,
    pub failed: usize,
    /// Those that what all may spend stopped: they are not finished.
    pub unfunded: usize,
    /// Finished before this run.
    pub kept: usize,
    /// Those of them that failed.
    pub kept_failed: usize,
    pub usage: Usage,
    pub cost: Cost,
    /// True once all items were read.
    pub is_read: bool,
    /// True once it was said that requests wait.
    pub has_waited: bool,
    /// The time that the rest will take.
    pub left: Option<Duration>,
    /// When it was last told.
    pub told: Option<Instant>,
}

impl MapProgress {
    /// In words, with the number of tasks that run, and of those that wait for the server's limit.
    pub fn describe(&self, running: usize, waiting: usize) -> String {
        let done = self.done + self.kept - self.kept_failed;
        let mut parts = vec![format!("{done} done"), format!("{} failed", self.failed + self.kept_failed)];
        if self.unfunded > 0 {
            parts.push(format!("{} stopped", self.unfunded));
        }
        if running > 0 {
            parts.push(format!("{running} running"));
        }
        if waiting > 0 {
            parts.push(format!("{waiting} waiting for the server's limit"));
        }
        parts.push(format!("{} tokens", self.usage.total()));
        parts.extend(self.cost.usd().map(|usd| format!("${usd:.4}")));
        parts.extend(self.left.filter(|_| running > 0).map(|left| format!("about {} left", round_time(left))));
        parts.join(", ")
    }

    /// Estimates the time left from what ended in the time since this run began. `count` is that of all items, as far as it
    /// is known.
    pub fn estimate(&mut self, spent: Duration, count: Option<u64>) {
        let ended = (self.done + self.failed + self.unfunded) as u64;
        let count = if self.is_read { Some(self.read as u64) } else { count };
        self.left = count.filter(|_| ended >= FEW).map(|count| {
            let rest = count.saturating_sub(ended + self.kept as u64);
            spent / u32::try_from(ended).unwrap_or(u32::MAX) * u32::try_from(rest).unwrap_or(u32::MAX)
        });
    }
}

/// The ids of the items so far, as keyed hashes: their memory is a few bytes a line, however long the input is.
#[derive(Default)]
pub struct KnownIds {
    keys: RandomState,
    /// How often each came, given ones apart.
    seen: HashMap<u64, u32>,
}

impl KnownIds {
    /// Makes the id of an item its own: equal lines are numbered, an id that was given twice is a mistake.
    pub fn name(&mut self, mut item: MapItem) -> MapItem {
        let times = self.seen.entry(self.keys.hash_one((item.is_given, &item.id))).or_default();
        *times += 1;
        match (*times, item.is_given) {
            (1, _) => {}
            (_, true) => {
                item.value = Err(format!("the id `{}` is that of an earlier line", text::one_line(&item.id, 60)));
            }
            (times, false) => item.id = format!("{}-{times}", item.id),
        }
        item
    }
}
