//! One request of the model, made again while that can help: the deltas as they come, the reply once it is whole.
//!
//! A retry voids what this step has streamed so far: the session forgets it, and the `retry` event tells whoever
//! watches. Closing the last request (`tool_choice: none`) keeps the tools, so that a provider's cache stays warm.

use std::time::Duration;

use jiff::Timestamp;

use crate::config::{SkillDisclosure, format_duration};
use crate::context::{Break, Size};
use crate::contract::{Delta, ModelErrorKind, ReplyEnd, Request, ToolChoice, ToolDefinition};
use crate::event::EventKind;
use crate::message::{AssistantMessage, FinishReason, Message, Usage};

use super::schema::AnswerSchema;
use super::turn::{Stop, Turn};
use super::{limits, retry};

impl Turn<'_> {
    /// Asks until there is a whole reply or an error that trying again does not mend.
    pub(super) async fn ask(&mut self, choice: ToolChoice) -> Result<AssistantMessage, Stop> {
        self.brief_again()?;
        self.session.sync().map_err(anyhow::Error::from)?;
        self.announce().await?;
        let mut with_tools = true;
        let mut attempt = 1;
        loop {
            let mut error = match self.attempt(choice, with_tools).await {
                Ok(end) => return Ok(self.whole(end)),
                Err(Stop::Model(error)) => error,
                Err(stop) => return Err(stop),
            };
            self.session.clear_partial();
            if error.kind == ModelErrorKind::ContextTooLong {
                if !self.shrink(&error.message).await? {
                    return Err(error.into());
                }
                self.announce().await?;
                continue;
            }
            // A server that does not know `tool_choice: none` is asked without tools instead.
            let unsure_of_choice = choice == ToolChoice::None && error.kind == ModelErrorKind::BadRequest;
            if unsure_of_choice && with_tools {
                with_tools = false;
                continue;
            }
            attempt += 1;
            let config = &self.agent.model.info().retry;
            let Some(delay) = retry::delay(config, &error, attempt, fastrand::f64()) else {
                return Err(error.into());
            };
            let left = self.agent.limits.max_time.map(|most| most.saturating_sub(self.clock.elapsed()));
            if left.is_some_and(|left| delay >= left) {
                // Waiting could only end in a time limit that hides the provider's words.
                let delay = format_duration(Duration::from_secs(delay.as_secs()));
                error.message =
                    format!("{} (to be tried again in {delay}, which max_time forbids)", error.message);
                return Err(error.into());
            }
            self.run.emitter.emit(EventKind::Retry {
                attempt,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                attempts: config.attempts,
                cause: self.agent.redactor.redact(&error.to_string()).into_owned(),
            })?;
            tokio::time::sleep(delay).await;
        }
    }

    /// Under `skill_disclosure: system` the system prompt shows what has been loaded since it was made.
    fn brief_again(&mut self) -> Result<(), Stop> {
        let briefing = &self.agent.briefing;
        if briefing.disclosure != SkillDisclosure::System || !briefing.loaded.take_changed() {
            return Ok(());
        }
        let content = self.agent.system_prompt(self.session, &self.run.emitter.run_id())?;
        if self.session.messages().first().is_none_or(|first| first.content() != content) {
            let message = Message::System { content };
            self.session.record(message, Timestamp::now()).map_err(anyhow::Error::from)?;
        }
        Ok(())
    }

    /// Makes the request fit, and tells whoever watches that it is about to be made.
    async fn announce(&mut self) -> Result<(), Stop> {
        let size = self.fit().await?;
        self.tell_of_lost_prefix(&size)?;
        self.run.emitter.emit(EventKind::RequestStarted {
            step: self.run.totals.steps + 1,
            messages: self.session.messages().len(),
            input_tokens: size.tokens,
            prefix_tokens: size.prefix_tokens,
        })?;
        Ok(())
    }

    /// Edits of the view are told by themselves; what else breaks the prefix costs money that nobody sees.
    fn tell_of_lost_prefix(&self, size: &Size) -> Result<(), Stop> {
        let part = match size.broken {
            Some(Break::Tools) => "the definitions of the tools",
            Some(Break::SystemPrompt) => "the system prompt",
            Some(Break::Message(_)) | None => return Ok(()),
        };
        let message = format!("{part} changed: the provider's cache of this conversation begins anew");
        Ok(self.run.emitter.emit(EventKind::Warning { message })?)
    }

    async fn attempt(&mut self, choice: ToolChoice, with_tools: bool) -> Result<ReplyEnd, Stop> {
        let definitions: &[ToolDefinition] = if with_tools { self.agent.tools.definitions() } else { &[] };
        let request = Request {
            messages: self.session.messages(),
            tools: definitions,
            tool_choice: choice,
            schema: self.agent.schema.as_ref().filter(|_| choice == ToolChoice::None).map(AnswerSchema::json),
            session_id: self.session.id(),
            results: &self.run.results,
        };
        let mut stream = self.agent.model.ask(request).await.map_err(Stop::Model)?;
        loop {
            match stream.next().await.map_err(Stop::Model)? {
                Delta::Text(text) => {
                    self.session.stream_text(&text, Timestamp::now());
                    self.run.emitter.emit(EventKind::TextDelta { text })?;
                }
                Delta::Reasoning(text) => {
                    self.session.stream_reasoning(&text, Timestamp::now());
                    self.run.emitter.emit(EventKind::ReasoningDelta { text })?;
                }
                Delta::CallBegun(_) => {}
                Delta::Finished(end) if self.is_empty(&end) && choice == ToolChoice::Auto => {
                    return Err(Stop::Model(self.model_error(ModelErrorKind::Incomplete, "the reply was empty")));
                }
                Delta::Finished(end) => return Ok(end),
            }
        }
    }

    /// A reply that says nothing and does nothing is no answer; a server that sends one often does better when it is
    /// asked again.
    fn is_empty(&self, end: &ReplyEnd) -> bool {
        let (text, _) = self.session.partial();
        end.finish == FinishReason::Stop && end.tool_calls.is_empty() && text.trim().is_empty()
    }

    /// Counts what was asked of the model, whoever asked; what it cost, if prices are known.
    pub(super) fn spend(&mut self, usage: Usage) -> Option<f64> {
        let prices = self.agent.model.info().prices;
        let cost = prices.map(|prices| limits::cost_usd(&usage, &prices));
        self.meter.add(usage, cost);
        let totals = &mut self.run.totals;
        totals.usage += usage;
        if let Some(cost) = cost {
            totals.cost_usd = Some(totals.cost_usd.unwrap_or(0.0) + cost);
        }
        cost
    }

    /// Counts the reply and puts it together from what was streamed.
    fn whole(&mut self, end: ReplyEnd) -> AssistantMessage {
        self.meter.steps += 1;
        self.run.totals.steps += 1;
        let cost = self.spend(end.usage);
        if !end.usage.estimated {
            self.run.ruler.report(end.usage.input_tokens);
        }
        let (content, reasoning) = self.session.partial();
        let (content, reasoning) = (content.to_owned(), reasoning.to_owned());
        AssistantMessage {
            content,
            reasoning,
            tool_calls: end.tool_calls,
            finish_reason: end.finish,
            usage: end.usage,
            cost_usd: cost,
        }
    }
}

impl AssistantMessage {
    /// Whether the output limit cut the reply, its last call with it.
    pub(super) fn was_cut(&self) -> bool {
        self.finish_reason == FinishReason::Length
    }
}
