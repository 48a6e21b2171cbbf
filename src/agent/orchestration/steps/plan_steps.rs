//! The steps of a plan: which of them begin, and how each ends. Their machine is `progress`.

use std::sync::Arc;
use std::time::Instant;

use crate::agent::call::{CallEnd, CallLane, GivenOutcome};
use crate::agent::orchestration::progress::{PlanAction, PlanProgress};
use crate::agent::orchestration::role::StepFailure;
use crate::agent::turn::{Turn, TurnStop};
use crate::config::ApprovalMode;
use crate::conversation::event::plan::{
    PlanEvent as Happened, PlanStep, StepCheck, StepFinished, StepStarted, StepStatus,
};

use super::{IN_DOUBT, ListContent, PlanList, StartedStep, StepRun, StepScheduler, StepTag};

impl<'c, 't: 'c> Turn<'t> {
    /// Begins and ends the steps of a plan that can begin and end now. Returns true if there were any.
    pub(super) async fn advance_plan(
        &mut self,
        run: &mut StepRun<'c>,
        at: usize,
        scheduler: &mut StepScheduler<'c>,
    ) -> Result<bool, TurnStop> {
        let ListContent::Plan(plan) = &mut run.lists[at].content else { return Ok(false) };
        if scheduler.is_idle() && !plan.unchecked.is_empty() {
            for (begun, outcome) in std::mem::take(&mut plan.unchecked) {
                let ended = Box::pin(self.end_step(&mut plan.progress, begun, outcome));
                scheduler.meanwhile(ended).await?;
            }
            return Ok(true);
        }
        match plan.progress.next() {
            PlanAction::Skip(steps) => {
                for step in steps {
                    let why = "a step that it needs failed".to_owned();
                    let attempt = plan.progress.next_attempt(step);
                    self.end_without_call(&mut plan.progress, step, attempt, StepStatus::Skipped, why)?;
                }
                Ok(true)
            }
            // A running helper may ask a person too.
            PlanAction::Doubt(_) if !scheduler.is_idle() => Ok(false),
            PlanAction::Doubt(steps) => {
                for step in steps {
                    scheduler.meanwhile(self.settle_doubt(&mut plan.progress, step)).await?;
                }
                Ok(true)
            }
            PlanAction::Start(ready) if plan.unchecked.is_empty() => {
                self.begin_plan_steps(plan, at, &ready, scheduler).await
            }
            _ => Ok(false),
        }
    }

    /// Begins the steps that can begin now. Returns false if all ready steps must wait for running ones.
    async fn begin_plan_steps(
        &mut self,
        plan: &mut PlanList,
        list: usize,
        ready: &[u32],
        scheduler: &mut StepScheduler<'c>,
    ) -> Result<bool, TurnStop> {
        let machine = &mut plan.progress;
        let mut has_begun = false;
        for &id in ready {
            if !scheduler.has_room() {
                break;
            }
            let Some(step) = machine.step(id).cloned() else { continue };
            let attempt = machine.next_attempt(id);
            let call = match plan.filled.remove(&id) {
                Some(call) => call,
                None => {
                    let filled = scheduler.meanwhile(Box::pin(self.job(machine, &step))).await;
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
            if !scheduler.admits(lane) || (has_begun && lane == CallLane::Alone) {
                plan.filled.insert(id, call);
                continue;
            }
            self.start(machine, &step)?;
            if let Some(path) = step.replaces.as_ref().filter(|_| machine.plan().is_some_and(|plan| plan.approved))
            {
                self.learn_file(path, &self.conversation.shared.files);
            }
            let begun = StartedStep { step, attempt, at: Instant::now() };
            let prepared = self.begin_given(call)?;
            self.begin_call(scheduler, StepTag::Plan { list, begun }, prepared).await?;
            if lane == CallLane::Alone {
                return Ok(true);
            }
            has_begun = true;
        }
        Ok(has_begun)
    }

    /// Ends a step whose call has ended, unless its check has to wait.
    pub(super) async fn land_plan_step(
        &mut self,
        run: &mut StepRun<'_>,
        list: usize,
        begun: StartedStep,
        outcome: GivenOutcome,
    ) -> Result<(), TurnStop> {
        let ListContent::Plan(plan) = &mut run.lists[list].content else { return Ok(()) };
        if matches!(begun.step.check, Some(StepCheck::Command(_))) {
            plan.unchecked.push((begun, outcome));
            return Ok(());
        }
        Box::pin(self.end_step(&mut plan.progress, begun, outcome)).await
    }

    /// Records the end of a step, after its check.
    async fn end_step(
        &mut self,
        machine: &mut PlanProgress,
        StartedStep { step, attempt, at }: StartedStep,
        GivenOutcome { end, summary, value }: GivenOutcome,
    ) -> Result<(), TurnStop> {
        let check = match &step.check {
            Some(check) if end.is_done() => Some(self.check_step(machine, &step, attempt, check, &value).await?),
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
        let words = format!("Step {id} may have run in part: {} · {}", step.description, step.tool_name);
        if self.may_repeat(&step.tool_name) || self.confirm(&format!("{words}. Run it again?")).await {
            machine.allow_again(id);
            return Ok(());
        }
        let attempt = machine.next_attempt(id);
        self.end_without_call(machine, id, attempt, StepStatus::Failed, IN_DOUBT.to_owned())
    }

    /// True if a call of this tool that ran in part may be repeated.
    pub(super) fn may_repeat(&self, tool: &str) -> bool {
        self.agent.tools.get(tool).map(|found| Arc::clone(&found.tool)).is_some_and(|tool| tool.idempotent())
    }

    /// Asks a person a question of yes or no; no if nobody is there, or nobody may be asked.
    pub(super) async fn confirm(&mut self, question: &str) -> bool {
        if !self.agent.approver.present() || self.agent.approval == ApprovalMode::Never {
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
        let finished = StepFinished { step_id, attempt, status, summary, ..StepFinished::default() };
        self.note(machine, Happened::Finished(finished))
    }
}
