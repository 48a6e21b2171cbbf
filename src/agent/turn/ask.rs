//! One reply of the model, for any purpose: the request is made to fit, reserved, and retried while that can help. The reply is
//! complete, or the error says why there is none.
//!
//! A retry voids the text that this step has streamed so far: the session forgets it, and the `retry` event tells
//! the observers. Text of the last attempt is kept as an interrupted reply.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::limits::ReachedLimit;
use crate::agent::request::purpose::Purpose;
use crate::agent::request::retry;
use crate::agent::request::{MOST_LESSONS, RequestDesk, claim_for, size_as_sent};
use crate::agent::window::{Basis, Break, RequestSize};
use crate::config::RetryConfig;
use crate::conversation::event::EventKind;
use crate::conversation::message::{FinishReason, Item, Step};
use crate::model::ledger::{Claim, ClosingNeed};
use crate::model::{ModelError, ModelErrorKind, ToolChoice};

use super::{Turn, TurnStop};

impl Turn<'_> {
    /// Asks until there is a complete reply or an error that a retry cannot fix.
    pub(in crate::agent) async fn ask(&mut self, purpose: Purpose) -> Result<Step, TurnStop> {
        if !purpose.is_summary() {
            self.withheld = None;
        }
        let mut size = self.make_fit(&purpose).await?;
        if !purpose.is_summary() && self.withhold_surplus_pictures() {
            size = self.measure();
        }
        let mut with_tools = purpose.has_tools();
        let (mut sent, mut attempt, mut lessons, mut is_announced, mut refusal) = (0, 1, 0, false, None);
        loop {
            sent += 1;
            self.open_request(&purpose, with_tools, &size, sent).await?;
            if !std::mem::replace(&mut is_announced, true) {
                self.announce(&purpose, &size)?;
            }
            let mut error = match self.attempt(&purpose, with_tools).await {
                Err(TurnStop::Model(error)) => error,
                outcome => {
                    if outcome.is_ok() && !purpose.is_summary() {
                        self.keep_withheld()?;
                    }
                    return outcome;
                }
            };
            self.settle_attempt(&error);
            if error.is_lesson && lessons < MOST_LESSONS {
                lessons += 1;
                continue;
            }
            if !purpose.is_summary() && self.make_reply_fit(&error, &size) {
                self.void_streamed(attempt, &error)?;
                continue;
            }
            if !purpose.is_summary() && self.withhold(&purpose, &mut error) {
                self.void_streamed(attempt, &error)?;
                size = self.measure();
                continue;
            }
            if error.kind == ModelErrorKind::ContextTooLong && !purpose.is_summary() {
                self.void_streamed(attempt, &error)?;
                self.keep_withheld()?;
                if !self.shrink(&error.message).await? {
                    // Asked once more by our own count: what the refusals taught may have been wrong.
                    if refusal.is_some() || !self.forget_server() {
                        return Err(error.into());
                    }
                    refusal = Some(error);
                }
                size = self.make_fit(&purpose).await?;
                is_announced = false;
                continue;
            }
            // A server that does not support `tool_choice: none` is asked without tools instead.
            let is_unsure = purpose.choice() == ToolChoice::None && error.kind == ModelErrorKind::BadRequest;
            if is_unsure && with_tools {
                self.conversation.session.clear_partial();
                with_tools = false;
                continue;
            }
            attempt += 1;
            let retry = &self.agent.model.info().retry;
            let attempts = purpose.limit_attempts(retry.attempts);
            let config = RetryConfig { attempts, ..retry.clone() };
            let left = self.agent.limits.max_time.map(|most| most.saturating_sub(self.clock.elapsed()));
            let Some(delay) = retry::find_delay(&config, &mut error, attempt, left) else {
                // What was refused first is what a person can do something about.
                return Err(refusal.unwrap_or(error).into());
            };
            self.void(attempts, attempt, delay, &error)?;
            tokio::time::sleep(delay).await;
        }
    }

    /// Voids what this step has streamed, if anything, before its request is sent in another form.
    fn void_streamed(&mut self, attempt: u32, error: &ModelError) -> Result<(), TurnStop> {
        if self.conversation.session.partial() == ("", "") {
            return Ok(());
        }
        self.void(self.agent.model.info().retry.attempts, attempt, Duration::ZERO, error)
    }

    /// Emits a `retry` event, and voids the text and reasoning that this step has streamed.
    fn void(&mut self, attempts: u32, attempt: u32, delay: Duration, error: &ModelError) -> Result<(), TurnStop> {
        self.run.emitter.emit(EventKind::Retry {
            attempt,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            attempts,
            cause: self.agent.redactor.redact(&error.to_string()).into_owned(),
        })?;
        self.conversation.session.clear_partial();
        Ok(())
    }

    /// Makes the request fit into the window. Returns its size.
    async fn make_fit(&mut self, purpose: &Purpose) -> Result<RequestSize, TurnStop> {
        if let Purpose::Summary(asked) = purpose {
            let (tokens, basis) = (asked.tokens, Basis::Estimate);
            return Ok(RequestSize { tokens, prefix_tokens: 0, basis, broken: None });
        }
        self.show_loaded_skills()?;
        self.fit().await
    }

    /// Tells the observers that a request of the conversation begins.
    fn announce(&mut self, purpose: &Purpose, size: &RequestSize) -> Result<(), TurnStop> {
        if purpose.is_summary() {
            return Ok(());
        }
        if size.broken == Some(Break::Tools) {
            let message = "the tool definitions changed: the provider's cache of this conversation starts over";
            self.run.emitter.emit(EventKind::Warning { message: message.to_owned() })?;
        }
        let in_item = |item: &Item| 1 + item.as_step().map_or(0, |step| step.calls().count());
        Ok(self.run.emitter.emit(EventKind::RequestStarted {
            step: self.run.ledger.own_steps() + 1,
            // The system prompt is one, too.
            messages: 1 + self.conversation.session.items().iter().map(in_item).sum::<usize>(),
            input_tokens: size.tokens,
            prefix_tokens: size.prefix_tokens,
        })?)
    }

    /// Reserves what the request can take, and what the closing answer after it needs.
    ///
    /// # Errors
    /// It does not fit into what is left, and is not sent.
    async fn open_request(
        &mut self,
        purpose: &Purpose,
        with_tools: bool,
        size: &RequestSize,
        attempt: u32,
    ) -> Result<(), TurnStop> {
        let room = if purpose.is_summary() { None } else { self.find_reply_room(size.tokens) };
        let claim = self.claim(purpose, with_tools, size);
        let largest_output = claim.largest_output.min(room.unwrap_or(u64::MAX));
        let claim = Claim { largest_output, ..claim };
        let desk = RequestDesk {
            ledger: self.run.ledger.clone(),
            emitter: Arc::clone(&self.run.emitter),
            step: self.run.ledger.own_steps() + 1,
            role: purpose.role().to_owned(),
        };
        let opened = desk.open(self.agent.model.info(), &claim, attempt).await;
        let refused = |refusal| TurnStop::Limit(ReachedLimit::Spending(refusal));
        let mut opened = opened.map_err(refused)?;
        opened.reply_room = room;
        self.conversation.asking = Some(opened);
        Ok(())
    }

    fn claim(&self, purpose: &Purpose, with_tools: bool, size: &RequestSize) -> Claim<'_> {
        let model = self.agent.model.as_ref();
        let is_sized = self.run.ledger.limits_sizes();
        let as_sent = || size_as_sent(model, self.request(purpose, with_tools));
        let input_tokens = match size.basis {
            // A provider's own count is better than ours, but for a model that counts itself.
            Basis::Reported if !model.info().scripted => size.tokens,
            _ if is_sized => as_sent().max(if model.info().scripted { 0 } else { size.tokens }),
            _ => size.tokens,
        };
        let closing = match purpose {
            Purpose::Answer if self.agent.tools.definitions().is_empty() => ClosingNeed::Nothing,
            Purpose::Answer => ClosingNeed::AfterReply,
            Purpose::Closing => ClosingNeed::Nothing,
            Purpose::Summary(_) => self.find_closing_need(),
        };
        let cached_tokens = self.conversation.cached_tokens(&model.info().id, size.prefix_tokens);
        Claim { cached_tokens, closing, ..claim_for(model.info(), input_tokens) }
    }

    /// What the closing answer needs after a request that is no part of the conversation.
    pub(in crate::agent) fn find_closing_need(&self) -> ClosingNeed {
        let input_tokens = if self.run.ledger.limits_sizes() { self.estimate() } else { 0 };
        ClosingNeed::After { input_tokens }
    }

    /// A size of the conversation that measures nothing anew.
    fn estimate(&self) -> u64 {
        let ruler = &self.conversation.ruler;
        let texts = self.conversation.session.items().iter().flat_map(Item::texts);
        ruler.measure_fixed() + texts.map(|text| ruler.weigh(text)).sum::<u64>()
    }

    /// The limit that forbids another step, if any. The steps of a flow are bounded by its file.
    pub(in crate::agent) fn reached_limit(&self) -> Option<ReachedLimit> {
        let ledger = &self.run.ledger;
        let steps = (!self.is_flow).then(|| ledger.own_steps());
        self.agent.limits.find_reached(ledger, &self.clock, steps)
    }
}

impl Step {
    /// True if the output limit cut the reply, including its last call.
    pub(in crate::agent) fn was_cut(&self) -> bool {
        self.finish_reason == FinishReason::Length
    }
}
