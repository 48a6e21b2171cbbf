//! A request to a model: every one, whoever sends it, is reserved, sent, entered in the ledger and reported here.
//!
//! A request that nobody finishes (its future was dropped) counts as cancelled, with the input that was sent.

pub(super) mod purpose;
pub(super) mod retry;
pub(super) mod waiting;
pub(super) mod beside;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::future::BoxFuture;

use crate::agent::Emitter;
use crate::base::tokens;
use crate::config::Prices;
use crate::conversation::event::{EventKind, RequestFinished, RequestStatus};
use crate::conversation::message::{FinishReason, Usage};
use crate::model::ledger::{Claim, LEAST_OUTPUT, Reservation, RunLedger, SpendingRefusal, cost_usd};
use crate::model::{
    Allowance, ChatModel, Delta, ModelError, ModelInfo, ModelRequest, ReplyEnd, ReplyStream, TakenTokens,
};

/// The most changes of one request because its server refused a part of it.
pub(super) const MOST_LESSONS: u32 = 8;

/// Who asks: where a request is entered and reported.
#[derive(Clone)]
pub(super) struct RequestDesk {
    pub ledger: RunLedger,
    pub emitter: Arc<Emitter>,
    /// The step of the conversation.
    pub step: u64,
    pub role: String,
}

/// A request that was reserved and has not ended.
pub(super) struct OpenRequest {
    ledger: RunLedger,
    emitter: Arc<Emitter>,
    /// Taken when it ends.
    reservation: Option<Reservation>,
    prices: Option<Prices>,
    is_configured: bool,
    /// The most tokens that the reply may have beside the request in the server's window, if that is known to be less
    /// than the model could write.
    pub reply_room: Option<u64>,
    /// The size that was reserved for its input, in tokens.
    pub input_tokens: u64,
    /// What its reply took, once that was given up.
    taken: Arc<Mutex<Option<TakenTokens>>>,
    started: Instant,
    /// The report, to be completed when it ends.
    report: RequestFinished,
}

impl RequestDesk {
    /// Reserves the `attempt`th request for one reply.
    pub(super) async fn open(
        self,
        model: &ModelInfo,
        claim: &Claim<'_>,
        attempt: u32,
    ) -> Result<OpenRequest, SpendingRefusal> {
        let mut open = self.reserve(&model.id, &model.provider, claim, attempt).await?;
        open.is_configured = model.configured;
        Ok(open)
    }

    async fn reserve(
        self,
        model: &str,
        provider: &str,
        claim: &Claim<'_>,
        attempt: u32,
    ) -> Result<OpenRequest, SpendingRefusal> {
        let Self { ledger, emitter, step, role } = self;
        let report = RequestFinished {
            step,
            attempt,
            model: model.to_owned(),
            provider: provider.to_owned(),
            role,
            helper: None,
            status: RequestStatus::Cancelled,
            finish_reason: None,
            usage: Usage::default(),
            cost_usd: None,
            duration_ms: 0,
        };
        Ok(OpenRequest {
            reservation: Some(ledger.reserve(claim).await?),
            ledger,
            emitter,
            prices: claim.prices.cloned(),
            is_configured: true,
            reply_room: None,
            input_tokens: claim.input_tokens,
            taken: Arc::default(),
            started: Instant::now(),
            report,
        })
    }
}

impl OpenRequest {
    /// Sends the request and waits for the reply to begin.
    pub(super) async fn send(
        &self,
        model: &dyn ChatModel,
        request: ModelRequest<'_>,
    ) -> Result<Box<dyn ReplyStream>, ModelError> {
        let request = ModelRequest { output_cap: self.output_cap().or(self.reply_room), ..request };
        let reply = model.ask(request).await?;
        Ok(Box::new(NotedReply { reply, taken: Arc::clone(&self.taken) }))
    }

    /// What its reply took that was given up: as its server stated it, the rest estimated.
    pub(super) fn count_taken(&self) -> Option<TakenTokens> {
        let mut taken = (*self.taken.lock().unwrap_or_else(PoisonError::into_inner))?;
        if taken.usage.input_tokens == 0 {
            taken.usage = Usage { input_tokens: self.input_tokens, estimated: true, ..taken.usage };
        }
        Some(taken)
    }

