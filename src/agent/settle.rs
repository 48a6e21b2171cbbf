//! Completes a conversation when a turn is interrupted: open calls are answered with what is known about them,
//! streamed text becomes an interrupted reply, and the running request is counted.

use jiff::Timestamp;

use crate::base::{json, tokens};
use crate::conversation::event::{CallTelemetry, EventKind, Message, RequestStatus};
use crate::conversation::message::{Answer, CallStatus, FinishReason, Part, Step, ToolCall, Usage};
use crate::conversation::session::OpenCall;
use crate::conversation::telemetry::milliseconds;
use crate::model::ModelError;

use super::execute::started;
use super::flights::Flight;
use super::measure;
use super::request::{OpenRequest, status_of};
use super::turn::{Stop, Turn};

impl Turn<'_> {
    /// Answers every open call with what is known about it.
    pub(super) fn settle_calls(&mut self, why: &str) -> Result<(), Stop> {
        for OpenCall { number, call, request } in self.conversation.session.open_calls() {
            self.note_spending((number, call));
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

    /// Enters a failed attempt, with the reply as far as it came.
    pub(super) fn settle_attempt(&mut self, error: &ModelError) {
        let Some(open) = self.conversation.asking.take() else { return };
        let usage = self.cut_usage(open.input_tokens);
        let usage = if usage.output_tokens > 0 { usage } else { Usage::default() };
        self.enter_unanswered(open, status_of(error), usage, None);
    }

    /// Enters a request that brought no step, in the ledger and in the session.
    pub(super) fn enter_unanswered(
        &mut self,
        open: OpenRequest,
        status: RequestStatus,
        usage: Usage,
        stated_usd: Option<f64>,
    ) {
        let (usage, cost) = open.settle(status, usage, stated_usd);
        if usage.total() > 0 {
            self.conversation.session.spend(usage, cost, Timestamp::now());
        }
    }

    /// Keeps streamed text as an interrupted reply after an interruption, and enters the running request.
    pub(super) fn settle_reply(&mut self) -> Result<(), Stop> {
        let open = self.conversation.asking.take();
        let usage = open.as_ref().map(|open| self.cut_usage(open.input_tokens)).unwrap_or_default();
        if self.conversation.session.partial().0.trim().is_empty() {
            if let Some(open) = open {
                self.enter_unanswered(open, RequestStatus::Cancelled, usage, None);
            }
            self.conversation.session.clear_partial();
            return self.conversation.session.sync().map_err(|error| Stop::Failed(error.into()));
        }
        let (usage, cost_usd) = match open {
            Some(open) => {
                self.run.ledger.count_step();
                open.settle(RequestStatus::Cancelled, usage, None)
            }
            None => (usage, None),
        };
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
