//! Runs the steps of a plan as soon as the steps that they need are done. Steps that only read run side by side, all
//! others alone.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::agent::Terms;
use crate::agent::dispatch::Deck;
use crate::agent::execute::Finished;
use crate::agent::turn::{Stop, Turn};
use crate::conversation::event::plan::{
    PlanStep, Progress as Happened, StepCheck, StepFinished, StepStarted, StepStatus,
};
use crate::conversation::message::CallStatus;
use crate::safety::Reach;
use crate::tools::Tool;

use super::Orchestration;
use super::given::Outcome;
use super::graph::AGENT;
use super::input::{Filled, Job};
use super::progress::{Next, Progress};

/// A step with a running call.
#[derive(Debug, Clone)]
struct Begun {
    step: PlanStep,
    attempt: u32,
    at: Instant,
}

/// A call that ended and has no answer yet, with the means to run it again.
type Landed<'c> = (Begun, Finished<'c>, Option<(&'c dyn Tool, &'c Terms, Arc<Reach>)>);

/// The steps that have begun and not ended.
struct Field<'c> {
    deck: &'c Deck,
    running: FuturesUnordered<BoxFuture<'c, Landed<'c>>>,
    /// True if the running calls are helpers, which run only beside helpers.
    are_helpers: bool,
    /// Calls that ended while a model was asked.
    landed: Vec<Landed<'c>>,
    /// Jobs filled in by the executor, kept until the step can begin.
    filled: BTreeMap<u32, Job>,
    /// Steps whose check is a command, which runs alone.
    unchecked: Vec<(Begun, Outcome)>,
}

impl Turn<'_> {
    /// Runs the steps of a plan until none can run any more.
    ///
    /// # Errors
    /// The turn cannot go on; a failed step is part of the plan's progress.
    pub(super) async fn run_steps(
        &mut self,
        orchestration: &Orchestration,
        machine: &mut Progress,
    ) -> Result<(), Stop> {
        let deck = self.deck_of_plan(machine.steps().len());
        let mut field = Field {
            deck: &deck,
            running: FuturesUnordered::new(),
            are_helpers: false,
            landed: Vec::new(),
            filled: BTreeMap::new(),
            unchecked: Vec::new(),
        };
        loop {
            for landed in std::mem::take(&mut field.landed) {
                self.land(machine, landed, &mut field).await?;
            }
            if field.running.is_empty() {
                for (begun, outcome) in std::mem::take(&mut field.unchecked) {
                    self.end_step(machine, begun, outcome).await?;
                }
            }
            match machine.next() {
                Next::Skip(steps) => {
                    for step in steps {
                        self.skip(machine, step)?;
                    }
                    continue;
                }
                Next::Start(ready) if field.unchecked.is_empty() => {
                    if self.begin_some(orchestration, machine, &ready, &mut field).await? {
                        continue;
                    }
                }
                Next::Start(_) | Next::Wait => {}
                _ => return Ok(()),
            }
            if let Some(landed) = field.running.next().await {
                field.landed.push(landed);
            }
        }
    }

    /// Begins the steps that can begin now. Returns false if all ready steps must wait for running ones.
    async fn begin_some<'c>(
        &mut self,
        orchestration: &Orchestration,
        machine: &mut Progress,
        ready: &[u32],
        field: &mut Field<'c>,
    ) -> Result<bool, Stop>
    where
        Self: 'c,
    {
        let most = self.agent.limits.max_parallel.max(1);
        let mut begun = false;
        for &id in ready {
            if field.running.len() >= most {
                break;
            }
            let Some(step) = machine.step(id).cloned() else { continue };
            let attempt = machine.next_attempt(id);
            let job = match field.filled.remove(&id) {
                Some(job) => job,
                None => match field.meanwhile(self.job(orchestration, machine, &step)).await? {
                    Filled::Ready(job) => job,
                    Filled::Impossible(why) => {
                        self.start(machine, &step)?;
                        self.ended_without_call(machine, (id, attempt), StepStatus::Failed, why)?;
                        return Ok(true);
                    }
                },
            };
            let is_helper = step.tool_name.starts_with(AGENT);
            let is_free = field.running.is_empty();
            if self.only_reads(&job) && (is_free || is_helper == field.are_helpers) {
                field.are_helpers = is_helper;
                self.start(machine, &step)?;
                let prepared = self.begin_given(job.given())?;
                let (place, tool) = (self.place(field.deck), prepared.tool());
                let now = Begun { step, attempt, at: Instant::now() };
                field.running.push(async move { (now, prepared.run(place).await, tool) }.boxed());
                begun = true;
            } else if is_free && !begun {
                self.start(machine, &step)?;
                let now = Begun { step, attempt, at: Instant::now() };
                let prepared = self.begin_given(job.given())?;
                let finished = self.run_alone(prepared, field.deck).await?;
                field.landed.push((now, finished, None));
                return Ok(true);
            } else {
                field.filled.insert(id, job);
            }
        }
        Ok(begun)
    }

    /// Answers the call of a step, and ends the step unless its check has to wait.
    async fn land<'c>(
        &mut self,
        machine: &mut Progress,
        (begun, finished, tool): Landed<'c>,
        field: &mut Field<'c>,
    ) -> Result<(), Stop> {
        let finished = match tool {
            Some(tool) => self.offer_wider(finished, tool, false, field.deck).await?,
            None => finished,
        };
        let outcome = self.end_given(finished, field.deck)?;
        if matches!(begun.step.check, Some(StepCheck::Command(_))) {
            field.unchecked.push((begun, outcome));
            return Ok(());
        }
        self.end_step(machine, begun, outcome).await
    }

    /// Records the end of a step, after its check.
    async fn end_step(
        &mut self,
        machine: &mut Progress,
        Begun { step, attempt, at }: Begun,
        Outcome { status, summary, value }: Outcome,
    ) -> Result<(), Stop> {
        let ok = status == CallStatus::Ok;
        let check = match &step.check {
            Some(check) if ok => Some(self.check_step(machine, (&step, attempt), check, &value).await?),
            _ => None,
        };
        let status = if ok { StepStatus::Ok } else { StepStatus::Failed };
        let duration_ms = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (step_id, result) = (step.step_id, value);
        let finished = StepFinished { step_id, name: None, attempt, status, summary, check, duration_ms, result };
        self.note(machine, Happened::Finished(finished))
    }

    fn start(&mut self, machine: &mut Progress, step: &PlanStep) -> Result<(), Stop> {
        let started = StepStarted {
            step_id: step.step_id,
            name: None,
            attempt: machine.next_attempt(step.step_id),
            tool_name: step.tool_name.clone(),
            description: step.description.clone(),
        };
        self.note(machine, Happened::Started(started))
    }

    fn skip(&mut self, machine: &mut Progress, step: u32) -> Result<(), Stop> {
        let why = "a step that it needs failed".to_owned();
        self.ended_without_call(machine, (step, machine.next_attempt(step)), StepStatus::Skipped, why)
    }

    fn ended_without_call(
        &mut self,
        machine: &mut Progress,
        (step_id, attempt): (u32, u32),
        status: StepStatus,
        summary: String,
    ) -> Result<(), Stop> {
        let (check, duration_ms, result) = (None, 0, serde_json::Value::Null);
        let finished = StepFinished { step_id, name: None, attempt, status, summary, check, duration_ms, result };
        self.note(machine, Happened::Finished(finished))
    }
}

impl Field<'_> {
    /// Waits for `work` while the calls go on.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(landed) = self.running.next(), if !self.running.is_empty() => self.landed.push(landed),
            }
        }
    }
}
