//! Gives a call its one answer: shaped, watched for loops, counted, recorded, told. A call that a turn leaves open when
//! it is interrupted is answered with what is known of it.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::limits::ReachedLimit;
use crate::agent::live_calls::{CallSlot, LiveCall};
use crate::agent::loops::{LoopVerdict, ObservedCall, ObservedEnd};
use crate::agent::turn::{Turn, TurnStop};
use crate::base::json;
use crate::base::output::Kept;
use crate::config::Permission;
use crate::conversation::event::{CallTelemetry, EventKind, EventMessage};
use crate::conversation::message::{CallAnswer, ToolCall};
use crate::conversation::session::{OpenCall, StateChange};
use crate::model::CallRecord;

use super::end::{CallEnd, CallFailure};
use super::execute::{CallLimits, CallOutcome, started_event};
use super::given::GivenOutcome;
use super::measure;
use super::shape::ResultShaper;

impl Turn<'_> {
    /// Gives a call its one answer, after checking for a loop. Only for a plan is the outcome complete.
    pub(in crate::agent) fn answer_call(
        &mut self,
        mut outcome: CallOutcome<'_>,
        limits: CallLimits,
    ) -> Result<GivenOutcome, TurnStop> {
        let unavailable = outcome.unavailable().map(str::to_owned);
        let mut verdict = LoopVerdict::Progress;
        let end = outcome.end.clone();
        let mut given = GivenOutcome { end, summary: String::new(), value: Value::Null };
        let (spill, emitter) = (Arc::clone(&self.conversation.shared.spill), Arc::clone(&self.run.emitter));
        let shaper = ResultShaper { agent: self.agent, spill, emitter, limits };
        let answer = shaper.shape(&mut outcome, |outcome| {
            if limits.of_plan {
                let output = &outcome.output;
                let says =
                    |part: &&str| outcome.prepared.arguments.get(part).is_some_and(|value| !value.is_null());
                let asks_for_part = ["offset", "limit", "max_tokens"].iter().any(says);
                if given.end == CallEnd::Done && output.truncated && !asks_for_part {
                    given.end = CallEnd::Cut;
                }
                let told = if given.end.has_result() { &output.summary } else { &output.observation };
                given.summary.clone_from(told);
                given.value = match &output.result {
                    Value::Null => Value::String(output.observation.clone()),
                    data => data.clone(),
                };
                return None;
            }
            verdict = self.look_for_loop(outcome);
            match &verdict {
                LoopVerdict::Hint(standstill) => Some(standstill.hint()),
                LoopVerdict::Progress | LoopVerdict::Stop(_) => None,
            }
        });
        let telemetry = self.account(&outcome, &answer)?;
        self.conversation.live.land(outcome.prepared.slot);
        self.record_answer(outcome, answer, telemetry)?;
        if let Some(why) = unavailable {
            return Err(TurnStop::Unavailable(why));
        }
        match verdict {
            LoopVerdict::Stop(standstill) => Err(TurnStop::Limit(ReachedLimit::Loop(standstill))),
            _ => Ok(given),
        }
    }

    fn look_for_loop(&mut self, outcome: &CallOutcome<'_>) -> LoopVerdict {
        let CallOutcome { prepared, end, output, only_read, measured, .. } = outcome;
        // A cut gets a new handle each time, so the handle is ignored when results are compared.
        let result = match output.kept.as_ref().and_then(Kept::id) {
            Some(id) => Cow::Owned(output.observation.replace(&format!("recall id={id} "), "recall ")),
            None => Cow::Borrowed(&output.observation),
        };
        let tool = self.agent.tools.get(&prepared.call.name).map(|found| found.tool.as_ref());
        let changes = tool.is_some_and(|tool| tool.definition().permission > Permission::Read) && !only_read;
        let observed = ObservedCall {
            step: prepared.slot.0,
            name: &prepared.call.name,
            arguments: &prepared.arguments,
            result: &result,
            end: match end {
                CallEnd::Done | CallEnd::Cut => ObservedEnd::Succeeded,
                CallEnd::Failed(CallFailure::Program(_)) => ObservedEnd::Failed,
                _ => ObservedEnd::Refused,
            },
            changes,
            waited: None,
            files: &[],
        };
        self.loops.observe(&self.agent.workspace, tool, measured.latency, observed)
    }

    /// Counts the call, and reports its end to the observers.
    fn account(&mut self, outcome: &CallOutcome<'_>, answer: &CallAnswer) -> Result<CallTelemetry, TurnStop> {
        let CallOutcome { prepared, end, output, measured, .. } = outcome;
        let call = &prepared.call;
        self.note_spending(prepared.slot);
        self.run.totals.tool_calls += 1;
        self.run.totals.denied += u64::from(matches!(end, CallEnd::Denied(_)));
        let tool = self.agent.tools.get(&call.name).map(|found| found.tool.as_ref());
        let telemetry = measured.telemetry(call, tool, end, output, &answer.content);
        self.run.emitter.emit(EventKind::ToolFinished {
            call_id: call.id.clone(),
            name: call.name.clone(),
            status: end.status(),
            summary: output.summary.clone(),
            telemetry: telemetry.clone(),
            truncated: output.truncated,
            spill_id: output.kept.as_ref().and_then(Kept::id).map(str::to_owned),
        })?;
        Ok(telemetry)
    }

    /// Records the call's changes, then its answer: on disk, then in memory, then as an event.
    fn record_answer(
        &mut self,
        outcome: CallOutcome<'_>,
        answer: CallAnswer,
        telemetry: CallTelemetry,
    ) -> Result<(), TurnStop> {
        let CallOutcome { prepared, end, output, brings, .. } = outcome;
        let (call, now) = (prepared.call, Timestamp::now());
        if self.agent.model.info().scripted {
            let (name, arguments, status) = (call.name.clone(), prepared.arguments, end.status());
            let (result, observation) = (output.result, output.observation);
            self.conversation.results.push(CallRecord { name, arguments, status, result, observation });
        }
        self.conversation.note_knowledge(now);
        let checkpoint = output.checkpoint;
        let change = StateChange { changes: output.state_update, ..StateChange::default() };
        self.conversation.session.update_state(change, now);
        if let Some(source) = brings {
            self.taint(&source);
        }
        self.conversation.session.sync_before(self.conversation.shared.spill.take_unsynced());
        self.keep_answer(prepared.slot, &call, answer, telemetry)?;
        if let Some(name) = checkpoint {
            self.conversation.session.mark(&name, Timestamp::now()).map_err(anyhow::Error::from)?;
        }
        Ok(())
    }

    /// Records the answer to a call: on disk, then in memory, then as an event.
    pub(in crate::agent) fn keep_answer(
        &mut self,
        slot: CallSlot,
        call: &ToolCall,
        answer: CallAnswer,
        telemetry: CallTelemetry,
    ) -> Result<(), TurnStop> {
        let event = EventKind::Message(EventMessage::answer(call, &answer));
        let session = &mut self.conversation.session;
        session.answer(slot, answer, telemetry, Timestamp::now()).map_err(anyhow::Error::from)?;
        Ok(self.run.emitter.emit(event)?)
    }

    /// Answers every open call with what is known about it.
    pub(in crate::agent) fn settle_calls(&mut self, why: &str) -> Result<(), TurnStop> {
        for OpenCall { number, call, request } in self.conversation.session.open_calls() {
            self.note_spending((number, call));
            let live = self.conversation.live.take((number, call));
            if live.is_none() {
                let arguments = json::object_or_unparsed(&request.arguments);
                self.run.emitter.notify(started_event(&request, String::new(), arguments));
            }
            let ran_for = live.as_ref().and_then(LiveCall::ran_for);
            let status = CallEnd::Cancelled { ran_for }.status();
            let answer = CallAnswer::of_text(LiveCall::explain_interruption(live.as_ref(), why), status);
            let telemetry = measure::measure_interrupted(&request.name, ran_for);
            self.run.totals.tool_calls += 1;
            self.run.emitter.notify(EventKind::ToolFinished {
                call_id: request.id.clone(),
                name: request.name.clone(),
                status,
                summary: "cancelled".to_owned(),
                telemetry: telemetry.clone(),
                truncated: false,
                spill_id: None,
            });
            let event = EventKind::Message(EventMessage::answer(&request, &answer));
            let recorded = self.conversation.session.answer((number, call), answer, telemetry, Timestamp::now());
            self.run.emitter.notify(event);
            recorded.map_err(anyhow::Error::from)?;
        }
        Ok(())
    }
}
