//! Mode `plan`: a planner lists steps, a person may review them, the steps run, a reflector judges, and the model
//! answers from the results. An interrupted plan waits: see `proposal`.

use futures_util::future::FutureExt;
use serde_json::{Value, json};

use jiff::Timestamp;

use crate::agent::request::purpose::Purpose;
use crate::agent::turn::{Turn, TurnEnd, TurnStop};
use crate::conversation::event::EventKind;
use crate::conversation::event::plan::{PlanCreated, PlanEvent as Happened, PlanStep, StepFinished, StepStatus};
use crate::conversation::message::{FinishReason, Step, UserText};

use super::graph::{self, MOST_STEPS};
use super::progress::{self, PlanAction, PlanProgress};
use super::reply::PlanReply;
use super::role::{RoleQuestion, StepFailure};
use super::shown::RoleResultSize;

/// The message to the model when a plan was accepted.
const ANSWER: &str = "The steps of the plan above are done, and their results were judged to meet the request. Answer the \
                      request now, from these results alone. Call no tools.";

impl<'c, 't: 'c> Turn<'t> {
    /// Carries out a request by a plan.
    pub(in crate::agent) async fn by_plan(
        &mut self,
        mut machine: PlanProgress,
        mut request: String,
    ) -> Result<TurnEnd, TurnStop> {
        // The person's wish for the next plan.
        let mut wanted: Option<String> = None;
        loop {
            let next = machine.next();
            if matches!(next, PlanAction::Plan { .. } | PlanAction::Reflect) {
                self.heed_in(&mut request)?;
            }
            let stuck = match next {
                PlanAction::Plan { modification } => {
                    let modification = wanted.take().or(modification);
                    let made = self.make_plan(&machine, &request, modification).await;
                    match StepFailure::settle(made)? {
                        Err(why) => why,
                        Ok(created) => match self.review(created).await? {
                            Ok(created) => {
                                self.note(&mut machine, Happened::Planned(created))?;
                                continue;
                            }
                            Err(why) if why.is_empty() => {
                                self.close_plan(&mut machine, "refused")?;
                                return self.not_carried_out();
                            }
                            Err(why) => {
                                wanted = Some(why);
                                continue;
                            }
                        },
                    }
                }
                PlanAction::Start(_) | PlanAction::Doubt(_) | PlanAction::Skip(_) | PlanAction::Wait => {
                    self.run_plan(&mut machine).await?;
                    continue;
                }
                PlanAction::Reflect => match StepFailure::settle(self.reflect(&mut machine, &request).await)? {
                    Err(why) => why,
                    Ok(()) => continue,
                },
                PlanAction::Answer => {
                    let end = self.conclude(ANSWER, &machine).await?;
                    self.close_plan(&mut machine, "answered")?;
                    return Ok(end);
                }
                PlanAction::Escalate { why } => why,
                PlanAction::Over => return self.conclude(ANSWER, &machine).await,
            };
            match self.ask_person(&stuck).await? {
                Some(words) => {
                    self.close_plan(&mut machine, "the person gave new directions")?;
                    request = format!("{request}\n\n{words}");
                    self.say(UserText::by_person(words))?;
                    machine = PlanProgress::default();
                }
                None => return self.give_back(&mut machine, stuck).await,
            }
        }
    }

    /// Asks the planner for a plan, the first one or a better one. Without a plan, the reason may be a question.
    async fn make_plan(
        &mut self,
        machine: &PlanProgress,
        request: &str,
        modification: Option<String>,
    ) -> Result<PlanCreated, StepFailure> {
        let planned = self.prepare_planner(machine, request, modification)?.await;
        self.record_beside();
        let (analysis, steps) = planned?;
        let (kept, revision) = (machine.find_kept(&steps), machine.next_revision());
        let request = request.to_owned();
        Ok(PlanCreated { request, revision, analysis, steps, kept, ..PlanCreated::default() })
    }

