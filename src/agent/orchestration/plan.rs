//! Mode `plan`: a planner lists steps, a person may review them, the steps run, a reflector judges, and the model
//! answers from the results. The next message of a session continues an interrupted plan.

use serde_json::{Map, Value, json};

use jiff::Timestamp;

use crate::agent::Agent;
use crate::agent::purpose::Purpose;
use crate::agent::turn::{Stop, Turn, TurnEnd};
use crate::conversation::event::EventKind;
use crate::conversation::event::plan::{PlanCreated, PlanStep, Progress as Happened, StepFinished};
use crate::conversation::message::{FinishReason, Said, Step};

use super::Orchestration;
use super::graph::{self, MOST_STEPS};
use super::progress::{Next, Progress};
use super::reply::PlanReply;
use super::review::Reviewed;
use super::shown::Shown;

/// The message to the model when a plan was accepted.
const ANSWER: &str = "The steps of the plan above are done, and their results were judged to meet the request. Answer the \
                      request now, from these results alone. Call no tools.";

/// The result of asking the planner.
pub(super) enum Planned {
    Plan(PlanCreated),
    /// No plan can be made: the reason, or a question.
    Stuck(String),
}

impl Turn<'_> {
    /// Carries out a request by a plan.
    pub(in crate::agent) async fn by_plan(
        &mut self,
        orchestration: &Orchestration,
        said: &str,
    ) -> Result<TurnEnd, Stop> {
        let mut machine = Progress::replay(self.conversation.session.progress());
        let mut request = said.to_owned();
        match machine.plan().filter(|_| machine.is_unfinished()) {
            Some(plan) => {
                request = format!("{}\n\n{said}", plan.request);
                // Observers learn about the plan and the steps that are already done.
                let kept =
                    plan.steps.iter().map(|step| step.step_id).filter(|step| machine.succeeded(*step)).collect();
                self.run.emitter.emit(EventKind::PlanCreated(PlanCreated { kept, ..plan.clone() }))?;
            }
            None => machine = Progress::new(),
        }
        // The person's wish for the next plan.
        let mut wanted: Option<String> = None;
        loop {
            let next = machine.next();
            if matches!(next, Next::Plan { .. } | Next::Reflect) {
                self.heed_in(&mut request)?;
            }
            let stuck = match next {
                Next::Plan { modification } => {
                    let modification = wanted.take().or(modification);
                    match self.make_plan(orchestration, &machine, &request, modification).await? {
                        Planned::Stuck(why) => why,
                        Planned::Plan(created) => match self.review(orchestration, created).await? {
                            Reviewed::Run(created) => {
                                self.note(&mut machine, Happened::Planned(created))?;
                                continue;
                            }
                            Reviewed::Refused(why) if why.is_empty() => {
                                self.close_plan(&mut machine, "refused")?;
                                return self.not_carried_out();
                            }
                            Reviewed::Refused(why) => {
                                wanted = Some(why);
                                continue;
                            }
                        },
                    }
                }
                Next::Start(_) | Next::Skip(_) | Next::Wait => {
                    self.run_steps(orchestration, &mut machine).await?;
                    continue;
                }
                Next::Reflect => match self.reflect(orchestration, &mut machine, &request).await? {
                    Some(why) => why,
                    None => continue,
                },
                Next::Answer => {
                    let end = self.conclude(ANSWER, &machine).await?;
                    self.close_plan(&mut machine, "answered")?;
                    return Ok(end);
                }
                Next::Escalate { why } => why,
                Next::Over => return self.conclude(ANSWER, &machine).await,
            };
            match self.ask_person(&stuck).await? {
                Some(words) => {
                    self.close_plan(&mut machine, "the person gave new directions")?;
                    request = format!("{request}\n\n{words}");
                    self.say(Said::by_person(words))?;
                    machine = Progress::new();
                }
                None => return self.give_back(&mut machine, stuck).await,
            }
        }
    }

    /// Asks the planner for a plan, the first one or a better one.
    pub(super) async fn make_plan(
        &mut self,
        orchestration: &Orchestration,
        machine: &Progress,
        request: &str,
        modification: Option<String>,
    ) -> Result<Planned, Stop> {
        let known = self.known(machine, modification.as_deref());
        let variables = planner_variables(self.agent, orchestration, request, known);
        let choices = orchestration.choices(self.agent);
        let accept = |reply: PlanReply| {
            if reply.plan.is_empty() {
                return Ok((reply.analysis, Vec::new()));
            }
            let steps = graph::check(&reply, &choices).map_err(|mistakes| mistakes.join("\n"))?;
            Ok((reply.analysis, steps))
        };
        Ok(match self.ask_role(&orchestration.roles.planner, variables, accept).await? {
            Ok((analysis, steps)) if steps.is_empty() => Planned::Stuck(analysis),
            Ok((analysis, steps)) => {
                let kept = machine.kept(&steps);
                let revision = machine.next_revision();
                Planned::Plan(PlanCreated { request: request.to_owned(), revision, analysis, steps, kept })
            }
            Err(mistakes) => Planned::Stuck(format!("the planner made no plan that can run:\n{mistakes}")),
        })
    }

    /// The facts for the planner before a new plan; empty before the first.
    fn known(&self, machine: &Progress, modification: Option<&str>) -> String {
        if modification.is_none() && machine.steps().is_empty() {
            return String::new();
        }
        let mut known = json!({ "steps": self.told(machine) });
        if let Some(modification) = modification {
            known["what_the_new_plan_needs"] = modification.into();
        }
        known.to_string()
    }

    /// The steps of a plan with their outcomes, for a role.
    pub(super) fn told(&self, machine: &Progress) -> Value {
        let shown = Shown::among(self.agent.result_bytes(), machine.steps().len());
        let told = |step: &PlanStep| {
            let mut told = json!({
                "step_id": step.step_id, "description": step.description, "tool_name": step.tool_name,
                "tool_input": step.tool_input,
            });
            match ended(machine, step.step_id) {
                None => told["status"] = "not run".into(),
                Some(StepFinished { status, summary, check, result, .. }) => {
                    told["status"] = json!(status);
                    told["summary"] = summary.as_str().into();
                    told["result"] = shown.of(result);
                    if let Some(check) = check {
                        told["check"] = json!(check);
                    }
                }
            }
            told
        };
        machine.steps().iter().map(told).collect()
    }

    /// Records an event of a plan: on disk, then in memory, then as an event.
    pub(super) fn note(&mut self, machine: &mut Progress, happened: Happened) -> Result<(), Stop> {
        let event = match &happened {
            Happened::Planned(plan) => Some(EventKind::PlanCreated(plan.clone())),
            Happened::Started(step) => Some(EventKind::StepStarted(step.clone())),
            // Its result is in the events of the call.
            Happened::Finished(step) => {
                Some(EventKind::StepFinished(StepFinished { result: Value::Null, ..step.clone() }))
            }
            Happened::Reflected(reflection) => Some(EventKind::Reflection(reflection.clone())),
            Happened::Closed { .. } => None,
        };
        machine.apply(&happened);
        self.conversation.session.note_progress(happened, Timestamp::now()).map_err(anyhow::Error::from)?;
        Ok(event.map_or(Ok(()), |event| self.run.emitter.emit(event))?)
    }

    pub(super) fn close_plan(&mut self, machine: &mut Progress, why: &str) -> Result<(), Stop> {
        self.note(machine, Happened::Closed { why: why.to_owned() })
    }

    /// Asks the model for the answer, without tools.
    pub(super) async fn conclude(&mut self, note: &str, machine: &Progress) -> Result<TurnEnd, Stop> {
        if let Some(limit) = self.reached_limit() {
            return Err(Stop::Limit(limit));
        }
        self.say(Said::by_program(note))?;
        let (_, step) = self.step(Purpose::Closing).await?;
        self.settle_calls("this reply had to be the answer alone")?;
        if step.text().trim().is_empty() {
            let found = in_code(machine);
            self.keep_reply(Step::of_text(found.clone(), FinishReason::Interrupted))?;
            return self.answer(found).await;
        }
        self.stands(&step).await
    }

    /// Asks the person how to continue a task that is stuck; `None` without an answer.
    pub(super) async fn ask_person(&mut self, why: &str) -> Result<Option<String>, Stop> {
        if !self.agent.approver.present() {
            return Ok(None);
        }
        let question = format!("{why}\nHow should it go on? (nothing: stop here)");
        let answer = {
            let _pause = self.clock.pause();
            self.agent.approver.answer(&question, &[]).await
        };
        Ok(answer.filter(|words| !words.trim().is_empty()))
    }

    /// Ends a task that the roles could not finish, with the results so far and the reason.
    pub(super) async fn give_back(&mut self, machine: &mut Progress, why: String) -> Result<TurnEnd, Stop> {
        if machine.steps().is_empty() {
            self.keep_reply(Step::of_text(why.clone(), FinishReason::Stop))?;
            return Ok(TurnEnd { stop: Stop::Escalated(why.clone()), answer: why });
        }
        let note = format!(
            "The plan ends here without success: {why}\nSay what was found, what is missing, and what the user can decide. \
             Call no tools."
        );
        let concluded = self.conclude(&note, machine).await;
        self.close_plan(machine, "given back")?;
        let answer = match concluded {
            Ok(end) => end.answer,
            Err(Stop::Model(_) | Stop::ContextFull(_) | Stop::SchemaMismatch(_)) => in_code(machine),
            Err(stop) => return Err(stop),
        };
        Ok(TurnEnd { stop: Stop::Escalated(why), answer })
    }

    /// Ends a turn whose plan the person refused.
    fn not_carried_out(&mut self) -> Result<TurnEnd, Stop> {
        let answer = "The plan was refused; nothing of it was carried out.".to_owned();
        self.keep_reply(Step::of_text(answer.clone(), FinishReason::Stop))?;
        Ok(TurnEnd { stop: Stop::Answered, answer })
    }
}

/// The end of a step, if it has ended.
fn ended(machine: &Progress, step: u32) -> Option<&StepFinished> {
    machine.ended().find(|ended| ended.step_id == step)
}

/// The variables of the planner's prompt.
fn planner_variables(
    agent: &Agent,
    orchestration: &Orchestration,
    request: &str,
    known: String,
) -> Map<String, Value> {
    let mut variables = orchestration.candidates(agent, request);
    variables.insert("known".to_owned(), known.into());
    variables.insert("max_steps".to_owned(), MOST_STEPS.into());
    variables
}

/// Lists the results without a model.
fn in_code(machine: &Progress) -> String {
    let line = |step: &PlanStep| match ended(machine, step.step_id) {
        None => format!("{}. {}: not run", step.step_id, step.description),
        Some(ended) => format!("{}. {}: {}", step.step_id, step.description, ended.summary),
    };
    machine.steps().iter().map(line).collect::<Vec<_>>().join("\n")
}
