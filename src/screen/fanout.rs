//! Combines several sinks: with `--output jsonl`, one writes events to stdout and one shows progress on stderr.

use std::io;

use crate::conversation::event::Event;
use crate::conversation::{EventSink, HookRun};

/// Passes each event to every sink, in order.
pub struct Fanout {
    pub sinks: Vec<Box<dyn EventSink>>,
}

impl EventSink for Fanout {
    /// Passes the event to every sink, even if one fails.
    ///
    /// # Errors
    /// The first error.
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        let mut outcome = Ok(());
        for sink in &mut self.sinks {
            outcome = outcome.and(sink.emit(event));
        }
        outcome
    }

    fn note_hook(&mut self, run: &HookRun) {
        self.sinks.iter_mut().for_each(|sink| sink.note_hook(run));
    }
}
