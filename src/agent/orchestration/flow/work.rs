//! Carries out one step of a flow: a call, a prompt, a role, another flow, a group. Each takes the same path as
//! elsewhere. A failure fails only the step, unless it ends the turn.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::agent::call::{GivenCall, GivenOutcome};
use crate::agent::orchestration::graph;
use crate::agent::orchestration::plan::PlannerOutcome;
use crate::agent::orchestration::progress::{PlanFacts, PlanProgress};
use crate::agent::orchestration::reply::{self, PlanReply, ReflectorReply};
use crate::agent::orchestration::{FlowPrompt, verdict};
use crate::agent::turn::{Turn, TurnStop};
use crate::base::text;
use crate::base::validator::Validator;
use crate::config::{FlowRole, StepWork};
use crate::conversation::event::plan::{PlanCreated, PlanEvent as Happened, PlanStep};
use crate::conversation::message::{Item, UserText};
use crate::prompt::with_given;
use crate::tools::TASK;

use super::course::{Course, Spot};
use super::machine::{FlowFailure, FlowJob};

/// The result of a job: its value with a line for a person, or the reason for its failure.
pub(super) type Worked = Result<(Value, String), String>;

impl GivenOutcome {
    /// Turns an outcome into the result of a step.
    pub(super) fn into_result(self) -> Worked {
        if self.end.has_result() { Ok((self.value, self.summary)) } else { Err(self.summary) }
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
    ) -> Result<Worked, TurnStop> {
        let with = &job.arguments.with;
        match job.step.works().next() {
            None => Ok(Err("it does nothing".to_owned())),
            Some(StepWork::Tool(_) | StepWork::Agent(_)) => match self.call_of(job, course.begun) {
                None => Ok(Err("it does nothing".to_owned())),
                Some(call) => Ok(self.run_given(call).await?.into_result()),
            },
            Some(StepWork::Prompt(_)) => {
                let key = (spot.flow.name.clone(), job.step.id.clone());
                match course.orchestration.flows.prompts.get(&key) {
                    None => Ok(Err("its prompt is missing".to_owned())),
                    Some(asked) => self.ask_prompt(asked, job, name).await,
                }
            }
            Some(StepWork::Role(role)) => {
                let orchestration = course.orchestration;
                match role {
                    FlowRole::Router => {
                        match self.ask_router(orchestration, &read_text_value(with, "request")).await? {
                            Err(mistake) => Ok(Err(format!("the router gave no usable reply: {mistake}"))),
                            Ok((reply, route)) => {
                                let (kind, chosen) = route.describe_route();
                                let mut value = json!(reply);
                                value["kind"] = kind.into();
                                value["name"] = chosen.into();
                                Ok(Ok((value, format!("{kind} {chosen}"))))
                            }
                        }
                    }
                    FlowRole::Planner => {
                        let (request, known) = (read_text_value(with, "request"), read_text_value(with, "known"));
                        let known = Some(known).filter(|known| !known.is_empty());
                        match self.make_plan(orchestration, &PlanProgress::new(), &request, known).await? {
                            PlannerOutcome::Stuck(why) => Ok(Err(why)),
                            PlannerOutcome::Plan(PlanCreated { analysis, steps, .. }) => {
                                let summary = format!("{} steps", steps.len());
                                Ok(Ok((json!({ "analysis": analysis, "plan": steps }), summary)))
                            }
                        }
                    }
                    FlowRole::Executor => self.execute_plan(course, with).await,
                    FlowRole::Reflector => self.judge(course, with).await,
                }
            }
            Some(StepWork::Flow(called)) => {
                let Some(flow) = course.orchestration.flows.all.get(called) else {
                    return Ok(Err(format!("there is no flow `{called}`")));
                };
                let inputs = match flow.inputs_of(with) {
                    Ok(inputs) => inputs,
                    Err(why) => return Ok(Err(why)),
                };
                let inside = Spot { flow, prefix: format!("{name}/") };
                // A flow runs lists of steps, and a list runs flows.
                let ran = Box::pin(self.run_flow(course, inside, &inputs)).await?;
                Ok(match ran {
                    Ok(given) => Ok((given.outputs.unwrap_or(given.answer), String::new())),
                    Err(FlowFailure { step, why }) => Err(format!("its step `{step}`: {why}")),
                })
            }
            Some(StepWork::Group(steps)) => {
                let inside = Spot { flow: spot.flow, prefix: format!("{name}/") };
                let ran = self.run_list(course, inside, steps, job.scope.clone()).await?;
                Ok(match ran {
                    Ok((results, _)) => Ok((Value::Object(results), String::new())),
                    Err(FlowFailure { step, why }) => Err(format!("its step `{step}`: {why}")),
                })
            }
        }
    }