    /// What it took if nobody waits for its end: its input was sent at least.
    pub(super) fn count_cancelled(&self) -> TakenTokens {
        self.count_taken().unwrap_or_else(|| TakenTokens {
            usage: Usage { input_tokens: self.input_tokens, estimated: true, ..Usage::default() },
            cost_usd: None,
        })
    }

    /// The most tokens that the reply may have, if what is left is less than the model could write.
    pub(super) fn output_cap(&self) -> Option<u64> {
        self.reservation.as_ref().and_then(Reservation::output_cap)
    }

    /// Ends it with a reply. Returns what it took, with the cost if that is known: as the provider states it, else by
    /// the prices.
    pub(super) fn finish(mut self, end: &ReplyEnd) -> (Usage, Option<f64>) {
        self.enter(RequestStatus::Ok, end.usage, end.cost_usd, Some(end.finish))
    }

    /// Ends it otherwise, after it took so much.
    pub(super) fn settle(
        mut self,
        status: RequestStatus,
        usage: Usage,
        stated_usd: Option<f64>,
    ) -> (Usage, Option<f64>) {
        self.enter(status, usage, stated_usd, None)
    }

    fn enter(
        &mut self,
        status: RequestStatus,
        mut usage: Usage,
        stated_usd: Option<f64>,
        finish_reason: Option<FinishReason>,
    ) -> (Usage, Option<f64>) {
        let Some(reservation) = self.reservation.take() else { return (usage, None) };
        if !self.is_configured {
            // Nothing was sent: there is no server to send it to.
            self.ledger.withdraw(reservation);
            return (Usage::default(), None);
        }
        usage.cost_about = stated_usd.is_none() && self.prices.as_ref().is_some_and(|prices| prices.about);
        let cost_usd = stated_usd.or_else(|| self.prices.as_ref().map(|prices| cost_usd(&usage, prices)));
        self.ledger.settle(reservation, usage, cost_usd);
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let report = self.report.clone();
        let report = RequestFinished { status, finish_reason, usage, cost_usd, duration_ms, ..report };
        self.emitter.notify(EventKind::RequestFinished(report));
        (usage, cost_usd)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let TakenTokens { usage, cost_usd } = self.count_cancelled();
        self.enter(RequestStatus::Cancelled, usage, cost_usd, None);
    }
}

/// A reply that notes what it took when it is given up, also in the midst of it.
struct NotedReply {
    reply: Box<dyn ReplyStream>,
    taken: Arc<Mutex<Option<TakenTokens>>>,
}

impl ReplyStream for NotedReply {
    fn next(&mut self) -> BoxFuture<'_, Result<Delta, ModelError>> {
        self.reply.next()
    }

    fn allowance(&self) -> Option<Allowance> {
        self.reply.allowance()
    }
}

impl Drop for NotedReply {
    fn drop(&mut self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = self.reply.count_taken();
    }
}

/// What became of a request that failed so.
pub(super) fn status_of(error: &ModelError) -> RequestStatus {
    if error.status.is_some() { RequestStatus::Refused } else { RequestStatus::Failed }
}

/// The claim of a request to a model whose input has so many tokens.
pub(super) fn claim_for(model: &ModelInfo, input_tokens: u64) -> Claim<'_> {
    let room = model.context_window.saturating_sub(input_tokens).max(1);
    let largest_output = model.largest_output.map_or(room, |most| most.min(room));
    let thought = model.thinking_budget.map_or(0, |budget| budget + LEAST_OUTPUT);
    Claim {
        input_tokens,
        largest_output,
        least_output: thought.max(LEAST_OUTPUT).min(largest_output),
        prices: model.prices.as_ref(),
        ..Claim::default()
    }
}

/// The tokens of a request as it would be sent: counted by the model, or estimated by its bytes.
pub(super) fn size_as_sent(model: &dyn ChatModel, request: ModelRequest<'_>) -> u64 {
    model.measured(request).unwrap_or_else(|| tokens::estimate_tokens(&model.preview(request).to_string()))
}
