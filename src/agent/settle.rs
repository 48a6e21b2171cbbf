//! Completes a conversation when a turn is interrupted: open calls are answered with what is known about them,
//! streamed text becomes an interrupted reply, and the running request is counted.

use jiff::Timestamp;

use crate::base::{json, tokens};
use crate::conversation::event::{CallTelemetry, EventKind, Message};
use crate::conversation::message::{Answer, CallStatus, FinishReason, Part, Step, ToolCall, Usage};
use crate::conversation::session::OpenCall;
use crate::conversation::telemetry::milliseconds;

use super::execute::started;
use super::flights::Flight;
use super::measure;
use super::turn::{Stop, Turn};

impl Turn<'_> {
    /// Answers every open call with what is known about it.
    pub(super) fn settle_calls(&mut self, why: &str) -> Result<(), Stop> {
        for OpenCall { number, call, request } in self.conversation.session.open_calls() {
            self.charge((number, call));
            let flight = self.conversation.flights.take((number, call));
            if flight.is_none() {
                let arguments = json::object_or_unparsed(&request.arguments);
                self.run.emitter.notify(started(&request, String::new(), arguments));
            }
            let answer = Answer::of_text(Flight::known(flight.as_ref(), why), CallStatus::Cancelled);
            let telemetry = telemetry(&request, flight.as_ref());
            self.run.totals.tool_calls += 1;
            self.run.emitter.notify(EventKind::ToolFinished {
                call_id: request.id.clone(),
                name: request.name.clone(),
                status: CallStatus::Cancelled,
                summary: "cancelled".to_owned(),
                telemetry: telemetry.clone(),
                truncated: false,
                spill_id: None,
            });
            let event = EventKind::Message(Message::answer(&request, &answer));
            let recorded = self.conversation.session.answer((number, call), answer, telemetry, Timestamp::now());
            self.run.emitter.notify(event);
            recorded.map_err(anyhow::Error::from)?;
        }
        Ok(())
    }

    /// The usage of an interrupted request, estimated from what was sent and received.
    fn cut_usage(&self, input_tokens: u64) -> Usage {
        let (text, reasoning) = self.conversation.session.partial();
        let reasoning_tokens = tokens::estimate(reasoning);
        let output_tokens = tokens::estimate(text) + reasoning_tokens;
        Usage { input_tokens, output_tokens, reasoning_tokens, estimated: true, ..Usage::default() }
    }

    /// Counts a failed attempt if the server had begun to answer.
    pub(super) fn settle_attempt(&mut self) {
        let Some(input) = self.conversation.asking.take() else { return };
        let mut usage = self.cut_usage(input);
        if usage.output_tokens > 0 {
            let cost = self.spend(&mut usage, None);
            self.conversation.session.spend(usage, cost, Timestamp::now());
        }
    }

    /// Keeps streamed text as an interrupted reply after an interruption, and counts the running request.
    pub(super) fn settle_reply(&mut self) -> Result<(), Stop> {
        let mut usage = self.conversation.asking.take().map(|input| self.cut_usage(input)).unwrap_or_default();
        if self.conversation.session.partial().0.trim().is_empty() {
            if usage != Usage::default() {
                let cost = self.spend(&mut usage, None);
                self.conversation.session.spend(usage, cost, Timestamp::now());
            }
            self.conversation.session.clear_partial();
            return self.conversation.session.sync().map_err(|error| Stop::Failed(error.into()));
        }
        if usage != Usage::default() {
            self.run.totals.steps += 1;
        }
        let cost_usd = if usage == Usage::default() { None } else { self.spend(&mut usage, None) };
        let (text, reasoning) = self.conversation.session.partial();
        let mut step = Step { usage, cost_usd, ..Step::of_text(text, FinishReason::Interrupted) };
        if !reasoning.is_empty() {
            step.parts.insert(0, Part::Reasoning { text: reasoning.to_owned(), opaque: None });
        }
        self.keep_reply(step)?;
        self.conversation.session.sync().map_err(|error| Stop::Failed(error.into()))
    }
}

fn telemetry(request: &ToolCall, flight: Option<&Flight>) -> CallTelemetry {
    let ran_for = flight.and_then(Flight::ran_for);
    CallTelemetry { latency_ms: ran_for.map(milliseconds), ..measure::cancelled(&request.name) }
}
