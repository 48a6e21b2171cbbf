//! Runs the steps of a plan as soon as the steps that they need are done: those that only read side by side, all others
//! alone.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Instant;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::agent::dispatch::Deck;
use crate::agent::execute::Finished;
use crate::agent::turn::{Stop, Turn};
use crate::event::plan::{PlanStep, Progress as Happened, StepCheck, StepFinished, StepStarted, StepStatus};
use crate::message::CallStatus;

use super::Orchestration;
use super::given::Outcome;
use super::input::{Filled, Job};
use super::progress::{Next, Progress};

/// A step whose call runs.
#[derive(Debug, Clone)]
struct Begun {
    step: PlanStep,
    attempt: u32,
    at: Instant,
}

/// A call that ended and has no answer yet.
type Landed<'c> = (Begun, Finished<'c>);

/// The calls that run.
type Running<'c> = FuturesUnordered<BoxFuture<'c, Landed<'c>>>;

impl Turn<'_> {
    /// Runs the steps of a plan until none can run any more.
    ///
    /// # Errors
    /// When the turn cannot go on; a step that fails is part of the plan's progress.
    pub(super) async fn run_steps(
        &mut self,
        orchestration: &Orchestration,
        machine: &mut Progress,
    ) -> Result<(), Stop> {
        let deck = self.deck_of_plan(machine.steps().len());
        let mut running: Running<'_> = FuturesUnordered::new();
        // What the executor filled in, kept until the step can begin.
        let mut filled: BTreeMap<u32, Job> = BTreeMap::new();
        // Steps whose check is a command, which runs alone.
        let mut unchecked: Vec<(Begun, Outcome)> = Vec::new();
        loop {
            if running.is_empty() {
                for (begun, outcome) in unchecked.drain(..) {
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
                Next::Start(ready) if unchecked.is_empty() => {
                    let mut landed = Vec::new();
                    let calls = (&deck, &mut running, &mut landed);
                    let begun = self.begin_some(orchestration, machine, (&ready, &mut filled), calls).await?;
                    for landed in landed {
                        self.land(machine, landed, &deck, &mut unchecked).await?;
                    }
                    if begun {
                        continue;
                    }
                }
                Next::Start(_) | Next::Wait => {}
                _ => return Ok(()),
            }
            let Some(landed) = running.next().await else { continue };
            self.land(machine, landed, &deck, &mut unchecked).await?;
        }
    }

    /// Begins what can begin now; false where everything that is ready has to wait for what runs.
    async fn begin_some<'c>(
        &mut self,
        orchestration: &Orchestration,
        machine: &mut Progress,
        (ready, filled): (&[u32], &mut BTreeMap<u32, Job>),
        (deck, running, landed): (&'c Deck, &mut Running<'c>, &mut Vec<Landed<'c>>),
    ) -> Result<bool, Stop>
    where
        Self: 'c,
    {
        let most = self.agent.limits.max_parallel.max(1);
        let mut begun = false;
        for &id in ready {
            if running.len() >= most {
                break;
            }
            let Some(step) = machine.step(id).cloned() else { continue };
            let attempt = machine.next_attempt(id);
            let job = match filled.remove(&id) {
                Some(job) => job,
                None => match meanwhile(self.job(orchestration, machine, &step), running, landed).await? {
                    Filled::Ready(job) => job,
                    Filled::Impossible(why) => {
                        self.start(machine, &step)?;
                        self.ended_without_call(machine, (id, attempt), StepStatus::Failed, why)?;
                        return Ok(true);
                    }
                },
            };
            if self.only_reads(&job) {
                self.start(machine, &step)?;
                let prepared = self.begin_given(job.given())?;
                let place = self.place(deck);
                let begun_now = Begun { step, attempt, at: Instant::now() };
                running.push(async move { (begun_now, prepared.run(place).await) }.boxed());
                begun = true;
            } else if running.is_empty() && !begun {
                self.start(machine, &step)?;
                let begun_now = Begun { step, attempt, at: Instant::now() };
                let prepared = self.begin_given(job.given())?;
                landed.push((begun_now, self.run_alone(prepared, deck).await?));
                return Ok(true);
            } else {
                filled.insert(id, job);
            }
        }
        Ok(begun)
    }

    /// Answers the call of a step, and ends the step unless its check has to wait.
    async fn land(
        &mut self,
        machine: &mut Progress,
        (begun, finished): Landed<'_>,
        deck: &Deck,
        unchecked: &mut Vec<(Begun, Outcome)>,
    ) -> Result<(), Stop> {
        let outcome = self.end_given(finished, deck)?;
        if matches!(begun.step.check, Some(StepCheck::Command(_))) {
            unchecked.push((begun, outcome));
            return Ok(());
        }
        self.end_step(machine, begun, outcome).await
    }

    /// Records how a step ended, after its check.
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

/// Waits for `work` while the calls go on; those that end meanwhile are in `landed`.
async fn meanwhile<T, C: Future>(
    work: impl Future<Output = T>,
    running: &mut FuturesUnordered<C>,
    landed: &mut Vec<C::Output>,
) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            Some(ended) = running.next(), if !running.is_empty() => landed.push(ended),
        }
    }
}
