//! Carries out one step of a flow: a call, a prompt, a role, another flow, a group. Each takes the same path as
//! elsewhere. A failure fails only the step, unless it ends the turn.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::agent::call::{CallEnd, GivenCall, GivenOutcome};
use crate::agent::orchestration::FlowPrompt;
use crate::agent::orchestration::graph;
use crate::agent::orchestration::progress::{PlanFacts, PlanProgress};
use crate::agent::orchestration::reference::as_text;
use crate::agent::orchestration::reply::{self, PlanReply};
use crate::agent::orchestration::role::StepFailure;
use crate::agent::turn::Turn;
use crate::base::text;
use crate::base::validator::Validator;
use crate::config::{FlowRole, StepWork};
use crate::conversation::event::plan::{PlanCreated, PlanEvent as Happened, PlanStep};
use crate::conversation::message::{Item, UserText};
use crate::prompt::with_given;
use crate::tools::TASK;

use super::course::{Course, Spot};
use super::machine::FlowJob;

/// The result of a job with a line for a person.
type Worked = (Value, String);

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

impl Turn<'_> {
    /// The call of a job, if it makes one.
    pub(super) fn call_of(&self, job: &FlowJob<'_>, number: u32) -> Option<GivenCall> {
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

    /// Carries out a step.
    pub(super) async fn do_step(
        &mut self,
        course: &mut Course<'_>,
        spot: &Spot<'_>,
        job: &FlowJob<'_>,
        name: &str,
    ) -> Result<Worked, StepFailure> {
        let with = &job.arguments.with;
        let orchestration = course.orchestration;
        let within = |flow| Spot { flow, prefix: format!("{name}/") };
        let of_step = |failure: StepFailure| failure.explain("its ");
        match job.step.works().next() {
            None => Err("it does nothing".to_owned().into()),
            Some(StepWork::Tool(_) | StepWork::Agent(_)) => {
                let call = self.call_of(job, course.begun).ok_or("it does nothing".to_owned())?;
                Ok(self.run_given(call).await?.into_result()?)
            }
            Some(StepWork::Prompt(_)) => {
                let key = (spot.flow.name.clone(), job.step.id.clone());
                let asked = orchestration.flows.prompts.get(&key).ok_or("its prompt is missing".to_owned())?;
                self.ask_prompt(asked, job, name).await
            }
            Some(StepWork::Role(FlowRole::Router)) => {
                let (reply, route) = self.ask_router(orchestration, &read_text_value(with, "request")).await?;
                let (kind, chosen) = route.describe_route();
                let mut value = json!(reply);
                value["kind"] = kind.into();
                value["name"] = chosen.into();
                Ok((value, format!("{kind} {chosen}")))
            }
            Some(StepWork::Role(FlowRole::Planner)) => {
                let (request, known) = (read_text_value(with, "request"), read_text_value(with, "known"));
                let known = Some(known).filter(|known| !known.is_empty());
                let PlanCreated { analysis, steps, .. } =
                    self.make_plan(orchestration, &PlanProgress::new(), &request, known).await?;
                let summary = format!("{} steps", steps.len());
                Ok((json!({ "analysis": analysis, "plan": steps }), summary))
            }
            Some(StepWork::Role(FlowRole::Executor)) => self.execute_plan(course, with).await,
            Some(StepWork::Role(FlowRole::Reflector)) => self.judge(course, with).await,
            Some(StepWork::Flow(called)) => {
                let flow = orchestration.flows.all.get(called);
                let flow = flow.ok_or_else(|| format!("there is no flow `{called}`"))?;
                let inputs = flow.inputs_of(with)?;
                // A flow runs lists of steps, and a list runs flows.
                let ran = Box::pin(self.run_flow(course, within(flow), &inputs)).await.map_err(of_step)?;
                Ok((ran.outputs.unwrap_or(ran.answer), String::new()))
            }
            Some(StepWork::Group(steps)) => {
                let ran = self.run_list(course, within(spot.flow), steps, job.scope.clone()).await;
                let (results, _) = ran.map_err(of_step)?;
                Ok((Value::Object(results), String::new()))
            }
        }
    }

    /// Asks a model with the prompt of a step. Under a schema a reply that does not match goes back once.
    async fn ask_prompt(
        &mut self,
        asked: &FlowPrompt,
        job: &FlowJob<'_>,
        name: &str,
    ) -> Result<Worked, StepFailure> {
        let prompt = asked.prompt.of_session(self.conversation.session.id());
        let run_id = self.run.emitter.run_id();
        let context = self.agent.briefing.context_of(prompt, self.conversation, &run_id);
        let text = prompt.render(&with_given(&context, &job.arguments.with)).map_err(|error| error.to_string())?;
        let schema = job.step.schema.clone().map(|schema| Arc::new(Value::Object(schema)));
        let who = (&asked.model, schema.clone());
        let first = self.ask_as(name, who.clone(), Vec::new(), text.clone()).await?;
        let reply = self.agent.redactor.redact(&first.text()).into_owned();
        if first.was_cut() {
            return Err("the reply was cut at the output limit".to_owned().into());
        }
        let Some(schema) = schema else {
            let summary = text::one_line(&reply, 120);
            return Ok((Value::String(reply), summary));
        };
        let validator =
            Validator::new(&schema).map_err(|why| format!("`schema` is not a valid JSON Schema: {why}"))?;
        let mistake = match reply::read_reply::<Value>(&reply, &validator) {
            Ok(read) => return Ok((read.value, String::new())),
            Err(mistake) => mistake,
        };
        let items = vec![Item::Said(UserText::by_program(text)), Item::Step(first)];
        let correction = format!(
            "That reply cannot be used.\n{mistake}\n\nReply once more: one JSON object, and nothing around it, that \
             matches this JSON Schema:\n{schema}"
        );
        let second = self.ask_as(name, who, items, correction).await?;
        let reply = self.agent.redactor.redact(&second.text()).into_owned();
        let read = reply::read_reply::<Value>(&reply, &validator);
        Ok((read.map_err(|why| format!("no usable reply: {why}"))?.value, String::new()))
    }

    /// Carries out a plan, and returns the outcome of each step.
    async fn execute_plan(
        &mut self,
        course: &mut Course<'_>,
        with: &Map<String, Value>,
    ) -> Result<Worked, StepFailure> {
        let reply = plan_of(with)?;
        let orchestration = course.orchestration;
        let steps = graph::check_plan(&reply, &orchestration.choices(self.agent));
        let steps = steps.map_err(|mistakes| mistakes.join(" "))?;
        let mut machine = PlanProgress::replay(self.conversation.session.progress());
        let is_resumed = std::mem::take(&mut course.is_resumed);
        let goes_on = is_resumed && machine.is_unfinished() && machine.steps() == steps.as_slice();
        if !goes_on {
            let (revision, kept) = (machine.next_revision(), Vec::new());
            let request = read_text_value(with, "request");
            let analysis = reply.analysis;
            let created = PlanCreated { request, revision, analysis, steps, kept, ..PlanCreated::default() };
            self.note(&mut machine, Happened::Planned(created))?;
        }
        self.run_steps(orchestration, &mut machine).await?;
        let told = |step: &PlanStep| {
            let mut told = json!(step);
            if let Some(ended) = machine.find_end(step.step_id) {
                told["status"] = json!(ended.status);
                told["summary"] = ended.summary.as_str().into();
                told["result"] = ended.result.clone();
                told["checked"] = json!(ended.check);
            }
            told
        };
        let results: Vec<Value> = machine.steps().iter().map(told).collect();
        let (all, failed) = (results.len(), machine.find_failed().len());
        Ok((Value::Array(results), format!("{} of {all} steps done", all - failed)))
    }

    /// Asks for a judgement of results. The decision follows from the scores and the facts about the plan.
    async fn judge(&mut self, course: &mut Course<'_>, with: &Map<String, Value>) -> Result<Worked, StepFailure> {
        let retries = with.get("retries").and_then(Value::as_u64).and_then(|retries| u32::try_from(retries).ok());
        let machine = PlanProgress::replay(self.conversation.session.progress());
        let is_of_it = plan_of(with).is_ok_and(|reply| same_numbers(&reply.plan, machine.steps()));
        let known = if is_of_it { machine.facts() } else { PlanFacts::default() };
        let facts = PlanFacts { retries: retries.unwrap_or_default(), ..known };
        let request = read_text_value(with, "request");
        let told = json!({ "user_request": request, "plan": with.get("plan"), "results": with.get("results") });
        let (reply, decision) = self.ask_reflector(course.orchestration, told, &facts).await?;
        let mut value = json!(reply);
        value["decision"] = json!(decision);
        let summary = value["decision"]["action"].as_str().unwrap_or_default().to_owned();
        Ok((value, summary))
    }
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

fn same_numbers(one: &[PlanStep], other: &[PlanStep]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.step_id == other.step_id)
}

/// A value of `with` as text; empty if it is missing.
fn read_text_value(with: &Map<String, Value>, key: &str) -> String {
    with.get(key).filter(|value| !value.is_null()).map(as_text).unwrap_or_default()
}
