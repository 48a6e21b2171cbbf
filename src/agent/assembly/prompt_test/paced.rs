//! A model shared by many runs: if one of them meets the rate limit, all of them wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use crate::model::{
    ChatModel, Learnt, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ReplyStream, ServerWindow,
};

/// The wait after a first refusal without a stated wait. It doubles with each further one.
const FIRST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_mins(1);

/// The time before which no run may ask. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate(Arc<Mutex<PaceState>>);

#[derive(Debug, Default)]
struct PaceState {
    opens: Option<Instant>,
    /// Refusals since the last reply.
    refusals: u32,
}

/// A model behind a gate.
pub(super) struct Paced {
    pub model: Arc<dyn ChatModel>,
    pub gate: Gate,
}

impl Gate {
    async fn note_passed(&self) {
        loop {
            let opens = self.change(|state| state.opens);
            match opens.filter(|opens| *opens > Instant::now()) {
                Some(opens) => tokio::time::sleep_until(opens).await,
                None => return,
            }
        }
    }

    fn note(&self, outcome: Result<(), &ModelError>) {
        let now = Instant::now();
        self.change(|state| match outcome {
            Ok(()) => state.refusals = 0,
            Err(error) if error.kind == ModelErrorKind::RateLimit => {
                let wait = error.retry_after.unwrap_or_else(|| choose_wait(state.refusals));
                state.refusals = state.refusals.saturating_add(1);
                state.opens = state.opens.max(Some(now + wait));
            }
            Err(_) => {}
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut PaceState) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
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
            self.gate.note_passed().await;
            let reply = self.model.ask(request).await;
            self.gate.note(reply.as_ref().map(drop));
            reply
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
    fn waits_double_up_to_a_minute() {
        let waits: Vec<u64> = [0, 1, 2, 5, 40].map(|refusals| choose_wait(refusals).as_secs()).into();
        assert_eq!(waits, [2, 4, 8, 60, 60]);
    }
}
