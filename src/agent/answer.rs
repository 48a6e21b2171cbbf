//! Answers a finished call: shapes the answer for the model, counts it and records it.

use std::borrow::Cow;
use std::fmt::Write;

use jiff::Timestamp;
use serde_json::Value;

use crate::base::output::{Kept, Lost, ToolOutput};
use crate::base::present::{self, Occasion, Source};
use crate::base::secrets::Redactor;
use crate::base::text;
use crate::base::tokens::BYTES_PER_TOKEN;
use crate::config::Permission;
use crate::config::ToolOutputSettings;
use crate::conversation::event::{CallTelemetry, EventKind, Message};
use crate::conversation::message::{Answer, CallStatus};
use crate::conversation::session::StateChange;
use crate::model::CallRecord;

use super::Terms;
use super::dispatch::Deck;
use super::execute::{Carried, Finished};
use super::limits::Limit;
use super::repeat::{Observed, Repetition};
use super::turn::{Stop, Turn};

impl Turn<'_> {
    /// Gives a call its one answer, after checking for a loop.
    pub(super) fn answer_call(&mut self, mut finished: Finished<'_>, deck: &Deck) -> Result<(), Stop> {
        self.clean(&mut finished.output);
        let unknown = Terms::default();
        let found = self.agent.tools.get(&finished.carried.call.name);
        let terms = found.map_or(&unknown, |found| found.terms);
        let most = Self::most_for(deck, terms) * BYTES_PER_TOKEN;
        let repetition = if deck.of_plan { Repetition::Progress } else { self.look_for_loop(&finished) };
        self.frame(&mut finished, most);
        self.tell_edit(&mut finished);
        if let Repetition::Hint { times } = repetition {
            finished.output.observation.push_str(&hint(times));
        }
        for news in self.agent.jobs.news() {
            let _ = write!(finished.output.observation, "\n[{}]", present::neutralise(&news));
        }
        let answer = self.shape(&mut finished, terms, most);
        let telemetry = self.account(&finished, &answer)?;
        self.conversation.flights.land(finished.carried.slot);
        let unavailable = finished.unavailable.take();
        self.record_answer(finished, answer, telemetry)?;
        if let Some(why) = unavailable {
            return Err(Stop::Unavailable(why));
        }
        match repetition {
            Repetition::Stop { times } => Err(Stop::Limit(Limit::Loop { times })),
            _ => Ok(()),
        }
    }

    /// Removes secrets before anything is cut: half a secret would not be recognised.
    fn clean(&self, output: &mut ToolOutput) {
        let redactor = &self.agent.redactor;
        output.observation = redactor.redact(&output.observation).into_owned();
        output.summary = redactor.redact(&output.summary).into_owned();
        redactor.redact_value(&mut output.result);
        output.state_update.values_mut().for_each(|value| redact(redactor, value));
    }

    /// Breaks the marks in an observation that may not direct the model (a failure may quote anything), then cuts it if
    /// it is too long and keeps the whole text for `recall`. Marks are broken first, so only our own notice of a cut
    /// looks like one.
    fn frame(&self, Finished { carried, trusted, status, output, .. }: &mut Finished<'_>, most: usize) {
        let framed = match present::neutralise(&output.observation) {
            Cow::Owned(framed) if !*trusted || *status != CallStatus::Ok => Some(framed),
            _ => None,
        };
        let shown = framed.as_deref().unwrap_or(&output.observation);
        if shown.len() <= most {
            output.observation = framed.unwrap_or_else(|| std::mem::take(&mut output.observation));
            return;
        }
        let kept = output.kept.take().or_else(|| self.spill(&carried.call.name, &output.observation));
        output.observation = cut(shown, most, kept.as_ref());
        output.kept = kept;
        output.truncated = true;
    }

    /// Tells the model which command a person wrote in place of its own.
    fn tell_edit(&self, Finished { carried: Carried { edited, .. }, output, .. }: &mut Finished<'_>) {
        let Some(line) = edited else { return };
        let line = self.agent.redactor.redact_known(line);
        // It is inside the marks of the result.
        let line = present::neutralise(&line);
        output.observation.insert_str(0, &format!("[The user changed your command to:\n{line}\n]\n"));
        if let Value::Object(result) = &mut output.result {
            result.insert("command_of_user".to_owned(), line.into());
        }
    }

    /// Keeps a text that is too long for the conversation, if the model has the tool to read it. Results of that tool
    /// are already kept.
    fn spill(&self, tool: &str, whole: &str) -> Option<Kept> {
        let recall = self.agent.tools.find("recall").ok()?;
        if tool == recall.tool.definition().name {
            return None;
        }
        let kept = self.conversation.shared.spill.keep(whole);
        if let Kept::Beginning { why, .. } | Kept::Nothing(why) = &kept {
            let why = match why {
                Lost::Full => "the store is full",
                Lost::Failed => "the disk failed",
            };
            let message = format!("the part that was cut out of a result is not kept, or not to its end: {why}");
            self.run.emitter.notify(EventKind::Warning { message });
        }
        Some(kept)
    }

    fn look_for_loop(&mut self, finished: &Finished<'_>) -> Repetition {
        let Finished { carried: Carried { call, arguments, .. }, status, output, only_read, .. } = finished;
        // A cut gets a new handle each time, so the handle is ignored when results are compared.
        let seen = match output.kept.as_ref().and_then(Kept::id) {
            Some(id) => Cow::Owned(output.observation.replace(&format!("recall id={id} "), "recall ")),
            None => Cow::Borrowed(&output.observation),
        };
        let found = self.agent.tools.get(&call.name);
        let permission = found.map(|found| found.tool.definition().permission).filter(|_| !only_read);
        self.repeats.observe(Observed {
            name: &call.name,
            arguments,
            result: &seen,
            succeeded: *status == CallStatus::Ok,
            changes: permission.is_some_and(|permission| permission > Permission::Read),
        })
    }

    /// Formats the answer for the model.
    fn shape(&self, finished: &mut Finished<'_>, terms: &Terms, most: usize) -> Answer {
        let Finished { carried: Carried { call, .. }, trusted, status, output, measured, .. } = finished;
        // The name of an unknown tool could contain anything.
        let tool = self.agent.tools.get(&call.name).map_or("unknown", |_| call.name.as_str());
        let latency = measured.latency.unwrap_or_default();
        let duration_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        let occasion = Occasion { call_id: &call.id, duration_ms };
        let ToolOutputSettings { format, encoding } = self.agent.tool_output;
        let (format, encoding) = (terms.format.unwrap_or(format), terms.encoding.unwrap_or(encoding));
        if output.kept.is_none() {
            let left_out = present::left_out(*status, output, format, most);
            output.kept = left_out.and_then(|whole| self.spill(&call.name, &whole));
        }
        let view = present::view(Source { tool, trusted: *trusted }, *status, output, format, occasion, most);
        Answer {
            content: present::encode(&view, encoding),
            status: *status,
            images: std::mem::take(&mut output.images),
            spill_id: output.kept.as_ref().and_then(Kept::id_of_whole).map(str::to_owned),
            skill: output.skill.take(),
            digested: false,
        }
    }

    /// Counts the call, and reports its end to the observers.
    fn account(&mut self, finished: &Finished<'_>, answer: &Answer) -> Result<CallTelemetry, Stop> {
        let Finished { carried: Carried { call, .. }, status, output, measured, .. } = finished;
        self.note_spending(finished.carried.slot);
        self.run.totals.tool_calls += 1;
        self.run.totals.denied += u64::from(*status == CallStatus::Denied);
        let tool = self.agent.tools.get(&call.name).map(|found| found.tool);
        let telemetry = measured.telemetry(call, tool, *status, output, &answer.content);
        self.run.emitter.emit(EventKind::ToolFinished {
            call_id: call.id.clone(),
            name: call.name.clone(),
            status: *status,
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
        finished: Finished<'_>,
        answer: Answer,
        telemetry: CallTelemetry,
    ) -> Result<(), Stop> {
        let Finished { carried, status, output, .. } = finished;
        let Carried { call, slot, arguments, brings, .. } = carried;
        let now = Timestamp::now();
        if self.agent.model.info().scripted {
            let (name, result, observation) = (call.name.clone(), output.result, output.observation);
            self.conversation.results.push(CallRecord { name, arguments, status, result, observation });
        }
        self.conversation.note_knowledge(now);
        let change = StateChange { changes: output.state_update, ..StateChange::default() };
        self.conversation.session.update_state(change, now);
        if let Some(source) = brings {
            self.taint(&source);
        }
        let event = EventKind::Message(Message::answer(&call, &answer));
        self.conversation.session.sync_before(self.conversation.shared.spill.take_unsynced());
        self.conversation.session.answer(slot, answer, telemetry, now).map_err(anyhow::Error::from)?;
        Ok(self.run.emitter.emit(event)?)
    }
}

/// Keeps the head and the tail of a long text, with a notice about the gap: its size, and how to read it.
fn cut(observation: &str, most: usize, kept: Option<&Kept>) -> String {
    let (head, tail) = (text::head(observation, most * 2 / 3), text::tail(observation, most / 3));
    let left_out = &observation[head.len()..observation.len() - tail.len()];
    let (bytes, lines) = (left_out.len(), left_out.matches('\n').count());
    let how = kept.map_or(String::new(), |kept| format!("; {}", kept.notice()));
    format!("{head}\n[… {bytes} bytes, {lines} lines left out{how} …]\n{tail}")
}

/// Removes secrets from every text of a value.
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
