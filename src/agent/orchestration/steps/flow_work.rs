//! The work of a single step of a flow: a call, a question to a model, or a list of steps. Each takes the same path as
//! elsewhere. A failure fails only the step, unless it ends the turn.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Map, Value, json};

use crate::agent::call::{CallEnd, CallLane, GivenCall, GivenOutcome};
use crate::agent::orchestration::flow::FlowJob;
use crate::agent::orchestration::graph;
use crate::agent::orchestration::progress::{PlanFacts, PlanProgress};
use crate::agent::orchestration::reference::as_text;
use crate::agent::orchestration::reply::{self, PlanReply, ReflectorReply, RouteReply};
use crate::agent::orchestration::role::{Asking, StepFailure};
use crate::agent::orchestration::route::Route;
use crate::agent::request::beside::BesideQuestion;
use crate::agent::turn::{Turn, TurnStop};
use crate::base::text;
use crate::base::validator::Validator;
use crate::config::{ASK_USER, FlowRole, StepWork, format_duration};
use crate::conversation::event::plan::{PlanAuthor, PlanCreated, PlanEvent, PlanStep, ScoreDecision};
use crate::conversation::message::Step;
use crate::prompt::with_given;
use crate::tools::TASK;

use super::{FlowList, ListContent, PlanList, RunningJob, StepRun, StepScheduler, StepTag, Worked};

/// A question whose reply is the result of a step.
type StepQuestion<'c> = BoxFuture<'c, Result<Worked, StepFailure>>;

impl GivenOutcome {
    /// Turns an outcome into the result of a step.
    pub(super) fn into_result(self) -> Result<Worked, String> {
        match self.end {
            CallEnd::Cut => Err(format!("its result is not whole: {}", self.summary)),
            CallEnd::Done => Ok((self.value, self.summary)),
            _ => Err(self.summary),
        }
    }
}

impl<'c, 't: 'c> Turn<'t> {
    /// True if the work of a job may begin beside what runs.
    pub(super) fn can_begin(&self, run: &StepRun<'_>, scheduler: &StepScheduler<'_>, job: &FlowJob<'_>) -> bool {
        match job.step.works().next() {
            Some(StepWork::Tool(_) | StepWork::Agent(_)) => {
                let lane = || self.call_of(job, 0).map_or(CallLane::Alone, |call| self.judge_given(&call).lane());
                scheduler.has_room() && !scheduler.is_exclusive() && scheduler.admits(lane())
            }
            // One plan at a time: the log keeps one.
            Some(StepWork::Role(FlowRole::Executor)) => {
                !run.lists.iter().any(|list| matches!(list.content, ListContent::Plan(_)))
            }
            Some(StepWork::Prompt(_) | StepWork::Role(_)) => scheduler.has_room(),
            Some(StepWork::Flow(_) | StepWork::Group(_)) | None => true,
        }
    }

    /// The call of a job, if it makes one.
    fn call_of(&self, job: &FlowJob<'_>, number: u32) -> Option<GivenCall> {
        let mut arguments = job.arguments.with.clone();
        let tool = match job.step.works().next()? {
            StepWork::Tool(tool) => tool,
            StepWork::Agent(agent) => {
                arguments.insert("agent".to_owned(), agent.into());
                TASK
            }
            _ => return None,
        };
        Some(GivenCall {
            id: format!("flow_{}_{number}", self.conversation.session.turns()),
            tool: tool.to_owned(),
            arguments: Value::Object(arguments),
            variables: job.arguments.variables.clone(),
        })
    }

