//! The one way to the sink: puts events into their envelope, in order, and remembers when nobody can see any more.

use std::io;
use std::sync::Mutex;

use jiff::Timestamp;

use super::cancel::Cancel;
use crate::contract::EventSink;
use crate::event::{EVENT_VERSION, Event, EventKind};

/// Emits the events of one run after another.
pub struct Emitter {
    inner: Mutex<Inner>,
    closed: Cancel,
}

struct Inner {
    sink: Box<dyn EventSink>,
    session_id: String,
    run_id: String,
    seq: u64,
    failure: Option<io::Error>,
}

/// The sink refused an event: stdout was closed, or its disk is full.
#[derive(Debug, thiserror::Error)]
#[error("the output cannot be written any more")]
pub struct SinkClosed;

impl Emitter {
    /// Events of one run of one session, handed to `sink` in order. They count from 0.
    #[must_use]
    pub fn new(session_id: String, run_id: String, sink: Box<dyn EventSink>) -> Self {
        let inner = Inner { sink, session_id, run_id, seq: 0, failure: None };
        Self { inner: Mutex::new(inner), closed: Cancel::default() }
    }

    /// Begins another run into the same sink; its events count from 0.
    pub fn begin(&self, session_id: String, run_id: String) {
        let mut inner = self.inner.lock().expect("no sink panics");
        inner.session_id = session_id;
        inner.run_id = run_id;
        inner.seq = 0;
    }

    /// What every event of this run carries as `run_id`.
    #[must_use]
    pub fn run_id(&self) -> String {
        self.inner.lock().expect("no sink panics").run_id.clone()
    }

    /// # Errors
    /// When the sink fails, now or before: whoever emits stops.
    pub fn emit(&self, kind: EventKind) -> Result<(), SinkClosed> {
        let mut inner = self.inner.lock().expect("no sink panics");
        if inner.failure.is_some() {
            return Err(SinkClosed);
        }
        let event = Event {
            v: EVENT_VERSION,
            kind,
            seq: inner.seq,
            time: format!("{:.3}", Timestamp::now()),
            session_id: inner.session_id.clone(),
            run_id: inner.run_id.clone(),
        };
        inner.seq += 1;
        inner.sink.emit(&event).map_err(|error| {
            inner.failure = Some(error);
            self.closed.trigger();
            SinkClosed
        })
    }

    /// For those who cannot stop by themselves (a tool in the middle of a call): a failure is seen by the next
    /// [`Emitter::emit`] and by [`Emitter::closed_switch`].
    pub fn notify(&self, kind: EventKind) {
        let _ = self.emit(kind);
    }

    /// Something is wrong, and the run goes on: one event for each message.
    pub fn warn(&self, messages: impl IntoIterator<Item = String>) {
        for message in messages {
            self.notify(EventKind::Warning { message });
        }
    }

    /// Thrown once the sink has failed.
    #[must_use]
    pub fn closed_switch(&self) -> Cancel {
        self.closed.clone()
    }

    /// Why the sink failed, if it did.
    pub fn failure(&self) -> Option<io::Error> {
        self.inner.lock().expect("no sink panics").failure.take()
    }
}
