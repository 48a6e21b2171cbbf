//! Reads a reply from a server: bytes are polled from the body, decoded and passed on as deltas.
//!
//! Bytes are read while they are ready. Text is passed on when none are ready or when enough has accumulated, so text
//! that arrives together is seen together. The timer is armed only while there is nothing to read. A reply that has
//! ended is read to the end of its body, within limits, so that the connection can serve the next request.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, Sleep, sleep_until};

use super::assembly::Broken;
use super::decode::ReplyReading;
use super::endpoint::Endpoint;
use super::errors::{self, Hints, StatedError};
use super::event_stream::EventFinder;
use super::sse::TooLong;
use super::wire_log::Exchange;
use crate::base::tokens;
use crate::config::{Timeouts, format_duration};
use crate::model::{Allowance, Delta, ModelError, ModelErrorKind, ReplyEnd, ReplyStream, TakenTokens};
use crate::safety::net;

/// Text of this size is passed on even if more is ready.
const LARGEST_DELTA: usize = 64 * 1024;
/// The largest body that is kept to determine what it is.
const LARGEST_WHOLE: usize = 32 * 1024 * 1024;
/// The most bytes of a stream, including everything around the text.
const MOST_RECEIVED: usize = 1024 * 1024 * 1024;
/// The wait while the server only keeps the connection alive, as a multiple of the wait in silence.
const KEPT_ALIVE: u32 = 8;
/// The wait for usage and `[DONE]` after `finish_reason`.
const GRACE: Duration = Duration::from_secs(2);
/// The wait for the end of the body after `[DONE]`.
const DRAIN: Duration = Duration::from_millis(250);
const DRAIN_BYTES: usize = 64 * 1024;

pub(super) type BodyStream = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// A reply from a server.
pub(super) struct HttpReply {
    /// `None` once the body has ended.
    body: Option<BodyStream>,
    finder: EventFinder,
    reading: ReplyReading,
    failure: Option<ModelError>,
    /// The bytes before the first event, which are the whole body if no event comes.
    unread: Vec<u8>,
    saw_event: bool,
    received: usize,
    drained: usize,
    endpoint: Arc<Endpoint>,
    /// The request, from which its tokens are estimated if the server does not report them.
    request: Bytes,
    exchange: Exchange,
    /// What the server still takes, by its headers.
    pub allowance: Option<Allowance>,
    patience: ReplyPatience,
    /// True if the task was woken again to see whether more is ready.
    looked_again: bool,
    let_go: bool,
}

