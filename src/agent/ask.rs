//! One request to the model, for any purpose: made to fit, retried while that can help, counted. The reply is
//! complete, or the error says why there is none.
//!
//! A retry voids the text that this step has streamed so far: the session forgets it, and the `retry` event tells
//! the observers. Text of the last attempt is kept as an interrupted reply.

use std::time::Duration;

use jiff::Zoned;

use crate::agent::window::{Break, Size};
use crate::config::format_duration;
use crate::conversation::event::EventKind;
use crate::conversation::message::{FinishReason, Item, Step, Usage};
use crate::model::{ChatModel, ModelError, ModelErrorKind, ToolChoice};

use super::purpose::Purpose;
use super::retry::Next;
use super::turn::{Stop, Turn};
use super::{limits, retry};

impl Turn<'_> {
    /// Asks until there is a complete reply or an error that a retry cannot fix.
    pub(super) async fn ask(&mut self, purpose: Purpose) -> Result<Step, Stop> {
        let mut size = self.announce(&purpose).await?;
        let mut with_tools = purpose.has_tools();
        let mut attempt = 1;
        loop {
            self.conversation.asking = Some(size);
            let outcome = self.attempt(&purpose, with_tools).await;
            let mut error = match outcome {
                Ok(end) => return Ok(end),
                Err(Stop::Model(error)) => error,
                Err(stop) => return Err(stop),
            };
            self.settle_attempt();
            if error.kind == ModelErrorKind::ContextTooLong && !purpose.is_aside() {
                self.void(attempt, Duration::ZERO, &error)?;
                if !self.shrink(&error.message).await? {
                    return Err(error.into());
                }
                size = self.announce(&purpose).await?;
                continue;
            }
            // A server that does not support `tool_choice: none` is asked without tools instead.
            let unsure_of_choice =
                purpose.choice() == ToolChoice::None && error.kind == ModelErrorKind::BadRequest;
            if unsure_of_choice && with_tools {
                self.conversation.session.clear_partial();
                with_tools = false;
                continue;
            }
            attempt += 1;
            let model = purpose.model().unwrap_or(&self.agent.model);
            let Some(delay) = self.delay(model.as_ref(), &mut error, attempt) else { return Err(error.into()) };
            self.run.emitter.emit(EventKind::Retry {
                attempt,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                attempts: model.info().retry.attempts,
                cause: self.agent.redactor.redact(&error.to_string()).into_owned(),
            })?;
            self.conversation.session.clear_partial();
            tokio::time::sleep(delay).await;
        }
    }

    /// The delay before the next attempt; `None` if there is no further attempt.
    fn delay(&self, model: &dyn ChatModel, error: &mut ModelError, attempt: u32) -> Option<Duration> {
        let config = &model.info().retry;
        let delay = match retry::after(config, error, attempt, fastrand::f64()) {
            Next::Again(delay) => delay,
            Next::Never => return None,
            Next::Later(wait) => {
                let when = retry::when(&Zoned::now(), wait);
                let most = format_duration(config.max_delay);
                error.message = match error.kind {
                    ModelErrorKind::Quota => format!("{} (come back {when})", error.message),
                    _ => format!("{} (come back {when}: retry.max_delay waits up to {most})", error.message),
                };
                return None;
            }
        };
        let left = self.agent.limits.max_time.map(|most| most.saturating_sub(self.clock.elapsed()));
        if left.is_some_and(|left| delay >= left) {
            // Waiting could only end in a time limit that hides the provider's words.
            let delay = format_duration(Duration::from_secs(delay.as_secs()));
            error.message = format!("{} (a retry would wait {delay}, longer than max_time allows)", error.message);
            return None;
        }
        Some(delay)
    }

    /// Voids the text and reasoning that this step has streamed, if any, and emits a `retry` event.
    fn void(&mut self, attempt: u32, delay: Duration, error: &ModelError) -> Result<(), Stop> {
        let (text, reasoning) = self.conversation.session.partial();
        if text.is_empty() && reasoning.is_empty() {
            return Ok(());
        }
        self.conversation.session.clear_partial();
        Ok(self.run.emitter.emit(EventKind::Retry {
            attempt,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            attempts: self.agent.model.info().retry.attempts,
            cause: self.agent.redactor.redact(&error.to_string()).into_owned(),
        })?)
    }

    /// Makes the request fit, and tells the observers that it begins. Returns its size in tokens.
    async fn announce(&mut self, purpose: &Purpose) -> Result<u64, Stop> {
        if let Purpose::Aside(aside) = purpose {
            return Ok(aside.tokens);
        }
        self.show_loaded_skills()?;
        let size = self.fit().await?;
        self.refuse_over_limit(purpose, &size)?;
        if size.broken == Some(Break::Tools) {
            let message =
                "the tool definitions changed: the provider's cache of this conversation starts over".to_owned();
            self.run.emitter.emit(EventKind::Warning { message })?;
        }
        self.run.emitter.emit(EventKind::RequestStarted {
            step: self.run.totals.steps + 1,
            messages: messages_in(self.conversation.session.items()),
            input_tokens: size.tokens,
            prefix_tokens: size.prefix_tokens,
        })?;
        Ok(size.tokens)
    }

    /// Refuses a request that would surely exceed a limit. The closing answer is exempt.
    fn refuse_over_limit(&self, purpose: &Purpose, size: &Size) -> Result<(), Stop> {
        if !matches!(purpose, Purpose::Answer) {
            return Ok(());
        }
        let input =
            Usage { input_tokens: size.at_least(), cached_input_tokens: size.at_least(), ..Usage::default() };
        let prices = self.agent.model.info().prices.as_ref();
        let mut meter = self.meter;
        meter.add(input, prices.map(|prices| limits::cost_usd(&input, prices)));
        match meter.exceeded(&self.limits()) {
            Some(limit) => Err(Stop::Limit(limit)),
            None => Ok(()),
        }
    }

    /// Counts the tokens of a request to the agent's model; returns the cost if it is known.
    pub(super) fn spend(&mut self, usage: &mut Usage, stated_usd: Option<f64>) -> Option<f64> {
        self.spend_at(self.agent.model.as_ref(), usage, stated_usd)
    }

    /// Counts the tokens of a request to any model; returns the cost if it is known.
    ///
    /// A cost stated by the provider overrides the prices. Sets `cost_about` in `usage` if the prices are not certain.
    pub(super) fn spend_at(
        &mut self,
        model: &dyn ChatModel,
        usage: &mut Usage,
        stated_usd: Option<f64>,
    ) -> Option<f64> {
        let prices = model.info().prices.as_ref();
        usage.cost_about = stated_usd.is_none() && prices.is_some_and(|prices| prices.about);
        let cost = stated_usd.or_else(|| prices.map(|prices| limits::cost_usd(usage, prices)));
        self.meter.add(*usage, cost);
        let totals = &mut self.run.totals;
        totals.usage += *usage;
        totals.cost.add(usage, cost);
        if let Some(superior) = &self.run.superior {
            superior.spend(*usage, cost);
        }
        cost
    }
}

impl Step {
    /// True if the output limit cut the reply, including its last call.
    pub(super) fn was_cut(&self) -> bool {
        self.finish_reason == FinishReason::Length
    }
}

/// The number of messages in a request over these items, including the system prompt.
fn messages_in(items: &[Item]) -> usize {
    let in_item = |item: &Item| 1 + item.as_step().map_or(0, |step| step.calls().count());
    1 + items.iter().map(in_item).sum::<usize>()
}
