//! A model shared by many runs: if one of them meets the rate limit, all of them wait, and ask no faster from then on than
//! the server took before.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::model::{
    ChatModel, Learnt, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ReplyStream, ServerWindow,
};

/// The wait after a first refusal without a stated wait. It doubles with each further one.
const FIRST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_mins(1);
/// The time that limits of requests count in.
const WINDOW: Duration = Duration::from_mins(1);
/// Fewer requests say nothing about a limit of a minute.
const FEW: usize = 8;
/// A limit that was not met for so long may have been raised.
const FORGETS: Duration = Duration::from_mins(5);
/// Runs that only refusals came back to for so long get the refusal as their end.
const GIVES_UP: Duration = Duration::from_mins(10);

/// Decides when the next request may go out. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate(Arc<(Mutex<PaceState>, Notify)>);

#[derive(Debug, Default)]
struct PaceState {
    opens: Option<Instant>,
    /// Refusals since the last reply.
    refusals: u32,
    /// The first of them.
    refused_since: Option<Instant>,
    /// When requests were let through, within the last window.
    passed: VecDeque<Instant>,
    /// The requests that a window takes, once that is learnt, and when it was.
    most: Option<(usize, Instant)>,
    has_answered: bool,
    /// Requests that wait.
    waiting: usize,
}

impl PaceState {
    /// The time until the next request may go out; `None` lets it through, and counts it.
    fn admit(&mut self, now: Instant) -> Option<Duration> {
        if let Some(opens) = self.opens.filter(|opens| *opens > now) {
            return Some(opens - now);
        }
        while self.passed.front().is_some_and(|first| now.duration_since(*first) >= WINDOW) {
            self.passed.pop_front();
        }
        self.most = self.most.filter(|(_, since)| now.duration_since(*since) < FORGETS);
        if let Some((most, _)) = self.most
            && self.passed.len() >= most
        {
            return self.passed.get(self.passed.len() - most).map(|first| *first + WINDOW - now);
        }
        self.passed.push_back(now);
        None
    }

    /// Notes a refusal for too many requests: what was let through before it is what the window takes.
    fn refuse(&mut self, retry_after: Option<Duration>, now: Instant) {
        if self.refusals == 0 {
            let taken = self.passed.len().saturating_sub(1);
            if taken >= FEW {
                let most = self.most.map_or(taken, |(most, _)| most.min(taken));
                self.most = Some((most, now));
            }
            self.refused_since = Some(now);
        }
        // It was not taken.
        self.passed.pop_back();
        let wait = retry_after.unwrap_or_else(|| choose_wait(self.refusals));
        self.refusals = self.refusals.saturating_add(1);
        self.opens = self.opens.max(Some(now + wait));
    }
}

/// A request that waits, until this is dropped.
struct WaitingRequest<'a>(&'a Gate);

impl<'a> WaitingRequest<'a> {
    fn begin(gate: &'a Gate) -> Self {
        gate.change(|state| state.waiting += 1);
        Self(gate)
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.waiting -= 1);
    }
}

/// A model behind a gate.
pub(super) struct Paced {
    pub model: Arc<dyn ChatModel>,
    pub gate: Gate,
}

impl Gate {
    /// Returns once a first request was answered: from then on a provider has the common beginning in its cache.
    pub async fn first_answer(&self) {
        loop {
            let answered = self.0.1.notified();
            if self.change(|state| state.has_answered) {
                return;
            }
            answered.await;
        }
    }

    /// The number of requests that wait for the server's limit.
    pub fn count_waiting(&self) -> usize {
        self.change(|state| state.waiting)
    }

    async fn pass(&self) {
        let mut waiting = None;
        while let Some(wait) = self.change(|state| state.admit(Instant::now())) {
            waiting.get_or_insert_with(|| WaitingRequest::begin(self));
            tokio::time::sleep(wait).await;
        }
    }