    /// Begins the work of a job.
    pub(super) async fn begin_work(
        &mut self,
        run: &mut StepRun<'c>,
        scheduler: &mut StepScheduler<'c>,
        running: RunningJob<'c>,
    ) -> Result<(), TurnStop> {
        let step = running.job.step;
        let inside = format!("{}/", running.name);
        let list = match step.works().next() {
            None => Err("it does nothing".to_owned()),
            Some(StepWork::Tool(ASK_USER)) if run.answers.contains_key(&step.id) => {
                let answer = &run.answers[&step.id];
                let worked = (json!({ "answer": answer }), text::one_line(&as_text(answer), 60));
                return self.end_job(run, running, Ok(worked), false);
            }
            Some(StepWork::Tool(ASK_USER)) if !self.agent.approver.present() => {
                // A default is an answer for this case.
                self.run.totals.unasked += u64::from(step.default.is_none());
                let why = format!("nobody is there to answer it; --var {}=ANSWER does", step.id);
                return self.end_denied(run, running, why);
            }
            Some(StepWork::Tool(_) | StepWork::Agent(_)) => match self.call_of(&running.job, run.begun) {
                Some(call) => {
                    let mut prepared = self.begin_given(call)?;
                    prepared.time_limit = step.time_limit.map(Into::into);
                    return self.begin_call(scheduler, StepTag::Flow(running), prepared).await;
                }
                None => Err("it does nothing".to_owned()),
            },
            Some(StepWork::Role(FlowRole::Executor)) => {
                StepFailure::settle(self.begin_plan(run, &running.job.arguments.with))?.map(ListContent::Plan)
            }
            Some(StepWork::Prompt(_) | StepWork::Role(_)) => {
                let question = StepFailure::settle(self.prepare_step(run, &running))?;
                match question {
                    Ok(question) => {
                        let bounded = bound_time(question, step.time_limit.map(Into::into));
                        scheduler.begin_request(StepTag::Flow(running), bounded);
                        return Ok(());
                    }
                    Err(why) => Err(why),
                }
            }
            Some(StepWork::Flow(called)) => match self.agent.orchestration.flows.all.get(called) {
                None => Err(format!("there is no flow `{called}`")),
                Some(flow) => {
                    let inputs = flow.inputs_of(&running.job.arguments.with);
                    inputs.map(|inputs| ListContent::Flow(FlowList::of_flow(flow, &inputs, inside)))
                }
            },
            Some(StepWork::Group(steps)) => {
                let scope = running.job.scope.clone();
                match &run.lists[running.list].content {
                    ListContent::Flow(around) => {
                        Ok(ListContent::Flow(FlowList::of_group(around.flow, steps, scope, inside)))
                    }
                    ListContent::Plan(_) | ListContent::Ended => Err("it has no flow".to_owned()),
                }
            }
        };
        match list {
            Ok(list) => run.push(list, Some(running)),
            Err(why) => self.end_job(run, running, Err(why), false)?,
        }
        Ok(())
    }

    /// Prepares the question of a step with a prompt or a role.
    fn prepare_step(
        &mut self,
        run: &StepRun<'c>,
        running: &RunningJob<'c>,
    ) -> Result<StepQuestion<'c>, StepFailure> {
        let with = &running.job.arguments.with;
        if let Some(role) = running.job.step.role {
            return self.prepare_role_step(role, with);
        }
        let ListContent::Flow(FlowList { flow, .. }) = &run.lists[running.list].content else {
            return Err("it has no flow".to_owned().into());
        };
        let key = (flow.name.clone(), running.job.step.id.clone());
        let asked = self.agent.orchestration.flows.prompts.get(&key).ok_or("its prompt is missing".to_owned())?;
        let prompt = asked.prompt.of_session(self.conversation.session.id());
        let run_id = self.run.emitter.run_id();
        let context = self.agent.briefing.context_of(prompt, self.conversation, &run_id);
        let prompt = prompt.render(&with_given(&context, with)).map_err(|error| error.to_string())?;
        let schema = running.job.step.schema.clone().map(|schema| Arc::new(Value::Object(schema)));
        let (name, model) = (running.name.clone(), Arc::clone(&asked.model));
        let question = BesideQuestion { name, model, schema: schema.clone(), items: Vec::new(), prompt };
        let asking = self.prepare_question(question)?;
        Ok(ask_for_data(asking, schema).boxed())
    }

    /// Prepares the question of a step with a role. The executor is none: it carries out a list.
    fn prepare_role_step(
        &mut self,
        role: FlowRole,
        with: &Map<String, Value>,
    ) -> Result<StepQuestion<'c>, StepFailure> {
        let request = read_text_value(with, "request");
        match role {
            FlowRole::Executor => Err("it is no question".to_owned().into()),
            FlowRole::Router => {
                let asked = self.prepare_router(&request)?;
                let told = |(reply, route): (RouteReply, Route)| {
                    let (kind, chosen) = route.describe_route();
                    let mut value = json!(reply);
                    value["kind"] = kind.into();
                    value["name"] = chosen.into();
                    (value, format!("{kind} {chosen}"))
                };
                Ok(asked.map(move |routed| routed.map(told)).boxed())
            }
            FlowRole::Planner => {
                let known = Some(read_text_value(with, "known")).filter(|known| !known.is_empty());
                let asked = self.prepare_planner(&PlanProgress::default(), &request, known)?;
                let told = |(analysis, steps): (String, Vec<PlanStep>)| {
                    let summary = format!("{} steps", steps.len());
                    (json!({ "analysis": analysis, "plan": steps }), summary)
                };
                Ok(asked.map(move |planned| planned.map(told)).boxed())
            }
            FlowRole::Reflector => {
                let retries = with.get("retries").and_then(Value::as_u64);
                let retries = retries.and_then(|retries| u32::try_from(retries).ok()).unwrap_or_default();
                let machine = PlanProgress::replay(self.conversation.session.progress());
                let numbers = |steps: &[PlanStep]| steps.iter().map(|step| step.step_id).collect::<Vec<_>>();
                let is_of_it = plan_of(with).is_ok_and(|reply| numbers(&reply.plan) == numbers(machine.steps()));
                let known = if is_of_it { machine.facts() } else { PlanFacts::default() };
                let facts = PlanFacts { retries, ..known };
                let told =
                    json!({ "user_request": request, "plan": with.get("plan"), "results": with.get("results") });
                let asked = self.prepare_reflector(told, facts)?;
                let told = |(reply, decision): (ReflectorReply, ScoreDecision)| {
                    let mut value = json!(reply);
                    value["decision"] = json!(decision);
                    let summary = value["decision"]["action"].as_str().unwrap_or_default().to_owned();
                    (value, summary)
                };
                Ok(asked.map(move |judged| judged.map(told)).boxed())
            }
        }
    }

    /// Begins the plan of an executor, or lets the one go on that was interrupted.
    fn begin_plan(&mut self, run: &mut StepRun<'_>, with: &Map<String, Value>) -> Result<PlanList, StepFailure> {
        let reply = plan_of(with)?;
        let steps = graph::check_plan(&reply, &self.agent.choices());
        let steps = steps.map_err(|mistakes| mistakes.join(" "))?;
        let mut machine = PlanProgress::replay(self.conversation.session.progress());
        let is_resumed = std::mem::take(&mut run.memory.has_plan);
        let goes_on = is_resumed && machine.is_unfinished() && machine.steps() == steps.as_slice();
        if !goes_on {
            let (revision, author) = (machine.next_revision(), PlanAuthor::Flow);
            let (request, analysis) = (read_text_value(with, "request"), reply.analysis);
            let created = PlanCreated { request, revision, analysis, author, steps, ..PlanCreated::default() };
            self.note(&mut machine, PlanEvent::Planned(created))?;
        }
        Ok(PlanList::new(machine))
    }
}

