//! Running the calls of one reply: each is checked, judged, run and answered exactly once, in the order in which
//! the model wrote them. Calls that only read run side by side; all others wait their turn.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use jiff::Timestamp;
use serde_json::Value;

use crate::config::{ApprovalMode, Redactor, ToolOutputSettings};
use crate::contract::{CallRecord, Tool};
use crate::event::EventKind;
use crate::message::{AssistantMessage, CallStatus, Message, ToolMessage, Usage};
use crate::policy::Verdict;
use crate::present::{self, Occasion, Source};
use crate::text;

use super::execute::{Finished, Place, announce};
use super::prepare::{Plan, Prepared, prepare};
use super::repeat::Repetition;
use super::turn::{Stop, Turn};
use super::{Emitter, Limit, Terms};

impl Turn<'_> {
    /// Runs all calls of a reply and records their answers.
    ///
    /// A call is judged only once everything before it that could change something has run: what a path means may be
    /// different by then, and what the group before it brings in may forbid it.
    pub(super) async fn run_calls(&mut self, reply: &AssistantMessage) -> Result<(), Stop> {
        let agent = self.agent;
        let mut calls = reply.tool_calls.iter().peekable();
        while let Some(call) = calls.next() {
            let first = prepare(agent, call, reply.was_cut(), self.session.taint());
            if !first.may_run_beside() {
                let finished = self.run_alone(first).await?;
                self.answer_call(finished)?;
                continue;
            }
            let mut group = vec![first];
            while let Some(call) = calls.peek() {
                let next = prepare(agent, call, reply.was_cut(), self.session.taint());
                if !next.may_run_beside() {
                    break;
                }
                group.push(next);
                calls.next();
            }
            self.run_side_by_side(group).await?;
        }
        Ok(())
    }

    async fn run_side_by_side(&mut self, group: Vec<Prepared<'_>>) -> Result<(), Stop> {
        let (agent, emitter) = (self.agent, Arc::clone(&self.run.emitter));
        let place = Place { agent, emitter: &emitter, clock: self.clock };
        let calls: Vec<_> = group.into_iter().map(|prepared| prepared.run(place).boxed()).collect();
        let mut answers = futures_util::stream::iter(calls).buffered(agent.limits.max_parallel.max(1));
        while let Some(finished) = answers.next().await {
            self.answer_call(finished)?;
        }
        Ok(())
    }

    /// Asks where that is needed, then runs.
    async fn run_alone<'c>(&mut self, prepared: Prepared<'c>) -> Result<Finished<'c>, Stop>
    where
        Self: 'c,
    {
        let emitter = Arc::clone(&self.run.emitter);
        let Plan::Run { tool, terms, arguments, verdict, .. } = &prepared.plan else {
            return Ok(prepared.run(self.place(&emitter)).await);
        };
        if let Some((status, why)) = self.denial(&prepared.call, *tool, arguments, verdict).await? {
            announce(&self.run.emitter, &prepared.call, *tool, arguments);
            let arguments = arguments.clone();
            let Prepared { call, taken_up, .. } = prepared;
            return Ok(Finished::failed(call, taken_up, arguments, status, why));
        }
        let (tool, terms) = (*tool, *terms);
        let _pause = tool.waits_for_person().then(|| self.clock.pause());
        let finished = prepared.run(self.place(&emitter)).await;
        self.offer_outside(finished, (tool, terms)).await
    }

    /// A call that the sandbox may have kept from working runs once more outside of it, if a person says so. With
    /// nobody to ask it stands as it is.
    async fn offer_outside<'c>(
        &mut self,
        mut finished: Finished<'c>,
        (tool, terms): (&dyn Tool, &Terms),
    ) -> Result<Finished<'c>, Stop> {
        let may_ask = self.agent.approver.present() && self.agent.approval != ApprovalMode::Never;
        if !finished.refused || !may_ask {
            return Ok(finished);
        }
        let why = "once more and outside of the sandbox, which may be why it did not work".to_owned();
        let verdict = Verdict::Ask { why, always: None };
        match self.denial(&finished.call, tool, &finished.arguments, &verdict).await? {
            None => Ok(finished.again_outside(self.place(&self.run.emitter), (tool, terms)).await),
            Some((_, denial)) => {
                let _ = write!(finished.output.observation, "\n[Outside of the sandbox it was not run. {denial}]");
                Ok(finished)
            }
        }
    }

    fn place<'c>(&self, emitter: &'c Emitter) -> Place<'c>
    where
        Self: 'c,
    {
        Place { agent: self.agent, emitter, clock: self.clock }
    }

    /// Keeps a text that is too long for the conversation, where the model has the tool to read it.
    pub(super) fn spill(&self, whole: &str) -> Option<String> {
        self.agent.tools.find("recall").ok()?;
        match self.agent.spill.keep(whole) {
            Ok(id) => Some(id),
            Err(error) => {
                let message = format!("what was left out of a result is not kept: {error}");
                self.run.emitter.notify(EventKind::Warning { message });
                None
            }
        }
    }

    /// Records the one answer of a call, after looking for a loop.
    fn answer_call(&mut self, finished: Finished<'_>) -> Result<(), Stop> {
        let Finished {
            call, trusted, arguments, status, mut output, measured, spent, brings, unavailable, ..
        } = finished;
        if spent != Usage::default() {
            self.spend(spent);
        }
        let found = self.agent.tools.get(&call.name);
        let unknown = Terms::default();
        let terms = found.map_or(&unknown, |found| found.terms);
        // Redacted before it is cut: half a secret would not be recognised.
        let redactor = &self.agent.redactor;
        output.observation = redactor.redact(&output.observation).into_owned();
        output.summary = redactor.redact(&output.summary).into_owned();
        redactor.redact_value(&mut output.result);
        let most = terms.max_tokens.unwrap_or(self.agent.context.tool_result_max_tokens) * BYTES_PER_TOKEN;
        let mut spill_id = output.spill_id.take();
        if output.observation.len() > most {
            spill_id = spill_id.or_else(|| self.spill(&output.observation));
            output.observation = cut(&output.observation, most, spill_id.as_deref());
            output.truncated = true;
        }
        let repetition = self.repeats.observe(&call.name, &arguments.to_string(), &output.observation);
        if let Repetition::Hint { times } = repetition {
            output.observation.push_str(&hint(times));
        }
        for news in self.agent.jobs.news() {
            let _ = write!(output.observation, "\n[{news}]");
        }
        let latency = measured.latency.unwrap_or_default();
        let duration_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        let content = {
            // What is no tool's name could be anything.
            let tool = if found.is_some() { call.name.as_str() } else { "unknown" };
            let source = Source { tool, trusted };
            let occasion = Occasion { call_id: &call.id, duration_ms };
            let ToolOutputSettings { format, encoding } = self.agent.tool_output;
            let (format, encoding) = (terms.format.unwrap_or(format), terms.encoding.unwrap_or(encoding));
            present::encode(&present::view(source, status, &output, format, occasion, most), encoding)
        };
        self.run.totals.tool_calls += 1;
        if status == CallStatus::Denied {
            self.run.totals.denied += 1;
        }
        let tool = found.map(|found| found.tool);
        let telemetry = measured.telemetry(&call, tool, status, &output.summary, &output, &content);
        self.session.note_call(&call.id, telemetry.clone());
        self.run.emitter.emit(EventKind::ToolFinished {
            call_id: call.id.clone(),
            name: call.name.clone(),
            status,
            summary: output.summary.clone(),
            telemetry,
            truncated: output.truncated,
            spill_id,
        })?;
        if self.agent.model.info().scripted {
            self.run.results.push(CallRecord {
                name: call.name.clone(),
                arguments,
                status,
                result: output.result,
                observation: output.observation,
            });
        }
        if !output.state_update.is_empty() {
            output.state_update.values_mut().for_each(|value| redact(&self.agent.redactor, value));
            self.session.update_state(std::mem::take(&mut output.state_update), Timestamp::now());
        }
        if let Some(source) = brings {
            self.taint(&source);
        }
        self.record(Message::Tool(ToolMessage {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content,
            status,
            images: output.images,
        }))?;
        if let Some(why) = unavailable {
            return Err(Stop::Unavailable(why));
        }
        match repetition {
            Repetition::Stop { times } => Err(Stop::Limit(Limit::Loop { times })),
            _ => Ok(()),
        }
    }
}

/// The factor between the token limit of a result and its bytes.
const BYTES_PER_TOKEN: usize = 4;

/// Head and tail of a text that is too long, with what was left out between them, and how to read it.
fn cut(observation: &str, most: usize, spill_id: Option<&str>) -> String {
    let (head, tail) = (text::head(observation, most * 2 / 3), text::tail(observation, most / 3));
    let left_out = &observation[head.len()..observation.len() - tail.len()];
    let (bytes, lines) = (left_out.len(), left_out.matches('\n').count());
    let how = spill_id.map_or(String::new(), |id| format!("; recall id={id} reads the whole"));
    format!("{head}\n[… {bytes} bytes, {lines} lines left out{how} …]\n{tail}")
}

/// Takes secrets out of every text of a value.
fn redact(redactor: &Redactor, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = redactor.redact(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(redactor, item)),
        Value::Object(fields) => fields.values_mut().for_each(|field| redact(redactor, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn hint(times: usize) -> String {
    format!(
        "\n[note: this call has now returned the same result {times} times. Repeating it will not change that: try \
         something else, or answer with what you have.]"
    )
}
