//! Mode `route`: a router picks the destination of a request. A single tool call is made at once; an agent's report is
//! the answer; work that needs thought between calls goes to the ordinary loop, and work that can be planned to the
//! planner.

use std::sync::Arc;

use futures_util::future::FutureExt;
use serde_json::{Value, json};

use crate::agent::turn::{Turn, TurnEnd, TurnStop};
use crate::conversation::event::EventKind;
use crate::conversation::event::plan::{PlanStep, Routed};
use crate::conversation::message::{FinishReason, Step, UserText};

use super::graph::AGENT;
use super::progress::PlanProgress;
use super::reply::RouteReply;
use super::role::{RoleQuestion, StepFailure};
use super::route::{self, Route};

/// The message to the model when the router's call was made.
const ANSWER: &str =
    "The call above was made for the request. Answer the request now, from its result. Call no tools.";

impl<'c, 't: 'c> Turn<'t> {
    /// Carries out a request by the router's choice.
    pub(in crate::agent) async fn by_route(&mut self, said: &str) -> Result<TurnEnd, TurnStop> {
        let mut request = said.to_owned();
        loop {
            self.heed_in(&mut request)?;
            let question = match self.pick(&request).await? {
                Route::Direct => return self.converse().await,
                Route::Plan => return self.by_plan(PlanProgress::default(), request).await,
                Route::Tool { name, input } => {
                    let step = one_step(name, input, &request);
                    return self.by_one_call(&step).await;
                }
                Route::Agent { name, input } => {
                    let prompt = input["prompt"].as_str().unwrap_or(&request);
                    let input = json!({ "prompt": prompt });
                    let step = one_step(format!("{AGENT}{name}"), input, &request);
                    return self.by_one_call(&step).await;
                }
                Route::Ask { question } | Route::Unknown { error: question } => question,
                Route::Flow { name, input } => {
                    return Box::pin(self.by_chosen_flow(&name, &input, said)).await;
                }
            };
            match self.ask_person(&question).await? {
                Some(words) => {
                    self.say(UserText::by_person(words.clone()))?;
                    request = format!("{request}\n\n{words}");
                }
                None => return self.give_back(&mut PlanProgress::default(), question).await,
            }
        }
    }

    /// Asks the router. If its reply is unusable, the person is asked.
    async fn pick(&mut self, request: &str) -> Result<Route, TurnStop> {
        let picked = StepFailure::settle(self.ask_router(request).await)?;
        Ok(picked.map_or_else(|question| Route::Ask { question }, |(_, route)| route))
    }

    /// Asks the router, and reports its choice.
    async fn ask_router(&mut self, request: &str) -> Result<(RouteReply, Route), StepFailure> {
        let routed = self.prepare_router(request)?.await;
        self.record_beside();
        routed
    }

    /// Prepares the question to the router. Whoever asks it reports its choice.
    pub(super) fn prepare_router(&mut self, request: &str) -> RoleQuestion<'c, (RouteReply, Route)> {
        let mut variables = self.agent.candidates(request);
        let flows = &self.agent.orchestration.flows;
        variables["flows"] = flows.list_flows();
        let role = &self.agent.orchestration.roles()?.router;
        let asking = self.prepare_role(role, variables)?;
        let choices = self.agent.choices();
        let (emitter, request) = (Arc::clone(&self.run.emitter), request.to_owned());
        let asked = async move {
            let accept = |reply: RouteReply| match route::choose_route(&reply, &choices) {
                Route::Unknown { error } => Err(error),
                Route::Flow { name, input } => flows.check_inputs(&name, &input, &request).map(|()| {
                    let route = Route::Flow { name, input };
                    (reply, route)
                }),
                route => Ok((reply, route)),
            };
            let routed = asking.ask_role(role, accept).await;
            let (reply, route) = routed.map_err(|failure| failure.explain("the router gave no usable reply: "))?;
            let (kind, name) = route.describe_route();
            emitter.emit(EventKind::RouteDecided(Routed {
                kind: kind.to_owned(),
                name: name.to_owned(),
                reasoning: reply.reasoning.clone(),
                confidence: reply.confidence,
            }))?;
            Ok((reply, route))
        };
        Ok(asked.boxed())
    }

    /// Makes one call, and answers from its result. The report of an agent is the answer.
    async fn by_one_call(&mut self, step: &PlanStep) -> Result<TurnEnd, TurnStop> {
        let machine = PlanProgress::default();
        let job = match StepFailure::settle(self.job(&machine, step).await)? {
            Ok(job) => job,
            Err(why) => return self.give_back(&mut PlanProgress::default(), why).await,
        };
        let outcome = self.run_given(job).await?;
        match outcome.value["report"].as_str() {
            Some(report) if step.tool_name.starts_with(AGENT) && outcome.end.is_done() => {
                self.keep_reply(Step::of_text(report.to_owned(), FinishReason::Stop))?;
                self.answer(report.to_owned()).await
            }
            // What the router chose did not do it: the model sees why, and goes on.
            _ if !outcome.end.is_done() => self.converse().await,
            _ => self.conclude(ANSWER, &machine).await,
        }
    }
}

fn one_step(tool_name: String, tool_input: Value, request: &str) -> PlanStep {
    PlanStep { step_id: 1, description: request.to_owned(), tool_name, tool_input, ..PlanStep::default() }
}