    /// Asks a model with the prompt of a step. Under a schema a reply that does not match goes back once.
    async fn ask_prompt(&mut self, asked: &FlowPrompt, job: &FlowJob<'_>, name: &str) -> Result<Worked, TurnStop> {
        let prompt = asked.prompt.of_session(self.conversation.session.id());
        let run_id = self.run.emitter.run_id();
        let context = self.agent.briefing.context_of(prompt, self.conversation, &run_id);
        let text = match prompt.render(&with_given(&context, &job.arguments.with)) {
            Ok(text) => text,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let schema = job.step.schema.clone().map(|schema| Arc::new(Value::Object(schema)));
        let who = (&asked.model, schema.clone());
        let first = self.ask_as(name, who.clone(), Vec::new(), text.clone()).await?;
        let reply = self.agent.redactor.redact(&first.text()).into_owned();
        if first.was_cut() {
            return Ok(Err("the reply was cut at the output limit".to_owned()));
        }
        let Some(schema) = schema else {
            let summary = text::one_line(&reply, 120);
            return Ok(Ok((Value::String(reply), summary)));
        };
        let validator = match Validator::new(&schema) {
            Ok(validator) => validator,
            Err(why) => return Ok(Err(format!("`schema` is not a valid JSON Schema: {why}"))),
        };
        let mistake = match reply::read_reply::<Value>(&reply, &validator) {
            Ok(read) => return Ok(Ok((read.value, String::new()))),
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
        Ok(read.map(|read| (read.value, String::new())).map_err(|why| format!("no usable reply: {why}")))
    }

    /// Carries out a plan, and returns the outcome of each step.
    async fn execute_plan(
        &mut self,
        course: &mut Course<'_>,
        with: &Map<String, Value>,
    ) -> Result<Worked, TurnStop> {
        let reply = match plan_of(with) {
            Ok(reply) => reply,
            Err(why) => return Ok(Err(why)),
        };
        let orchestration = course.orchestration;
        let steps = match graph::check_plan(&reply, &orchestration.choices(self.agent)) {
            Ok(steps) => steps,
            Err(mistakes) => return Ok(Err(mistakes.join(" "))),
        };
        let mut machine = PlanProgress::replay(self.conversation.session.progress());
        let goes_on = course.take_resumed() && machine.is_unfinished() && machine.steps() == steps.as_slice();
        if !goes_on {
            let (revision, kept) = (machine.next_revision(), Vec::new());
            let request = read_text_value(with, "request");
            let analysis = reply.analysis;
            let created = PlanCreated { request, revision, analysis, steps, kept };
            self.note(&mut machine, Happened::Planned(created))?;
        }
        self.run_steps(orchestration, &mut machine).await?;
        let told = |step: &PlanStep| {
            let mut told = json!(step);
            if let Some(ended) = machine.list_ended().find(|ended| ended.step_id == step.step_id) {
                told["status"] = json!(ended.status);
                told["summary"] = ended.summary.as_str().into();
                told["result"] = ended.result.clone();
                told["checked"] = json!(ended.check);
            }
            told
        };
        let results: Vec<Value> = machine.steps().iter().map(told).collect();
        let (all, failed) = (results.len(), machine.find_failed().len());
        Ok(Ok((Value::Array(results), format!("{} of {all} steps done", all - failed))))
    }

    /// Asks for a judgement of results. The decision follows from the scores and the facts about the plan.
    async fn judge(&mut self, course: &mut Course<'_>, with: &Map<String, Value>) -> Result<Worked, TurnStop> {
        let retries = with.get("retries").and_then(Value::as_u64).and_then(|retries| u32::try_from(retries).ok());
        let machine = PlanProgress::replay(self.conversation.session.progress());
        let is_of_it = plan_of(with).is_ok_and(|reply| same_numbers(&reply.plan, machine.steps()));
        let known = if is_of_it { machine.facts() } else { PlanFacts::default() };
        let facts = PlanFacts { retries: retries.unwrap_or_default(), ..known };
        let mut variables = Map::new();
        variables.insert("user_request".to_owned(), read_text_value(with, "request").into());
        variables.insert("plan".to_owned(), with.get("plan").cloned().unwrap_or_default());
        variables.insert("results".to_owned(), with.get("results").cloned().unwrap_or_default());
        variables.insert("retry_count".to_owned(), facts.retries.into());
        let reflector = &course.orchestration.roles.reflector;
        let reply = match self.ask_role(reflector, variables, Ok::<ReflectorReply, String>).await? {
            Ok(reply) => reply,
            Err(mistake) => return Ok(Err(format!("the reflector gave no usable judgement: {mistake}"))),
        };
        let decision = verdict::decide_step(&reply, &facts);
        let mut value = json!(reply);
        value["decision"] = json!(decision);
        let summary = value["decision"]["action"].as_str().unwrap_or_default().to_owned();
        Ok(Ok((value, summary)))
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
    match with.get(key) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(data) => data.to_string(),
    }
}
