//! Runs a flow: passes the jobs of its machine to `work`, with calls that only read side by side, and records results,
//! so an interrupted flow can be continued.

use std::collections::{BTreeMap, VecDeque};

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Map, Value};

use crate::agent::call::{CallLane, CallScheduler, OutcomeOrder};
use crate::agent::orchestration::Orchestration;
use crate::agent::orchestration::progress::PlanProgress;
use crate::agent::orchestration::role::StepFailure;
use crate::agent::turn::{Turn, TurnEnd, TurnStop};
use crate::config::FlowStep;
use crate::conversation::event::EventKind;
use crate::conversation::event::plan::FlowNote;
use crate::conversation::message::{FinishReason, Step};

use super::course::{Course, Spot};
use super::machine::{FlowJob, Machine};
use super::values::FlowScope;
use super::{ChosenFlow, fill_task};

/// The result of a flow.
pub(super) struct FlowResult {
    /// The outputs by key; `None` if the flow declares none.
    pub outputs: Option<Value>,
    pub answer: Value,
}

impl Turn<'_> {
    /// Carries out an input by the flow that was chosen for all of them.
    pub(in crate::agent) async fn by_flow(
        &mut self,
        orchestration: &Orchestration,
        chosen: &ChosenFlow,
        said: &str,
    ) -> Result<TurnEnd, TurnStop> {
        let mut given = chosen.given.clone();
        if let Some(task) = &chosen.task {
            given.insert(task.clone(), said.into());
        }
        self.begin_flow(orchestration, &chosen.name, &chosen.given, given).await
    }

    /// Carries out a request by the flow that the router chose.
    pub(in crate::agent::orchestration) async fn by_chosen_flow(
        &mut self,
        orchestration: &Orchestration,
        name: &str,
        input: &Value,
        said: &str,
    ) -> Result<TurnEnd, TurnStop> {
        let flow = orchestration.flows.all.get(name);
        let given = flow.map(|flow| fill_task(flow, input, said)).unwrap_or_default();
        let stated = given.clone();
        self.begin_flow(orchestration, name, &stated, given).await
    }

    /// Begins a flow, or continues it after an interruption, unless a `stated` input differs.
    async fn begin_flow(
        &mut self,
        orchestration: &Orchestration,
        name: &str,
        stated: &Map<String, Value>,
        given: Map<String, Value>,
    ) -> Result<TurnEnd, TurnStop> {
        let Some(flow) = orchestration.flows.all.get(name) else {
            return self.no_result(format!("there is no flow `{name}`"));
        };
        let digest = orchestration.flows.digest();
        let typed = flow.inputs_of(&given);
        let same = |inputs: &Value| {
            let known = inputs.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
            let mut laid: Map<String, Value> = known.map(|(key, value)| (key.clone(), value.clone())).collect();
            laid.extend(stated.clone());
            flow.inputs_of(&laid).is_ok_and(|laid| Value::Object(laid) == *inputs)
        };
        let interrupted = self.interrupted(name, &digest).filter(|(inputs, _)| same(inputs));
        let is_resumed = interrupted.is_some();
        let (inputs, memory) = match interrupted {
            Some((inputs, memory)) => {
                let message = format!("going on with the flow `{name}` that was interrupted");
                self.run.emitter.emit(EventKind::Warning { message })?;
                (inputs, memory)
            }
            None => {
                let mut inputs = match typed {
                    Ok(inputs) => Value::Object(inputs),
                    Err(why) => return self.no_result(why),
                };
                self.agent.redactor.redact_value(&mut inputs);
                let begun = FlowNote::Begun { flow: name.to_owned(), digest, inputs: inputs.clone() };
                self.note_flow(begun)?;
                (inputs, BTreeMap::new())
            }
        };
        let inputs = inputs.as_object().cloned().unwrap_or_default();
        let mut course = Course { orchestration, memory, is_resumed, begun: 0 };
        let ran = self.run_flow(&mut course, Spot { flow, prefix: String::new() }, &inputs).await;
        let ended = StepFailure::settle(ran)?;
        let mut plan = PlanProgress::replay(self.conversation.session.progress());
        if plan.is_unfinished() {
            self.close_plan(&mut plan, "the flow is over")?;
        }
        self.note_flow(FlowNote::Closed)?;
        match ended {
            Ok(FlowResult { outputs, answer }) => {
                let answer = as_text(&answer);
                self.run.outputs = outputs;
                self.keep_reply(Step::of_text(answer.clone(), FinishReason::Stop))?;
                self.answer(answer).await
            }
            Err(why) => self.no_result(format!("the flow `{name}` ended at its {why}")),
        }
    }

    /// The inputs and results of the flow that was interrupted, if it is this one and has not changed.
    fn interrupted(&self, name: &str, now: &str) -> Option<(Value, BTreeMap<String, Value>)> {
        let notes = self.conversation.session.flow();
        let Some(FlowNote::Begun { flow, digest, inputs }) = notes.first() else { return None };
        if flow != name || digest != now || notes.contains(&FlowNote::Closed) {
            return None;
        }
        let finished = notes.iter().filter_map(|note| match note {
            FlowNote::Finished { name, result } => Some((name.clone(), result.clone())),
            FlowNote::Begun { .. } | FlowNote::Closed => None,
        });
        Some((inputs.clone(), finished.collect()))
    }

    /// Runs a flow: the requested one, or one inside it.
    pub(super) async fn run_flow(
        &mut self,
        course: &mut Course<'_>,
        spot: Spot<'_>,
        inputs: &Map<String, Value>,
    ) -> Result<FlowResult, StepFailure> {
        let flow = spot.flow;
        let (results, scope) = self.run_list(course, spot, &flow.steps, FlowScope::of_inputs(inputs)).await?;
        let fill = |part: &str, value: &Value| scope.fill(value).map_err(|why| format!("step `{part}`: {why}"));
        let outputs = fill("outputs", &Value::Object(flow.outputs.clone()))?;
        let outputs = Some(outputs).filter(|_| !flow.outputs.is_empty());
        let answer = match (&flow.answer, &outputs) {
            (Some(answer), _) => fill("answer", &Value::from(answer.as_str()))?,
            (None, Some(outputs)) => outputs.clone(),
            (None, None) => {
                let last = flow.steps.iter().rev().find_map(|step| results.get(&step.id));
                last.cloned().unwrap_or_default()
            }
        };
        Ok(FlowResult { outputs, answer })
    }

    /// Runs a list of steps to its end. Returns their results, and the scope after them.
    #[expect(clippy::type_complexity, reason = "a future of two values, which have no name together")]
    pub(super) fn run_list<'t>(
        &'t mut self,
        course: &'t mut Course<'_>,
        spot: Spot<'t>,
        steps: &'t [FlowStep],
        scope: FlowScope,
    ) -> BoxFuture<'t, Result<(Map<String, Value>, FlowScope), StepFailure>> {
        async move {
            let mut machine = Machine::new(steps, scope);
            let mut waiting: VecDeque<FlowJob<'t>> = VecDeque::new();
            loop {
                let (jobs, notes) = machine.begin();
                for note in notes {
                    self.end_without_job(course, &spot, note.step, note.status, note.why)?;
                }
                waiting.extend(jobs);
                if waiting.is_empty() {
                    break;
                }
                let ended = self.run_some(course, &spot, &machine, &mut waiting).await?;
                for (job, result) in ended {
                    let (next, note) = machine.finish(&job, result);
                    waiting.extend(next);
                    if let Some(note) = note {
                        self.end_without_job(course, &spot, note.step, note.status, note.why)?;
                    }
                }
            }
            Ok((machine.results()?, machine.scope().clone()))
        }
        .boxed()
    }

    /// Runs the first waiting job, and if it only reads, others that only read beside it.
    async fn run_some<'f>(
        &mut self,
        course: &mut Course<'_>,
        spot: &Spot<'_>,
        machine: &Machine<'f>,
        waiting: &mut VecDeque<FlowJob<'f>>,
    ) -> Result<Vec<(FlowJob<'f>, Result<Value, String>)>, TurnStop> {
        waiting.retain(|job| machine.wants(job));
        let mut remembered = Vec::new();
        let mut rest = VecDeque::new();
        for job in waiting.drain(..) {
            match course.memory.remove(&spot.name(&job)) {
                Some(value) => remembered.push((job, Ok(value))),
                None => rest.push_back(job),
            }
        }
        *waiting = rest;
        if !remembered.is_empty() {
            return Ok(remembered);
        }
        if let Some(limit) = self.reached_limit() {
            return Err(TurnStop::Limit(limit));
        }
        let ended = self.run_beside(course, spot, waiting).await?;
        if !ended.is_empty() {
            return Ok(ended);
        }
        let Some(job) = waiting.pop_front() else { return Ok(Vec::new()) };
        let running = self.begin_job(course, spot, &job)?;
        let result = StepFailure::settle(self.do_step(course, spot, &job, &running.name).await)?;
        self.end_job(running, &result)?;
        Ok(vec![(job, result.map(|(value, _)| value))])
    }

    /// Makes the calls of the jobs that may run side by side, if there are any.
    async fn run_beside<'f>(
        &mut self,
        course: &mut Course<'_>,
        spot: &Spot<'_>,
        waiting: &mut VecDeque<FlowJob<'f>>,
    ) -> Result<Vec<(FlowJob<'f>, Result<Value, String>)>, TurnStop> {
        let mut scheduler = CallScheduler::new(self.plan_services(waiting.len()), OutcomeOrder::AsEnded);
        while scheduler.has_room()
            && let Some(at) = waiting.iter().position(|job| self.runs_beside(&scheduler, job))
            && let Some(job) = waiting.remove(at)
        {
            let running = self.begin_job(course, spot, &job)?;
            let Some(call) = self.call_of(&job, course.begun) else { continue };
            let prepared = self.begin_given(call)?;
            self.begin_call(&mut scheduler, (job, running), prepared).await?;
        }
        let mut ended = Vec::new();
        while let Some(((job, running), outcome)) = self.take_outcome(&mut scheduler).await? {
            let result = self.answer_call(outcome, scheduler.limits())?.into_result();
            self.end_job(running, &result)?;
            ended.push((job, result.map(|(value, _)| value)));
        }
        Ok(ended)
    }

    /// True if a job is a call that may run beside those that the scheduler runs.
    fn runs_beside<'c, Tag: Send + 'c>(&self, scheduler: &CallScheduler<'c, Tag>, job: &FlowJob<'_>) -> bool {
        let lane = self.call_of(job, 0).map_or(CallLane::Alone, |call| self.judge_given(&call).lane());
        lane != CallLane::Alone && scheduler.admits(lane)
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
