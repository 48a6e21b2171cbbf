//! Runs the steps of a plan as soon as the steps that they need are done, beside others where the scheduler of calls
//! allows it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::agent::call::{CallEnd, CallLane, CallScheduler, GivenCall, GivenOutcome, OutcomeOrder};
use crate::agent::turn::{Turn, TurnStop};
use crate::conversation::event::plan::{
    PlanEvent as Happened, PlanStep, StepCheck, StepFinished, StepStarted, StepStatus,
};

use super::Orchestration;
use super::progress::{PlanAction, PlanProgress};
use super::role::StepFailure;

/// A step with a running call.
#[derive(Debug, Clone)]
struct StartedStep {
    step: PlanStep,
    attempt: u32,
    at: Instant,
}

/// The steps that have begun and not ended.
struct OpenSteps<'c> {
    scheduler: CallScheduler<'c, StartedStep>,
    /// Calls filled in by the executor, kept until the step can begin.
    filled: BTreeMap<u32, GivenCall>,
    /// Steps whose check is a command, which runs alone.
    unchecked: Vec<(StartedStep, GivenOutcome)>,
}

impl<'t> Turn<'t> {
    /// Runs the steps of a plan until none can run any more.
    ///
    /// # Errors
    /// The turn cannot go on; a failed step is part of the plan's progress.
    pub(super) async fn run_steps(
        &mut self,
        orchestration: &Orchestration,
        machine: &mut PlanProgress,
    ) -> Result<(), TurnStop> {
        let services = self.plan_services(machine.steps().len());
        let mut field = OpenSteps {
            scheduler: CallScheduler::new(services, OutcomeOrder::AsEnded),
            filled: BTreeMap::new(),
            unchecked: Vec::new(),
        };
        loop {
            while field.scheduler.has_ended() {
                self.land_next(machine, &mut field).await?;
            }
            if field.scheduler.is_idle() {
                for (begun, outcome) in std::mem::take(&mut field.unchecked) {
                    self.end_step(machine, begun, outcome).await?;
                }
            }
            match machine.next() {
                PlanAction::Skip(steps) => {
                    for step in steps {
                        let (attempt, why) =
                            (machine.next_attempt(step), "a step that it needs failed".to_owned());
                        self.end_without_call(machine, step, attempt, StepStatus::Skipped, why)?;
                    }
                    continue;
                }
                PlanAction::Doubt(steps) => {
                    for step in steps {
                        self.settle_doubt(machine, step).await?;
                    }
                    continue;
                }
                PlanAction::Start(ready) if field.unchecked.is_empty() => {
                    if self.begin_some(orchestration, machine, &ready, &mut field).await? {
                        continue;
                    }
                }
                PlanAction::Start(_) | PlanAction::Wait => {}
                _ => return Ok(()),
            }
            self.land_next(machine, &mut field).await?;
        }
    }

    /// Begins the steps that can begin now. Returns false if all ready steps must wait for running ones.
    async fn begin_some(
        &mut self,
        orchestration: &Orchestration,
        machine: &mut PlanProgress,
        ready: &[u32],
        field: &mut OpenSteps<'t>,
    ) -> Result<bool, TurnStop> {
        let mut has_begun = false;
        for &id in ready {
            if !field.scheduler.has_room() {
                break;
            }
            let Some(step) = machine.step(id).cloned() else { continue };
            let attempt = machine.next_attempt(id);
            let call = match field.filled.remove(&id) {
                Some(call) => call,
                None => {
                    let filled = field.scheduler.meanwhile(self.job(orchestration, machine, &step)).await;
                    match StepFailure::settle(filled)? {
                        Ok(call) => call,
                        Err(why) => {
                            self.start(machine, &step)?;
                            self.end_without_call(machine, id, attempt, StepStatus::Failed, why)?;
                            return Ok(true);
                        }
                    }
                }
            };
            let lane = self.judge_given(&call).lane();
            if !field.scheduler.admits(lane) || (has_begun && lane == CallLane::Alone) {
                field.filled.insert(id, call);
                continue;
            }
            self.start(machine, &step)?;
            if let Some(path) = step.replaces.as_ref().filter(|_| machine.plan().is_some_and(|plan| plan.approved))
            {
                self.learn_file(path, &self.conversation.shared.files);
            }
            let begun = StartedStep { step, attempt, at: Instant::now() };
            let prepared = self.begin_given(call)?;
            self.begin_call(&mut field.scheduler, begun, prepared).await?;
            if lane == CallLane::Alone {
                return Ok(true);
            }
            has_begun = true;
        }
        Ok(has_begun)
    }

