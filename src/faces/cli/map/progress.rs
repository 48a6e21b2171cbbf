//! How far many tasks are, what they are called, and what stops them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

use crate::agent::assembly::MapRunner;
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
    pub fn listen(self: &Arc<Self>, signals: &Signals, runner: &MapRunner) {
        let (switch, cancel) = (Arc::clone(self), runner.cancel.clone());
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

/// How far it is.
#[derive(Default)]
pub struct MapProgress {
    /// The items that were read.
    pub read: usize,
    pub done: usize,
    pub failed: usize,
    /// Finished before this run.
    pub kept: usize,
    pub usage: Usage,
    pub cost: Cost,
    /// True once all items were read.
    pub is_read: bool,
    /// True once it was said that requests wait.
    pub has_waited: bool,
    /// When it was last told.
    pub told: Option<Instant>,
}

impl MapProgress {
    /// In words, with the number of tasks that run, and of those that wait for the server's limit.
    pub fn describe(&self, running: usize, waiting: usize) -> String {
        let mut parts = vec![format!("{} done", self.done + self.kept), format!("{} failed", self.failed)];
        if running > 0 {
            parts.push(format!("{running} running"));
        }
        if waiting > 0 {
            parts.push(format!("{waiting} waiting for the server's limit"));
        }
        parts.push(format!("{} tokens", self.usage.total()));
        parts.extend(self.cost.usd().map(|usd| format!("${usd:.4}")));
        parts.join(", ")
    }
}

/// The ids of the items so far.
#[derive(Default)]
pub struct KnownIds {
    given: HashSet<String>,
    lines: HashMap<String, usize>,
}

impl KnownIds {
    /// Makes the id of an item its own: equal lines are numbered, an id that was given twice is a mistake.
    pub fn name(&mut self, mut item: MapItem) -> MapItem {
        if item.is_given {
            if !self.given.insert(item.id.clone()) {
                item.value = Err(format!("the id `{}` is that of an earlier line", text::one_line(&item.id, 60)));
            }
            return item;
        }
        let times = self.lines.entry(item.id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            item.id = format!("{}-{times}", item.id);
        }
        item
    }
}
