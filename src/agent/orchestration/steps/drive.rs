//! Runs lists of steps: begins what is ready, takes what ends, until nothing in them can run any more.

use crate::agent::call::{CallEnd, CallScheduler, OutcomeOrder, WorkOutcome};
use crate::agent::orchestration::progress::PlanProgress;
use crate::agent::orchestration::role::StepFailure;
use crate::agent::turn::{Turn, TurnStop};

use super::{ListContent, PlanList, StepList, StepRun, StepScheduler, StepTag};

impl<'c, 't: 'c> Turn<'t> {
    /// Runs the steps of a plan until none can run any more.
    ///
    /// # Errors
    /// The turn cannot go on; a failed step is part of the plan's progress.
    pub(in crate::agent::orchestration) async fn run_plan(
        &mut self,
        machine: &mut PlanProgress,
    ) -> Result<(), TurnStop> {
        let steps = machine.steps().len();
        let plan = PlanList::new(std::mem::take(machine));
        let mut run = StepRun::new(ListContent::Plan(plan));
        Box::pin(self.run_steps(&mut run, steps)).await?;
        if let Some(StepList { content: ListContent::Plan(plan), .. }) = run.lists.pop() {
            *machine = plan.progress;
        }
        Ok(())
    }

    /// Runs lists of steps until nothing in them can run any more. About so many `calls` share the room for results.
    pub(in crate::agent::orchestration) async fn run_steps(
        &mut self,
        run: &mut StepRun<'c>,
        calls: usize,
    ) -> Result<(), TurnStop> {
        let services = self.plan_services(calls);
        let mut scheduler: StepScheduler<'c> = CallScheduler::new(services, OutcomeOrder::AsEnded);
        loop {
            while scheduler.has_ended() {
                self.land_next(run, &mut scheduler).await?;
            }
            // Questions in flight are of no use any more; a call must not be left in the middle.
            if run.has_failed() && scheduler.is_idle() {
                return Ok(());
            }
            if !self.advance(run, &mut scheduler).await? && !self.land_next(run, &mut scheduler).await? {
                return Ok(());
            }
        }
    }

    /// Begins whatever can begin, and ends the lists whose steps have ended. Returns true if anything happened.
    async fn advance(
        &mut self,
        run: &mut StepRun<'c>,
        scheduler: &mut StepScheduler<'c>,
    ) -> Result<bool, TurnStop> {
        let mut has_moved = false;
        for at in 0..run.lists.len() {
            if run.wants_list(at) {
                has_moved |= match run.lists[at].content {
                    ListContent::Flow(_) => self.open_jobs(run, at)?,
                    ListContent::Plan(_) => self.advance_plan(run, at, scheduler).await?,
                    ListContent::Ended => false,
                };
            }
        }
        has_moved |= self.begin_jobs(run, scheduler).await?;
        for at in (1..run.lists.len()).rev() {
            has_moved |= self.close_list(run, at)?;
        }
        Ok(has_moved)
    }

    /// Waits for what ends next, and ends its step. Returns false if nothing runs.
    async fn land_next(
        &mut self,
        run: &mut StepRun<'c>,
        scheduler: &mut StepScheduler<'c>,
    ) -> Result<bool, TurnStop> {
        let Some((tag, outcome)) = self.take_outcome(scheduler).await? else { return Ok(false) };
        self.record_beside();
        match (tag, outcome) {
            (StepTag::Plan { list, begun }, WorkOutcome::Call(outcome)) => {
                let outcome = self.answer_call(*outcome, scheduler.limits())?;
                self.land_plan_step(run, list, begun, outcome).await?;
            }
            (StepTag::Flow(running), WorkOutcome::Call(outcome)) => {
                let outcome = self.answer_call(*outcome, scheduler.limits())?;
                let may_pass = outcome.end.may_pass();
                match outcome.end {
                    CallEnd::Denied(_) => self.end_denied(run, running, outcome.summary)?,
                    _ => self.end_job(run, running, outcome.into_result(), may_pass)?,
                }
            }
            (StepTag::Flow(running), WorkOutcome::Request(answered)) => {
                // A step with a default does without the provider.
                let has_default = running.job.step.default.is_some();
                let may_pass = match &answered {
                    Err(StepFailure::Turn(TurnStop::Model(error))) => error.is_transient(),
                    Err(StepFailure::Turn(TurnStop::ContextFull(_))) => false,
                    _ => true,
                };
                let answered = match answered {
                    Err(StepFailure::Turn(TurnStop::Model(error))) if has_default => Err(error.to_string()),
                    Err(StepFailure::Turn(TurnStop::ContextFull(why))) if has_default => Err(why),
                    answered => StepFailure::settle(answered)?,
                };
                self.end_job(run, running, answered, may_pass)?;
            }
            // The steps of a plan are calls.
            (StepTag::Plan { .. }, WorkOutcome::Request(_)) => {}
        }
        Ok(true)
    }
}
