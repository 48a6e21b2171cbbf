//! The jobs of flows: which of them begin beside what runs already, how each ends, and what of it is recorded and told.

use std::collections::VecDeque;
use std::time::Instant;

use serde_json::Value;

use crate::agent::orchestration::flow::{FlowJob, FlowStepNote};
use crate::agent::turn::{Turn, TurnStop};
use crate::base::text;
use crate::config::{ApprovalMode, FlowStep, StepWork};
use crate::conversation::event::EventKind;
use crate::conversation::event::plan::{PlanEvent, StepFinished, StepStarted, StepStatus};

use super::{IN_DOUBT, ListContent, ReadyJob, RunningJob, StepRun, StepScheduler, Worked};

impl<'c, 't: 'c> Turn<'t> {
    /// Makes the steps of a list ready that can begin. Returns true if there were any.
    pub(super) fn open_jobs(&mut self, run: &mut StepRun<'_>, at: usize) -> Result<bool, TurnStop> {
        let ListContent::Flow(flow) = &mut run.lists[at].content else { return Ok(false) };
        let (jobs, notes) = flow.machine.begin();
        let has_moved = !jobs.is_empty() || !notes.is_empty();
        run.enqueue(at, jobs);
        for note in notes {
            self.tell_note(run, at, note)?;
        }
        Ok(has_moved)
    }

    /// Begins the jobs that may begin now. Returns true if there were any.
    pub(super) async fn begin_jobs(
        &mut self,
        run: &mut StepRun<'c>,
        scheduler: &mut StepScheduler<'c>,
    ) -> Result<bool, TurnStop> {
        let (mut kept, mut has_moved) = (VecDeque::new(), false);
        while let Some(ready) = run.ready.pop_front() {
            if !run.wants(ready.list, &ready.job) {
                run.lists[ready.list].open -= 1;
                has_moved = true;
                continue;
            }
            match self.begin_job(run, scheduler, ready).await? {
                Some(ready) => kept.push_back(ready),
                None => has_moved = true,
            }
        }
        run.ready = kept;
        Ok(has_moved)
    }