    /// Waits for a call that ends, if one runs, and answers it; ends its step unless its check has to wait.
    async fn land_next(&mut self, machine: &mut PlanProgress, field: &mut OpenSteps<'t>) -> Result<(), TurnStop> {
        let Some((begun, outcome)) = self.take_outcome(&mut field.scheduler).await? else { return Ok(()) };
        let outcome = self.answer_call(outcome, field.scheduler.limits())?;
        if matches!(begun.step.check, Some(StepCheck::Command(_))) {
            field.unchecked.push((begun, outcome));
            return Ok(());
        }
        self.end_step(machine, begun, outcome).await
    }

    /// Records the end of a step, after its check.
    async fn end_step(
        &mut self,
        machine: &mut PlanProgress,
        StartedStep { step, attempt, at }: StartedStep,
        GivenOutcome { end, summary, value }: GivenOutcome,
    ) -> Result<(), TurnStop> {
        let ok = end.is_done();
        let check = match &step.check {
            Some(check) if ok => Some(self.check_step(machine, &step, attempt, check, &value).await?),
            _ => None,
        };
        let status = match end {
            CallEnd::Done | CallEnd::Cut => StepStatus::Ok,
            CallEnd::Denied(_) => StepStatus::Denied,
            _ => StepStatus::Failed,
        };
        let duration_ms = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (step_id, cut, result) = (step.step_id, end == CallEnd::Cut, value);
        let finished =
            StepFinished { step_id, name: None, attempt, status, summary, check, duration_ms, cut, result };
        self.note(machine, Happened::Finished(finished))
    }

    /// Decides about a step that may have run in part: what only reads runs again, anything else by a person's yes.
    async fn settle_doubt(&mut self, machine: &mut PlanProgress, id: u32) -> Result<(), TurnStop> {
        let Some(step) = machine.step(id) else { return Ok(()) };
        let tool = self.agent.tools.get(&step.tool_name).map(|found| Arc::clone(&found.tool));
        let words = format!("Step {id} may have run in part: {} · {}", step.description, step.tool_name);
        if tool.is_some_and(|tool| tool.idempotent()) || self.confirm(&format!("{words}. Run it again?")).await {
            machine.allow_again(id);
            return Ok(());
        }
        let why =
            "it may have run in part before it was interrupted, and nothing repeats it without a person's yes";
        self.end_without_call(machine, id, machine.next_attempt(id), StepStatus::Failed, why.to_owned())
    }

    /// Asks a person a question of yes or no; no if nobody is there.
    pub(super) async fn confirm(&mut self, question: &str) -> bool {
        if !self.agent.approver.present() {
            return false;
        }
        let _pause = self.clock.pause();
        let answer = self.agent.approver.answer(question, &["yes".to_owned(), "no".to_owned()]).await;
        answer.is_some_and(|answer| ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
    }

    fn start(&mut self, machine: &mut PlanProgress, step: &PlanStep) -> Result<(), TurnStop> {
        let started = StepStarted {
            step_id: step.step_id,
            name: None,
            attempt: machine.next_attempt(step.step_id),
            tool_name: step.tool_name.clone(),
            description: step.description.clone(),
        };
        self.note(machine, Happened::Started(started))
    }

    fn end_without_call(
        &mut self,
        machine: &mut PlanProgress,
        step_id: u32,
        attempt: u32,
        status: StepStatus,
        summary: String,
    ) -> Result<(), TurnStop> {
        let (check, duration_ms, cut, result) = (None, 0, false, serde_json::Value::Null);
        let finished =
            StepFinished { step_id, name: None, attempt, status, summary, check, duration_ms, cut, result };
        self.note(machine, Happened::Finished(finished))
    }
}