    /// Notes how a request was met. Returns true if it was refused and is worth another try.
    fn note(&self, outcome: Result<(), &ModelError>) -> bool {
        let now = Instant::now();
        match outcome {
            Ok(()) => {
                self.change(|state| (state.refusals, state.refused_since, state.has_answered) = (0, None, true));
                self.0.1.notify_waiters();
                false
            }
            Err(error) if error.kind == ModelErrorKind::RateLimit => self.change(|state| {
                state.refuse(error.retry_after, now);
                state.refused_since.is_some_and(|since| now.duration_since(since) < GIVES_UP)
            }),
            Err(_) => false,
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut PaceState) -> T) -> T {
        change(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn choose_wait(refusals: u32) -> Duration {
    FIRST.saturating_mul(2_u32.saturating_pow(refusals)).min(LONGEST)
}

impl ChatModel for Paced {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn ask<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>> {
        Box::pin(async move {
            loop {
                self.gate.pass().await;
                let reply = self.model.ask(request).await;
                if !self.gate.note(reply.as_ref().map(drop)) {
                    return reply;
                }
            }
        })
    }

    fn measured(&self, request: ModelRequest<'_>) -> Option<u64> {
        self.model.measured(request)
    }

    fn preview(&self, request: ModelRequest<'_>) -> Value {
        self.model.preview(request)
    }

    fn prepare(&self) {
        self.model.prepare();
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        self.model.settle()
    }

    fn find_window(&self) -> Option<ServerWindow> {
        self.model.find_window()
    }

    fn learnt(&self) -> Learnt {
        self.model.learnt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(kind: ModelErrorKind, retry_after: Option<u64>) -> ModelError {
        ModelError {
            kind,
            status: Some(429),
            message: String::new(),
            model: String::new(),
            retry_after: retry_after.map(Duration::from_secs),
            is_lesson: false,
        }
    }

    #[test]
    fn a_refusal_closes_the_gate_for_all_for_as_long_as_the_server_says() {
        let gate = Gate::default();
        let other = gate.clone();
        let wait =
            || other.change(|state| state.opens).map(|opens| opens.duration_since(Instant::now()).as_secs());
        gate.note(Err(&refusal(ModelErrorKind::Transient, Some(90))));
        assert_eq!(wait(), None);
        gate.note(Err(&refusal(ModelErrorKind::RateLimit, Some(90))));
        assert!(wait().is_some_and(|seconds| (80..=90).contains(&seconds)));
        // A shorter wait does not open it earlier.
        gate.note(Err(&refusal(ModelErrorKind::RateLimit, None)));
        assert!(wait().is_some_and(|seconds| (80..=90).contains(&seconds)));
        assert_eq!(gate.change(|state| state.refusals), 2);
        gate.note(Ok(()));
        assert_eq!(gate.change(|state| state.refusals), 0);
    }

    #[test]
    fn after_a_refusal_a_minute_takes_what_it_took_before() {
        let (mut state, start) = (PaceState::default(), Instant::now());
        for second in 0..61 {
            assert_eq!(state.admit(start + Duration::from_millis(100 * second)), None);
        }
        state.refuse(Some(Duration::from_secs(1)), start + Duration::from_secs(6));
        assert_eq!(state.most.map(|(most, _)| most), Some(60));
        // The sixtieth before it leaves the window after a minute.
        let wait = state.admit(start + Duration::from_secs(10));
        assert_eq!(wait, Some(Duration::from_secs(50)));
        let mut now = start + Duration::from_mins(1);
        let mut passed = 0;
        while now < start + Duration::from_mins(3) {
            match state.admit(now) {
                None => passed += 1,
                Some(wait) => now += wait,
            }
        }
        assert!((118..=122).contains(&passed), "{passed} in two minutes");
        // Later it tries again whether more is taken.
        assert_eq!(state.admit(start + Duration::from_mins(7)), None);
        assert_eq!(state.most, None);
    }

    #[test]
    fn waits_double_up_to_a_minute() {
        let waits: Vec<u64> = [0, 1, 2, 5, 40].map(|refusals| choose_wait(refusals).as_secs()).into();
        assert_eq!(waits, [2, 4, 8, 60, 60]);
    }
}
