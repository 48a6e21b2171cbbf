//! The only way to the sink: wraps events in their envelope, in order, and remembers when the sink has failed.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Mutex;
use std::task::Poll;

use jiff::Timestamp;

use super::cancel::Cancel;
use super::hooks::HookReport;
use crate::conversation::event::{EVENT_VERSION, Event, EventKind};
use crate::conversation::{EventSink, HookRun, OutputQueue};

/// Emits the events of successive runs.
pub struct Emitter {
    inner: Mutex<EmitterState>,
    /// Triggered once the sink has failed.
    failed: Cancel,
    /// The queues that the sink writes into, if any.
    queue: Option<Box<dyn OutputQueue>>,
}

struct EmitterState {
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
    /// Creates an emitter for the events of one run of one session, numbered from 0.
    pub fn new(session_id: String, run_id: String, sink: Box<dyn EventSink>) -> Self {
        let inner = EmitterState { sink, session_id, run_id, seq: 0, failure: None };
        Self { inner: Mutex::new(inner), failed: Cancel::default(), queue: None }
    }

    /// Sets the queues that the sink writes to: work waits while they are full.
    pub fn set_outlets(self, queue: Box<dyn OutputQueue>) -> Self {
        Self { queue: Some(queue), ..self }
    }

    /// Begins another run into the same sink; its events count from 0.
    pub fn begin(&self, session_id: String, run_id: String) {
        let mut inner = self.inner.lock().expect("no sink panics");
        inner.session_id = session_id;
        inner.run_id = run_id;
        inner.seq = 0;
    }

    /// The `run_id` of this run's events.
    pub fn run_id(&self) -> String {
        self.inner.lock().expect("no sink panics").run_id.clone()
    }

    /// Emits an event.
    ///
    /// # Errors
    /// The sink failed, now or earlier: the caller then stops.
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
            path: Vec::new(),
        };
        self.pass(&mut inner, &event)
    }

    /// Passes on an event of a helper, as an event of this run.
    pub fn relay(&self, event: Event) {
        let mut inner = self.inner.lock().expect("no sink panics");
        if inner.failure.is_none() {
            let event = Event { seq: inner.seq, run_id: inner.run_id.clone(), ..event };
            let _ = self.pass(&mut inner, &event);
        }
    }

    fn pass(&self, inner: &mut EmitterState, event: &Event) -> Result<(), SinkClosed> {
        inner.seq += 1;
        inner.sink.emit(event).map_err(|error| {
            inner.failure = Some(error);
            self.failed.trigger();
            SinkClosed
        })
    }

    /// Emits an event for a caller that cannot stop (a tool in the middle of a call): the next [`Emitter::emit`]
    /// and [`Emitter::wait_closed`] report the failure.
    pub fn notify(&self, kind: EventKind) {
        let _ = self.emit(kind);
    }

    /// Takes note of hooks that ran, and warns of those that failed.
    pub fn report_hooks(&self, report: HookReport) {
        self.note_hooks(&report.runs);
        self.warn(report.warnings);
    }

    /// Takes note of hooks that ran.
    pub fn note_hooks(&self, runs: &[HookRun]) {
        let mut inner = self.inner.lock().expect("no sink panics");
        for run in runs {
            inner.sink.note_hook(run);
        }
    }

    /// Emits one warning for each message.
    pub fn warn(&self, messages: impl IntoIterator<Item = String>) {
        for message in messages {
            self.notify(EventKind::Warning { message });
        }
    }

    /// Runs `work`, and pauses it while the readers of its events are behind. Other futures beside it (a signal, a
    /// clock) continue.
    pub async fn run_paced<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        loop {
            if let Some(queue) = &self.queue {
                queue.wait_for_room().await;
            }
            let has_room = || self.queue.as_ref().is_none_or(|queue| queue.has_room());
            let done = poll_fn(|cx| match work.as_mut().poll(cx) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending if has_room() => Poll::Pending,
                Poll::Pending => Poll::Ready(None),
            });
            if let Some(output) = done.await {
                return output;
            }
        }
    }

    /// Waits until nobody can read events any more.
    pub async fn wait_closed(&self) {
        let Some(queue) = &self.queue else { return self.failed.triggered().await };
        tokio::select! {
            () = self.failed.triggered() => {}
            () = queue.wait_until_closed() => {}
        }
    }

    /// The reason why the sink failed, if it did.
    pub fn failure(&self) -> Option<io::Error> {
        let failure = self.inner.lock().expect("no sink panics").failure.take();
        failure.or_else(|| self.queue.as_ref()?.failure())
    }
}