    /// Begins a job, or gives it back if it has to wait.
    async fn begin_job(
        &mut self,
        run: &mut StepRun<'c>,
        scheduler: &mut StepScheduler<'c>,
        ready: ReadyJob<'c>,
    ) -> Result<Option<ReadyJob<'c>>, TurnStop> {
        let ListContent::Flow(flow) = &run.lists[ready.list].content else { return Ok(None) };
        let name = flow.name(&ready.job);
        if let Some(value) = run.memory.done.remove(&name) {
            self.finish_job(run, ready.list, &ready.job, Ok(value))?;
            return Ok(None);
        }
        if let Some(limit) = self.reached_limit() {
            return Err(TurnStop::Limit(limit));
        }
        if !self.can_begin(run, scheduler, &ready.job) {
            return Ok(Some(ready));
        }
        let step = ready.job.step;
        let is_in_doubt = run.memory.in_doubt.contains(&name) && !self.is_repeatable(step);
        // A running helper may ask a person too.
        if (is_in_doubt || step.approve && !ready.is_approved) && !scheduler.is_idle() {
            return Ok(Some(ready));
        }
        run.memory.in_doubt.remove(&name);
        if is_in_doubt {
            let question =
                format!("The step `{name}` may have run in part: {}. Run it again?", describe_step(step));
            if !scheduler.meanwhile(self.confirm(&question)).await {
                let running = self.start_job(run, ready, name)?;
                self.end_job(run, running, Err(IN_DOUBT.to_owned()), false)?;
                return Ok(None);
            }
        }
        if step.approve && !ready.is_approved {
            let question = format!("Run the step `{name}`: {}?", describe_step(step));
            if !scheduler.meanwhile(self.confirm(&question)).await {
                let why = self.word_refusal();
                let running = self.start_job(run, ready, name)?;
                self.end_denied(run, running, why)?;
                return Ok(None);
            }
        }
        if let Some(path) = ready.job.arguments.replaces.as_deref() {
            self.learn_file(path, &self.conversation.shared.files);
        }
        let running = self.start_job(run, ready, name)?;
        self.begin_work(run, scheduler, running).await?;
        Ok(None)
    }

    /// The reason that a step does not run that a person has to allow.
    fn word_refusal(&mut self) -> String {
        if self.agent.approval == ApprovalMode::Never {
            return "the approval mode `never` refuses whatever would have to ask".to_owned();
        }
        if self.agent.approver.present() {
            return "the user did not allow it".to_owned();
        }
        self.run.totals.unasked += 1;
        "a person has to allow it, and nobody could be asked".to_owned()
    }

    /// True if a step may run again after it ran in part.
    fn is_repeatable(&self, step: &FlowStep) -> bool {
        match step.works().next() {
            Some(StepWork::Tool(tool)) => step.idempotent || self.may_repeat(tool),
            Some(StepWork::Agent(_)) => step.idempotent,
            _ => true,
        }
    }

    fn start_job(
        &mut self,
        run: &mut StepRun<'c>,
        ready: ReadyJob<'c>,
        name: String,
    ) -> Result<RunningJob<'c>, TurnStop> {
        run.begun += 1;
        let ReadyJob { list, job, attempt, .. } = ready;
        let started = StepStarted {
            step_id: run.begun,
            name: Some(name.clone()),
            attempt,
            tool_name: describe_step(job.step),
            description: String::new(),
        };
        self.record_flow(PlanEvent::Started(started.clone()))?;
        self.run.emitter.emit(EventKind::StepStarted(started))?;
        Ok(RunningJob { list, job, name, step_id: run.begun, attempt, at: Instant::now() })
    }

    /// Records the end of a job, and what follows from it. A failure that may pass leads to another attempt, as often as
    /// the step says.
    pub(super) fn end_job(
        &mut self,
        run: &mut StepRun<'c>,
        running: RunningJob<'c>,
        result: Result<Worked, String>,
        may_pass: bool,
    ) -> Result<(), TurnStop> {
        let status = if result.is_ok() { StepStatus::Ok } else { StepStatus::Failed };
        self.tell_end(&running, status, &result)?;
        let RunningJob { list, job, attempt, .. } = running;
        let may_retry = attempt <= job.step.retry && self.is_repeatable(job.step);
        if result.is_err() && may_pass && may_retry && run.wants(list, &job) {
            run.ready.push_back(ReadyJob { list, job, attempt: attempt + 1, is_approved: true });
            return Ok(());
        }
        self.finish_job(run, list, &job, result.map(|(value, _)| value))
    }

    /// Ends a job that was not allowed.
    pub(super) fn end_denied(
        &mut self,
        run: &mut StepRun<'c>,
        running: RunningJob<'c>,
        why: String,
    ) -> Result<(), TurnStop> {
        self.tell_end(&running, StepStatus::Denied, &Err(why.clone()))?;
        self.finish_job(run, running.list, &running.job, Err(why))
    }

    /// Records and reports the end of a job.
    fn tell_end(
        &mut self,
        running: &RunningJob<'_>,
        status: StepStatus,
        result: &Result<Worked, String>,
    ) -> Result<(), TurnStop> {
        // Further lines are a diff.
        let first = |(_, summary): &'_ Worked| summary.lines().next().unwrap_or_default().to_owned();
        let summary = result.as_ref().map_or_else(String::clone, first);
        let finished = StepFinished {
            step_id: running.step_id,
            name: Some(running.name.clone()),
            attempt: running.attempt,
            status,
            summary: text::one_line(&summary, 200),
            duration_ms: u64::try_from(running.at.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..StepFinished::default()
        };
        let value = result.as_ref().map_or(Value::Null, |(value, _)| value.clone());
        self.record_flow(PlanEvent::Finished(StepFinished { result: value, ..finished.clone() }))?;
        Ok(self.run.emitter.emit(EventKind::StepFinished(finished))?)
    }

    /// Passes the result of a job to its list.
    fn finish_job(
        &mut self,
        run: &mut StepRun<'c>,
        list: usize,
        job: &FlowJob<'c>,
        result: Result<Value, String>,
    ) -> Result<(), TurnStop> {
        run.lists[list].open -= 1;
        let ListContent::Flow(flow) = &mut run.lists[list].content else { return Ok(()) };
        let (next, note) = flow.machine.finish(job, result);
        run.enqueue(list, next);
        note.map_or(Ok(()), |note| self.tell_note(run, list, note))
    }

    /// Ends a list whose steps have ended, with the step that it carries out. Returns false if it goes on.
    pub(super) fn close_list(&mut self, run: &mut StepRun<'c>, at: usize) -> Result<bool, TurnStop> {
        let list = &mut run.lists[at];
        let result = match &list.content {
            ListContent::Flow(flow) if list.open == 0 && flow.machine.has_ended() => flow
                .take_result()
                .map(|(outputs, answer)| (outputs.unwrap_or(answer), String::new()))
                .map_err(|why| format!("its {why}")),
            ListContent::Plan(plan) if plan.has_ended() => Ok(plan.take_results()),
            _ => return Ok(false),
        };
        list.content = ListContent::Ended;
        if let Some(above) = list.above.take() {
            self.end_job(run, above, result, false)?;
        }
        Ok(true)
    }

    /// Reports a step that ended without a job.
    fn tell_note(&mut self, run: &mut StepRun<'_>, list: usize, note: FlowStepNote<'_>) -> Result<(), TurnStop> {
        let ListContent::Flow(flow) = &run.lists[list].content else { return Ok(()) };
        run.begun += 1;
        let FlowStepNote { step, status, why } = note;
        Ok(self.run.emitter.emit(EventKind::StepFinished(StepFinished {
            step_id: run.begun,
            name: Some(format!("{}{}", flow.prefix, step.id)),
            attempt: 1,
            status,
            summary: text::one_line(&why, 200),
            ..StepFinished::default()
        }))?)
    }
}

/// Describes the work of a step in a word or two.
fn describe_step(step: &FlowStep) -> String {
    match step.works().next() {
        Some(StepWork::Tool(name)) => name.to_owned(),
        Some(StepWork::Agent(name)) => format!("agent:{name}"),
        Some(StepWork::Flow(name)) => format!("flow:{name}"),
        Some(StepWork::Role(role)) => role.name().to_owned(),
        Some(work @ (StepWork::Prompt(_) | StepWork::Group(_))) => work.key().to_owned(),
        None => String::new(),
    }
}
