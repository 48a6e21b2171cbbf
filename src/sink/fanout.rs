//! Several sinks as one: with `--output jsonl`, stdout takes the events while stderr shows progress.

use std::io;

use crate::contract::EventSink;
use crate::event::Event;

/// Hands each event to all of them, in order.
pub struct Fanout {
    pub sinks: Vec<Box<dyn EventSink>>,
}

impl EventSink for Fanout {
    /// All of them get the event, whichever fails.
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
}