impl HttpReply {
    /// Reads the reply to a request that was sent at `asked`.
    pub fn new(
        body: BodyStream,
        reading: ReplyReading,
        endpoint: Arc<Endpoint>,
        request: Bytes,
        exchange: Exchange,
        asked: Instant,
    ) -> Self {
        let patience =
            ReplyPatience { first_byte: asked + *endpoint.timeouts.first_byte, ..ReplyPatience::default() };
        Self {
            body: Some(body),
            finder: reading.find_events(),
            reading,
            failure: None,
            unread: Vec::new(),
            saw_event: false,
            received: 0,
            drained: 0,
            endpoint,
            request,
            exchange,
            allowance: None,
            patience,
            looked_again: false,
            let_go: false,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Delta, ModelError>> {
        loop {
            let ready = self.reading.reply.ready_bytes();
            let Some(body) = &mut self.body else {
                if let Some(delta) = self.reading.reply.take() {
                    return Poll::Ready(Ok(delta));
                }
                // The connection goes back to the pool once its own task has run: before the next request is made.
                if !std::mem::replace(&mut self.let_go, true) {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                return Poll::Ready(self.conclude());
            };
            if ready.is_some_and(|bytes| bytes >= LARGEST_DELTA)
                && let Some(delta) = self.reading.reply.take()
            {
                return Poll::Ready(Ok(delta));
            }
            match body.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(bytes))) => {
                    self.looked_again = false;
                    self.patience.rest();
                    self.read(&bytes);
                }
                Poll::Ready(Some(Err(error))) => self.broke_off(&error),
                Poll::Ready(None) => self.handle_end(),
                // The connection is served by another task: it may have more as soon as it has run.
                Poll::Pending if ready.is_some() && !self.looked_again => {
                    self.looked_again = true;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => {
                    self.looked_again = false;
                    if let Some(delta) = self.reading.reply.take() {
                        return Poll::Ready(Ok(delta));
                    }
                    if self.wait(context).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        self.received += bytes.len();
        self.exchange.read(bytes);
        if self.reading.reply.is_done() {
            self.drained += bytes.len();
            if self.drained > DRAIN_BYTES {
                self.body = None;
                return;
            }
        }
        if !self.saw_event {
            self.unread.extend_from_slice(bytes);
        }
        let (reading, saw_event) = (&mut self.reading, &mut self.saw_event);
        let before = reading.reply.measure_progress();
        let mut broken = None;
        let fed = self.finder.feed(bytes, |event| {
            *saw_event = true;
            broken = reading.event(event.name, event.data).err();
            broken.is_none()
        });
        if self.reading.reply.measure_progress() != before {
            self.patience.progressed = Instant::now();
        }
        let too_long = fed == Err(TooLong) || self.unread.len() > LARGEST_WHOLE;
        if self.reading.reply.is_done() {
            // A complete reply stays complete whatever follows.
        } else if let Some(broken) = broken {
            self.fail_with(broken);
        } else if too_long {
            self.fail(ModelErrorKind::TooLarge, "the server sends a line without end");
        } else if self.received > MOST_RECEIVED {
            self.fail(ModelErrorKind::TooLarge, "the server sends without end, and says little");
        }
        if self.saw_event {
            self.unread = Vec::new();
        }
    }

    /// Handles the end of the body, which may come before the end of the reply.
    fn handle_end(&mut self) {
        let (reading, saw_event) = (&mut self.reading, &mut self.saw_event);
        let mut broken = None;
        self.finder.finish(|event| {
            *saw_event = true;
            broken = reading.event(event.name, event.data).err();
            broken.is_none()
        });
        self.body = None;
        match broken {
            Some(broken) => self.fail_with(broken),
            None if !self.saw_event => self.judge_whole(),
            None => {}
        }
    }

    /// Reads a body without events: a whole reply, an error, or neither.
    fn judge_whole(&mut self) {
        let body = std::mem::take(&mut self.unread);
        match self.reading.whole(&body) {
            Ok(true) => {}
            Err(broken) => self.fail_with(broken),
            Ok(false) => {
                let text = String::from_utf8_lossy(&body);
                let text = self.endpoint.redactor.redact_known(&text);
                let said = crate::base::text::one_line(&StatedError::read(&text).message, 200);
                if errors::looks_like_html(&text) {
                    let hint = "Check base_url and its version path.";
                    self.fail(ModelErrorKind::BadRequest, format!("the server answered with {said}. {hint}"));
                } else if said.is_empty() {
                    self.fail(ModelErrorKind::Incomplete, "the server's answer is empty");
                } else {
                    self.fail(ModelErrorKind::Incomplete, format!("the server's answer is not a reply: {said}"));
                }
            }
        }
    }

    fn broke_off(&mut self, error: &reqwest::Error) {
        self.body = None;
        // If the connection breaks after the reply has ended, nothing is lost.
        if !self.reading.reply.is_finished() {
            let after = self.received;
            let why = net::list_causes(error);
            self.exchange.record_failure(&why);
            self.fail(ModelErrorKind::Incomplete, format!("the connection broke after {after} bytes: {why}"));
        }
    }

    fn wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Timeouts { first_byte, idle, .. } = &self.endpoint.timeouts;
        let (first_byte, idle) = (**first_byte, **idle);
        let longest = match (self.received, self.reading.reply.is_done(), self.reading.reply.is_finished()) {
            (0, ..) => None,
            (_, true, _) => Some(DRAIN),
            (_, _, true) => Some(GRACE.min(idle)),
            _ => Some(idle),
        };
        if self.patience.poll(longest, context).is_pending() {
            return Poll::Pending;
        }
        self.body = None;
        if self.received == 0 {
            self.failure = Some(self.endpoint.no_first_byte(first_byte));
        } else if !self.reading.reply.is_finished() {
            let kept_alive = idle * KEPT_ALIVE;
            let words = if self.patience.progressed + kept_alive <= Instant::now() {
                let (kept, idle) = (format_duration(kept_alive), format_duration(idle));
                format!(
                    "the server only kept the connection alive and wrote nothing for {kept} ({KEPT_ALIVE} times timeouts.idle, {idle})"
                )
            } else {
                format!("the server sent nothing for {} (timeouts.idle)", format_duration(idle))
            };
            self.fail(ModelErrorKind::Incomplete, words);
        }
        Poll::Ready(())
    }

    fn conclude(&mut self) -> Result<Delta, ModelError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if !self.reading.reply.is_finished() {
            let words = "the stream ended before the reply did";
            return Err(self.endpoint.error(ModelErrorKind::Incomplete, words));
        }
        let request = std::mem::take(&mut self.request);
        let end = self.reading.reply.end(|| tokens::estimate_bytes(&request));
        Ok(Delta::Finished(ReplyEnd { streamed: self.saw_event, ..end }))
    }

    fn fail_with(&mut self, broken: Broken) {
        match broken {
            Broken::Unreadable(words) => self.fail(ModelErrorKind::Incomplete, words),
            Broken::TooLarge(words) => self.fail(ModelErrorKind::TooLarge, words),
            Broken::Error(said) => {
                self.body = None;
                self.failure = Some(self.endpoint.judge(None, said, Hints::default()));
            }
        }
    }

    fn fail(&mut self, kind: ModelErrorKind, words: impl Into<String>) {
        self.body = None;
        self.failure = Some(self.endpoint.error(kind, words));
    }
}

impl ReplyStream for HttpReply {
    fn next(&mut self) -> BoxFuture<'_, Result<Delta, ModelError>> {
        Box::pin(poll_fn(|context| self.poll(context)))
    }

    fn allowance(&self) -> Option<Allowance> {
        self.allowance
    }

    fn count_taken(&self) -> Option<TakenTokens> {
        self.reading.reply.count_taken()
    }
}

/// The one timer for all waits of a reply. It is moved when it fires too early, not at each read.
struct ReplyPatience {
    first_byte: Instant,
    /// The time at which the reply last grew, or of the request. Pings and empty events are no progress.
    progressed: Instant,
    waiting_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Default for ReplyPatience {
    fn default() -> Self {
        Self { first_byte: Instant::now(), progressed: Instant::now(), waiting_since: None, timer: None }
    }
}

impl ReplyPatience {
    /// Restarts the wait, as something came.
    fn rest(&mut self) {
        self.waiting_since = None;
    }

    /// Ready after the longest silence; without one, when the first byte is due.
    fn poll(&mut self, longest: Option<Duration>, context: &mut Context<'_>) -> Poll<()> {
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        let deadline = longest
            .map_or(self.first_byte, |longest| (since + longest).min(self.progressed + longest * KEPT_ALIVE));
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
