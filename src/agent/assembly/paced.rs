//! A model shared by many runs: if one of them meets the rate limit, all of them wait, and ask no faster from then on than
//! the server took before. Where the server says what it still takes, no more is sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::model::{
    Allowance, AllowanceLeft, ChatModel, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ReplyStream,
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
    /// Requests that went out, and whose answer has not begun.
    flying: u64,
    requests: ServerBudget,
    tokens: ServerBudget,
    /// Requests that wait.
    waiting: usize,
}

/// What a server said that it still takes of one kind, until it takes all again; `None` if it said nothing.
#[derive(Debug, Default)]
struct ServerBudget(Option<(u64, Instant)>);

impl ServerBudget {
    /// Notes what the server said, less what is on its way to it.
    fn set(&mut self, said: Option<AllowanceLeft>, flying: u64, now: Instant) {
        // The limit of a day is not waited for.
        let said = said.filter(|said| said.renewed_in < GIVES_UP);
        if let Some(said) = said {
            self.0 = Some((said.left.saturating_sub(flying), now + said.renewed_in));
        }
    }

    /// The time until so much is taken; `None` if it is.
    fn wait_for(&mut self, need: u64, now: Instant) -> Option<Duration> {
        self.0 = self.0.filter(|(_, renewed)| *renewed > now);
        self.0.filter(|(left, _)| *left < need).map(|(_, renewed)| renewed - now)
    }

    fn spend(&mut self, amount: u64) {
        if let Some((left, _)) = &mut self.0 {
            *left = left.saturating_sub(amount);
        }
    }
}

impl PaceState {
    /// The time until the next request, of so many tokens, may go out; `None` lets it through, and counts it.
    fn admit(&mut self, tokens: u64, now: Instant) -> Option<Duration> {
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
        // One request always goes out: what it needs alone is the server's to judge.
        let waits = [self.requests.wait_for(1, now), self.tokens.wait_for(tokens, now)];
        if let Some(wait) =
            waits.into_iter().flatten().max().filter(|_| self.flying > 0 || !self.passed.is_empty())
        {
            return Some(wait);
        }
        self.requests.spend(1);
        self.tokens.spend(tokens);
        self.flying += 1;
        self.passed.push_back(now);
        None
    }

    /// Notes what a server said with an answer.
    fn hear(&mut self, allowance: Option<Allowance>, now: Instant) {
        let Some(allowance) = allowance else { return };
        self.requests.set(allowance.requests, self.flying, now);
        self.tokens.set(allowance.tokens, 0, now);
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

/// A request whose answer has not begun, until this is dropped.
struct FlyingRequest<'a>(&'a Gate);

impl Drop for FlyingRequest<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.flying -= 1);
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

    async fn pass(&self, tokens: u64) {
        let mut waiting = None;
        while let Some(wait) = self.change(|state| state.admit(tokens, Instant::now())) {
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
                self.gate.pass(self.model.measured(request).unwrap_or_default()).await;
                let flying = FlyingRequest(&self.gate);
                let reply = self.model.ask(request).await;
                drop(flying);
                if let Ok(reply) = &reply {
                    self.gate.change(|state| state.hear(reply.allowance(), Instant::now()));
                }
                if !self.gate.note(reply.as_ref().map(drop)) {
                    return reply;
                }
            }
        })
    }

    fn preview(&self, request: ModelRequest<'_>) -> Value {
        self.model.preview(request)
    }

    fn inner(&self) -> Option<&dyn ChatModel> {
        Some(&*self.model)
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
            assert_eq!(state.admit(0, start + Duration::from_millis(100 * second)), None);
        }
        state.refuse(Some(Duration::from_secs(1)), start + Duration::from_secs(6));
        assert_eq!(state.most.map(|(most, _)| most), Some(60));
        // The sixtieth before it leaves the window after a minute.
        let wait = state.admit(0, start + Duration::from_secs(10));
        assert_eq!(wait, Some(Duration::from_secs(50)));
        let mut now = start + Duration::from_mins(1);
        let mut passed = 0;
        while now < start + Duration::from_mins(3) {
            match state.admit(0, now) {
                None => passed += 1,
                Some(wait) => now += wait,
            }
        }
        assert!((118..=122).contains(&passed), "{passed} in two minutes");
        // Later it tries again whether more is taken.
        assert_eq!(state.admit(0, start + Duration::from_mins(7)), None);
        assert_eq!(state.most, None);
    }

    #[test]
    fn no_more_is_sent_than_the_server_says_it_takes() {
        let (mut state, start) = (PaceState::default(), Instant::now());
        let said = |requests: u64, tokens: u64| {
            let left = |left| Some(AllowanceLeft { left, renewed_in: Duration::from_secs(30) });
            Some(Allowance { requests: left(requests), tokens: left(tokens) })
        };
        assert_eq!(state.admit(100, start), None);
        assert_eq!(state.admit(100, start), None);
        // The first answer counts what the server had by then: one more is on its way.
        state.flying = 1;
        state.hear(said(3, 1000), start);
        assert_eq!([(); 3].map(|()| state.admit(10, start)), [None, None, Some(Duration::from_secs(30))]);
        assert_eq!(state.admit(10, start + Duration::from_secs(30)), None);
        state.flying = 0;
        state.hear(said(50, 100), start + Duration::from_secs(31));
        assert_eq!(state.admit(90, start + Duration::from_secs(31)), None);
        assert_eq!(state.admit(90, start + Duration::from_secs(41)), Some(Duration::from_secs(20)));
        // What the server says of a day holds nothing back.
        let day = AllowanceLeft { left: 0, renewed_in: Duration::from_hours(20) };
        let mut other = PaceState::default();
        assert_eq!(other.admit(1, start), None);
        other.hear(Some(Allowance { requests: Some(day), tokens: None }), start);
        assert_eq!(other.admit(1, start), None);
    }

    #[test]
    fn waits_double_up_to_a_minute() {
        let waits: Vec<u64> = [0, 1, 2, 5, 40].map(|refusals| choose_wait(refusals).as_secs()).into();
        assert_eq!(waits, [2, 4, 8, 60, 60]);
    }
}
