//! Answers an input by a flow: begins it, or goes on with one that was interrupted, and takes the answer from its results.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::agent::limits::ReachedLimit;
use crate::agent::turn::{Turn, TurnEnd, TurnStop};
use crate::conversation::event::EventKind;
use crate::conversation::event::plan::PlanEvent;
use crate::conversation::message::{FinishReason, Step};

use super::flow::{ChosenFlow, FlowMemory, fill_task};
use super::steps::{FlowList, ListContent, StepRun};

impl Turn<'_> {
    /// Carries out an input by the flow that was chosen for all of them.
    pub(in crate::agent) async fn by_flow(
        &mut self,
        chosen: &ChosenFlow,
        said: &str,
    ) -> Result<TurnEnd, TurnStop> {
        let mut given = chosen.given.clone();
        if let Some(task) = &chosen.task {
            given.insert(task.clone(), said.into());
        }
        self.begin_flow(&chosen.name, &chosen.given, given).await
    }

    /// Carries out a request by the flow that the router chose.
    pub(super) async fn by_chosen_flow(
        &mut self,
        name: &str,
        input: &Value,
        said: &str,
    ) -> Result<TurnEnd, TurnStop> {
        let flow = self.agent.orchestration.flows.all.get(name);
        let given = flow.map(|flow| fill_task(flow, input, said)).unwrap_or_default();
        let stated = given.clone();
        self.begin_flow(name, &stated, given).await
    }

    /// Begins a flow, or continues it after an interruption, unless a `stated` input differs.
    async fn begin_flow(
        &mut self,
        name: &str,
        stated: &Map<String, Value>,
        given: Map<String, Value>,
    ) -> Result<TurnEnd, TurnStop> {
        let Some(flow) = self.agent.orchestration.flows.all.get(name) else {
            return self.no_result(format!("there is no flow `{name}`"));
        };
        let digest = self.agent.orchestration.flows.digest();
        let typed = flow.inputs_of(&given);
        let same = |inputs: &Value| {
            let known = inputs.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
            let mut laid: Map<String, Value> = known.map(|(key, value)| (key.clone(), value.clone())).collect();
            laid.extend(stated.clone());
            flow.inputs_of(&laid).is_ok_and(|laid| Value::Object(laid) == *inputs)
        };
        let happened = self.conversation.session.progress();
        let interrupted = FlowMemory::replay(happened, name, &digest).filter(|(inputs, _)| same(inputs));
        let (inputs, memory) = match interrupted {
            Some(interrupted) => {
                let message = format!("going on with the flow `{name}` that was interrupted");
                self.run.emitter.emit(EventKind::Warning { message })?;
                interrupted
            }
            None => {
                let mut inputs = match typed {
                    Ok(inputs) => Value::Object(inputs),
                    Err(why) => return self.no_result(why),
                };
                self.agent.redactor.redact_value(&mut inputs);
                self.record_flow(PlanEvent::Begun { flow: name.to_owned(), digest, inputs: inputs.clone() })?;
                (inputs, FlowMemory::default())
            }
        };
        self.is_flow = true;
        let inputs = inputs.as_object().cloned().unwrap_or_default();
        let list = FlowList::of_flow(flow, &inputs, String::new());
        let mut run = StepRun::new(ListContent::Flow(list));
        (run.memory, run.answers) = (memory, inputs);
        Box::pin(self.run_steps(&mut run, flow.all_steps().len())).await?;
        // Questions that were of no use any more count too.
        self.record_beside();
        let result = match &run.lists[0].content {
            ListContent::Flow(list) => list.take_result(),
            ListContent::Plan(_) | ListContent::Ended => Err("step that is missing".to_owned()),
        };
        self.record_flow(PlanEvent::Closed { why: "the flow is over".to_owned() })?;
        match result {
            Ok((outputs, answer)) => {
                let answer = as_text(&answer);
                self.run.outputs = outputs;
                self.keep_reply(Step::of_text(answer.clone(), FinishReason::Stop))?;
                self.answer(answer).await
            }
            Err(why) => {
                // A helper that got no more out of the run's budget is not the flow's own failure.
                let refused = self.run.ledger.find_refused().map(ReachedLimit::Spending);
                if let Some(limit) = self.reached_limit().or(refused) {
                    return Err(TurnStop::Limit(limit));
                }
                let why = format!("the flow `{name}` ended at its {why}");
                let end = self.no_result(why.clone())?;
                let stop = if self.run.totals.unasked > 0 { TurnStop::Unasked(why) } else { end.stop };
                Ok(TurnEnd { stop, ..end })
            }
        }
    }

    /// Records an event of a flow.
    pub(super) fn record_flow(&mut self, happened: PlanEvent) -> Result<(), TurnStop> {
        Ok(self.conversation.session.note_progress(happened, Timestamp::now()).map_err(anyhow::Error::from)?)
    }
}

/// Formats a value for a person.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => serde_json::to_string_pretty(value).unwrap_or_default(),
        other => other.to_string(),
    }
}