/// Bounds a question in time.
async fn bound_time(question: StepQuestion<'_>, limit: Option<Duration>) -> Result<Worked, StepFailure> {
    let Some(limit) = limit else { return question.await };
    let too_long = |_| Err(format!("it took longer than its `time_limit` of {}", format_duration(limit)).into());
    tokio::time::timeout(limit, question).await.unwrap_or_else(too_long)
}

/// Asks for a text; under a schema for data that matches it, where a reply that does not match goes back once.
async fn ask_for_data(asking: Asking<'_>, schema: Option<Arc<Value>>) -> Result<Worked, StepFailure> {
    let agent = asking.desk.agent;
    let validator = schema.as_deref().map(Validator::new).transpose();
    let validator = validator.map_err(|why| format!("`schema` is not a valid JSON Schema: {why}"))?;
    let take = |step: &Step| {
        if step.was_cut() {
            return Err("It was cut at the output limit: be shorter.".to_owned());
        }
        let reply = agent.redactor.redact(&step.text()).into_owned();
        let Some(validator) = &validator else {
            let summary = text::one_line(&reply, 120);
            return Ok((Value::String(reply), summary));
        };
        Ok((reply::read_reply::<Value>(&reply, validator)?.value, String::new()))
    };
    let correct = |mistake: &str| {
        let form = schema.as_ref().map_or(".".to_owned(), |schema| {
            format!(": one JSON object, and nothing around it, that matches this JSON Schema:\n{schema}")
        });
        format!("That reply cannot be used.\n{mistake}\n\nReply once more{form}")
    };
    asking.ask(take, correct).await.map_err(|failure| failure.explain("no usable reply: "))
}

/// The plan in a step's arguments: the reply of a planner, or its list of steps.
fn plan_of(with: &Map<String, Value>) -> Result<PlanReply, String> {
    let plan = match with.get("plan") {
        Some(steps @ Value::Array(_)) => json!({ "plan": steps }),
        Some(reply) => reply.clone(),
        None => Value::Null,
    };
    serde_json::from_value(plan).map_err(|error| format!("`with.plan` is not a plan: {error}"))
}

/// A value of `with` as text; empty if it is missing.
fn read_text_value(with: &Map<String, Value>, key: &str) -> String {
    with.get(key).filter(|value| !value.is_null()).map(as_text).unwrap_or_default()
}
