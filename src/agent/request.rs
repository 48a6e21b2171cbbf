//! A request to a model: every one, whoever sends it, is reserved, sent, entered in the ledger and reported here.
//!
//! A request that nobody finishes (its future was dropped) counts as cancelled, with the input that was sent.

use std::sync::Arc;
use std::time::Instant;

use crate::base::tokens;
use crate::config::Prices;
use crate::conversation::event::{EventKind, RequestFinished, RequestStatus};
use crate::conversation::message::{FinishReason, Usage};
use crate::model::ledger::{Claim, LEAST_OUTPUT, Reservation, RunLedger, SpendingRefusal, cost_usd};
use crate::model::{ChatModel, ModelError, ModelInfo, ModelRequest, ReplyEnd, ReplyStream};

use super::Emitter;

/// The most changes of one request because its server refused a part of it.
pub(super) const MOST_LESSONS: u32 = 3;

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
    desk: RequestDesk,
    /// Taken when it ends.
    reservation: Option<Reservation>,
    attempt: u32,
    model: String,
    provider: String,
    prices: Option<Prices>,
    is_configured: bool,
    /// The size that was reserved for its input, in tokens.
    pub input_tokens: u64,
    started: Instant,
}

impl RequestDesk {
    /// Reserves the `attempt`th request for one reply.
    pub(super) async fn open(
        self,
        model: &ModelInfo,
        claim: &Claim<'_>,
        attempt: u32,
    ) -> Result<OpenRequest, SpendingRefusal> {
        let reservation = self.ledger.reserve(claim).await?;
        Ok(OpenRequest {
            desk: self,
            reservation: Some(reservation),
            attempt,
            model: model.id.clone(),
            provider: model.provider.clone(),
            prices: model.prices.clone(),
            is_configured: model.configured,
            input_tokens: claim.input_tokens,
            started: Instant::now(),
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
        model.ask(ModelRequest { output_cap: self.output_cap(), ..request }).await
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
            self.desk.ledger.withdraw(reservation);
            return (Usage::default(), None);
        }
        usage.cost_about = stated_usd.is_none() && self.prices.as_ref().is_some_and(|prices| prices.about);
        let cost = stated_usd.or_else(|| self.prices.as_ref().map(|prices| cost_usd(&usage, prices)));
        self.desk.ledger.settle(reservation, usage, cost);
        self.desk.emitter.notify(EventKind::RequestFinished(RequestFinished {
            step: self.desk.step,
            attempt: self.attempt,
            model: std::mem::take(&mut self.model),
            provider: std::mem::take(&mut self.provider),
            role: std::mem::take(&mut self.desk.role),
            helper: None,
            status,
            finish_reason,
            usage,
            cost_usd: cost,
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        }));
        (usage, cost)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let usage = Usage { input_tokens: self.input_tokens, estimated: true, ..Usage::default() };
        self.enter(RequestStatus::Cancelled, usage, None, None);
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