    /// Prepares the question to the planner: the analysis and the steps of a plan.
    pub(super) fn prepare_planner(
        &mut self,
        machine: &PlanProgress,
        request: &str,
        modification: Option<String>,
    ) -> RoleQuestion<'c, (String, Vec<PlanStep>)> {
        let mut variables = self.agent.candidates(request);
        variables["known"] = self.list_facts(machine, modification.as_deref()).into();
        variables["max_steps"] = MOST_STEPS.into();
        let role = &self.agent.orchestration.roles()?.planner;
        let asking = self.prepare_role(role, variables)?;
        let (choices, known) = (self.agent.choices(), machine.steps().to_vec());
        let asked = async move {
            let accept = |reply: PlanReply| {
                if reply.plan.is_empty() {
                    return Ok((reply.analysis, Vec::new()));
                }
                let steps = graph::check_plan(&reply, &choices).map_err(|mistakes| mistakes.join("\n"))?;
                if progress::are_same_steps(&known, &steps) {
                    return Err(
                        "This is the plan that was not good enough: nothing in it would run anew.".to_owned()
                    );
                }
                Ok((reply.analysis, steps))
            };
            let made = asking.ask_role(role, accept).await;
            let (analysis, steps) =
                made.map_err(|failure| failure.explain("the planner made no plan that can run:\n"))?;
            if steps.is_empty() { Err(analysis.into()) } else { Ok((analysis, steps)) }
        };
        Ok(asked.boxed())
    }

    /// The facts for the planner before a new plan; empty before the first.
    fn list_facts(&self, machine: &PlanProgress, modification: Option<&str>) -> String {
        if modification.is_none() && machine.steps().is_empty() {
            return String::new();
        }
        let mut known = json!({ "steps": self.list_outcomes(machine, true) });
        if let Some(modification) = modification {
            known["what_the_new_plan_needs"] = modification.into();
        }
        known.to_string()
    }

    /// The steps of a plan with their outcomes, for a role that sees what each was given beside them or not.
    pub(super) fn list_outcomes(&self, machine: &PlanProgress, with_inputs: bool) -> Value {
        let shown = RoleResultSize::share_among(self.agent.result_bytes(), machine.steps().len());
        let told = |step: &PlanStep| {
            let mut told = json!({ "step_id": step.step_id });
            if with_inputs {
                told = json!(step);
            }
            match machine.find_end(step.step_id) {
                None => told["status"] = "not run".into(),
                Some(StepFinished { status, summary, check, result, .. }) => {
                    told["status"] = json!(status);
                    // Further lines are for the person: a diff of what the plan holds anyway.
                    let first = summary.lines().next().unwrap_or_default();
                    told["summary"] = if *status == StepStatus::Ok { first } else { summary }.into();
                    told["result"] = shown.show_value(result);
                    if let Some(check) = check {
                        told["checked"] = json!(check);
                    }
                }
            }
            told
        };
        machine.steps().iter().map(told).collect()
    }

    /// Records an event of a plan: on disk, then in memory, then as an event.
    pub(super) fn note(&mut self, machine: &mut PlanProgress, happened: Happened) -> Result<(), TurnStop> {
        let event = match &happened {
            Happened::Planned(plan) => Some(EventKind::PlanCreated(plan.clone())),
            Happened::Started(step) => Some(EventKind::StepStarted(step.clone())),
            // Its result is in the events of the call.
            Happened::Finished(step) => {
                Some(EventKind::StepFinished(StepFinished { result: Value::Null, ..step.clone() }))
            }
            Happened::Reflected(reflection) => Some(EventKind::Reflection(reflection.clone())),
            Happened::Begun { .. } | Happened::Closed { .. } => None,
        };
        self.plans += u32::from(matches!(happened, Happened::Planned(_)));
        machine.apply(&happened);
        self.conversation.session.note_progress(happened, Timestamp::now()).map_err(anyhow::Error::from)?;
        Ok(event.map_or(Ok(()), |event| self.run.emitter.emit(event))?)
    }

    pub(super) fn close_plan(&mut self, machine: &mut PlanProgress, why: &str) -> Result<(), TurnStop> {
        self.note(machine, Happened::Closed { why: why.to_owned() })
    }

    /// Asks the model for the answer, without tools.
    pub(super) async fn conclude(&mut self, note: &str, machine: &PlanProgress) -> Result<TurnEnd, TurnStop> {
        if let Some(limit) = self.reached_limit() {
            return Err(TurnStop::Limit(limit));
        }
        self.say(UserText::by_program(note))?;
        let (_, step) = self.step(Purpose::Closing).await?;
        self.settle_calls("this reply had to be the answer alone")?;
        if step.text().trim().is_empty() {
            let found = in_code(machine);
            self.keep_reply(Step::of_text(found.clone(), FinishReason::Interrupted))?;
            return self.answer(found).await;
        }
        self.stands(&step, step.text()).await
    }

    /// Asks the person how to continue a task that is stuck; `None` without an answer.
    pub(super) async fn ask_person(&mut self, why: &str) -> Result<Option<String>, TurnStop> {
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
    pub(super) async fn give_back(
        &mut self,
        machine: &mut PlanProgress,
        why: String,
    ) -> Result<TurnEnd, TurnStop> {
        if machine.steps().is_empty() {
            return self.no_result(why);
        }
        let note = format!(
            "The plan ends here without success: {why}\nSay what was found, what is missing, and what the user can decide. \
             Call no tools."
        );
        let concluded = self.conclude(&note, machine).await;
        self.close_plan(machine, "given back")?;
        let answer = match concluded {
            Ok(end) => end.answer,
            Err(TurnStop::Model(_) | TurnStop::ContextFull(_) | TurnStop::SchemaMismatch(_)) => in_code(machine),
            Err(stop) => return Err(stop),
        };
        Ok(TurnEnd { stop: TurnStop::Escalated(why), answer })
    }

    /// Ends a turn that has only a reason to show.
    pub(super) fn no_result(&mut self, why: String) -> Result<TurnEnd, TurnStop> {
        self.keep_reply(Step::of_text(why.clone(), FinishReason::Stop))?;
        Ok(TurnEnd { stop: TurnStop::Escalated(why.clone()), answer: why })
    }

    /// Ends a turn whose plan the person refused.
    fn not_carried_out(&mut self) -> Result<TurnEnd, TurnStop> {
        let answer = "The plan was refused; nothing of it was carried out.".to_owned();
        self.keep_reply(Step::of_text(answer.clone(), FinishReason::Stop))?;
        Ok(TurnEnd { stop: TurnStop::Answered, answer })
    }
}

/// Lists the results without a model.
fn in_code(machine: &PlanProgress) -> String {
    let line = |step: &PlanStep| match machine.find_end(step.step_id) {
        None => format!("{}. {}: not run", step.step_id, step.description),
        Some(ended) => format!("{}. {}: {}", step.step_id, step.description, ended.summary),
    };
    machine.steps().iter().map(line).collect::<Vec<_>>().join("\n")
}
