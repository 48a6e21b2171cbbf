//! Runs steps: those of a plan, and those of a flow with the groups, flows and plans inside it. Whatever is ready begins,
//! beside what runs already as far as the scheduler of calls allows it: nothing waits for a step that it does not need.
//!
//! Here are the lists of steps that run. `drive` runs them, `plan_steps` begins and ends the steps of plans, `flow_jobs`
//! those of flows, and `flow_work` says what a single step of a flow does.

mod plan_steps;
mod flow_work;
mod flow_jobs;
mod drive;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::agent::call::{CallScheduler, GivenCall, GivenOutcome};
use crate::config::{FlowConfig, FlowStep};
use crate::conversation::event::plan::PlanStep;

use super::flow::{FlowJob, FlowMemory, FlowScope, Machine};
use super::progress::{PlanAction, PlanProgress};
use super::role::StepFailure;

/// The result of a step, with a line for a person.
pub(in crate::agent::orchestration) type Worked = (Value, String);

/// The scheduler of the calls and requests of steps.
pub(in crate::agent::orchestration) type StepScheduler<'c> =
    CallScheduler<'c, StepTag<'c>, Result<Worked, StepFailure>>;

/// The step that a call or a request belongs to.
pub(in crate::agent::orchestration) enum StepTag<'c> {
    Plan { list: usize, begun: StartedStep },
    Flow(RunningJob<'c>),
}

/// Steps that run, as lists: the first is the outermost.
pub(in crate::agent::orchestration) struct StepRun<'c> {
    pub lists: Vec<StepList<'c>>,
    /// Jobs of flows that have not begun, in the order in which they became ready.
    pub ready: VecDeque<ReadyJob<'c>>,
    /// What was done before the flow was interrupted.
    pub memory: FlowMemory,
    /// The answers that were given to its questions, by their steps; among them its inputs.
    pub answers: Map<String, Value>,
    /// The number of steps of flows that have begun.
    pub begun: u32,
}

/// A list of steps.
pub(in crate::agent::orchestration) struct StepList<'c> {
    pub content: ListContent<'c>,
    /// The step that this list carries out; `None` for the outermost.
    pub above: Option<RunningJob<'c>>,
    /// Its jobs that are ready or running.
    pub open: usize,
}

pub(in crate::agent::orchestration) enum ListContent<'c> {
    Flow(FlowList<'c>),
    Plan(PlanList),
    /// It has ended, and its result was taken.
    Ended,
}

impl<'c> StepRun<'c> {
    pub fn new(content: ListContent<'c>) -> Self {
        let mut run = Self {
            lists: Vec::new(),
            ready: VecDeque::new(),
            memory: FlowMemory::default(),
            answers: Map::new(),
            begun: 0,
        };
        run.push(content, None);
        run
    }

    /// Puts jobs of a list in the queue.
    pub fn enqueue(&mut self, list: usize, jobs: Vec<FlowJob<'c>>) {
        self.lists[list].open += jobs.len();
        let ready = jobs.into_iter().map(|job| ReadyJob { list, job, attempt: 1, is_approved: false });
        self.ready.extend(ready);
    }

    /// Adds a list, whose steps begin when they can.
    pub fn push(&mut self, content: ListContent<'c>, above: Option<RunningJob<'c>>) {
        self.lists.push(StepList { content, above, open: 0 });
    }

    /// True if the result of a list still matters.
    pub fn wants_list(&self, at: usize) -> bool {
        self.lists[at].above.as_ref().is_none_or(|above| self.wants(above.list, &above.job))
    }

    /// True if the result of a job still matters: nothing around it has failed.
    pub fn wants(&self, list: usize, job: &FlowJob<'_>) -> bool {
        let in_list = match &self.lists[list].content {
            ListContent::Flow(flow) => flow.machine.wants(job),
            ListContent::Plan(_) | ListContent::Ended => false,
        };
        in_list && self.wants_list(list)
    }

    /// True if a failure has ended the outermost list.
    pub fn has_failed(&self) -> bool {
        matches!(&self.lists[0].content, ListContent::Flow(flow) if flow.machine.has_failed())
    }
}

/// The reason that a step fails whose call may have had effects.
pub(in crate::agent::orchestration) const IN_DOUBT: &str =
    "it may have run in part before it was interrupted, and nothing repeats it without a person's yes";

/// A step with a running call.
#[derive(Debug, Clone)]
pub(in crate::agent::orchestration) struct StartedStep {
    step: PlanStep,
    attempt: u32,
    at: Instant,
}

/// A plan whose steps run.
pub(in crate::agent::orchestration) struct PlanList {
    pub progress: PlanProgress,
    /// Calls filled in by the executor, kept until the step can begin.
    filled: BTreeMap<u32, GivenCall>,
    /// Steps whose check is a command, which runs beside no call.
    unchecked: Vec<(StartedStep, GivenOutcome)>,
}

impl PlanList {
    pub fn new(progress: PlanProgress) -> Self {
        Self { progress, filled: BTreeMap::new(), unchecked: Vec::new() }
    }

    /// True if no step of it can run any more.
    pub fn has_ended(&self) -> bool {
        use PlanAction::{Doubt, Skip, Start, Wait};
        self.unchecked.is_empty() && !matches!(self.progress.next(), Start(_) | Doubt(_) | Skip(_) | Wait)
    }

    /// The outcome of each step.
    pub fn take_results(&self) -> Worked {
        let machine = &self.progress;
        let told = |step: &PlanStep| {
            let mut told = json!(step);
            if let Some(ended) = machine.find_end(step.step_id) {
                told["status"] = json!(ended.status);
                told["summary"] = ended.summary.as_str().into();
                told["result"] = ended.result.clone();
                told["checked"] = json!(ended.check);
            }
            told
        };
        let results: Vec<Value> = machine.steps().iter().map(told).collect();
        let (all, failed) = (results.len(), machine.find_failed().len());
        (Value::Array(results), format!("{} of {all} steps done", all - failed))
    }
}

/// The steps of a flow or of a group that run.
pub(in crate::agent::orchestration) struct FlowList<'f> {
    pub machine: Machine<'f>,
    pub flow: &'f FlowConfig,
    /// The beginning of the names of its steps.
    pub prefix: String,
    /// True for a flow as a whole, false for a group in it.
    pub is_whole: bool,
}

/// A job that can begin.
pub(in crate::agent::orchestration) struct ReadyJob<'f> {
    pub list: usize,
    pub job: FlowJob<'f>,
    /// Counts from 1.
    pub attempt: u32,
    /// True if a person allowed the step that asks for it.
    pub is_approved: bool,
}

/// A job that has begun.
pub(in crate::agent::orchestration) struct RunningJob<'f> {
    pub list: usize,
    pub job: FlowJob<'f>,
    pub name: String,
    step_id: u32,
    attempt: u32,
    at: Instant,
}

impl<'f> FlowList<'f> {
    /// The steps of a flow.
    pub fn of_flow(flow: &'f FlowConfig, inputs: &Map<String, Value>, prefix: String) -> Self {
        let machine = Machine::new(&flow.steps, FlowScope::of_inputs(inputs));
        Self { machine, flow, prefix, is_whole: true }
    }

    /// The steps of a group.
    pub fn of_group(flow: &'f FlowConfig, steps: &'f [FlowStep], scope: FlowScope, prefix: String) -> Self {
        Self { machine: Machine::new(steps, scope), flow, prefix, is_whole: false }
    }

    /// The name of a job: the prefix, the step and the round.
    fn name(&self, job: &FlowJob<'_>) -> String {
        let round = job.round.map(|round| format!("[{round}]")).unwrap_or_default();
        format!("{}{}{round}", self.prefix, job.step.id)
    }

    /// Its outputs, if it declares any, and its answer.
    pub fn take_result(&self) -> Result<(Option<Value>, Value), String> {
        let (results, scope) = (self.machine.results()?, self.machine.scope());
        if !self.is_whole {
            return Ok((None, Value::Object(results)));
        }
        let fill = |part: &str, value: &Value| scope.fill(value).map_err(|why| format!("step `{part}`: {why}"));
        let outputs = fill("outputs", &Value::Object(self.flow.outputs.clone()))?;
        let outputs = Some(outputs).filter(|_| !self.flow.outputs.is_empty());
        let answer = match (&self.flow.answer, &outputs) {
            (Some(answer), _) => fill("answer", &Value::from(answer.as_str()))?,
            (None, Some(outputs)) => outputs.clone(),
            (None, None) => {
                let last = self.flow.steps.iter().rev().find_map(|step| results.get(&step.id));
                last.cloned().unwrap_or_default()
            }
        };
        Ok((outputs, answer))
    }
}
