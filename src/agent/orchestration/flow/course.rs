//! The state of a running flow: the positions of its steps, remembered results, and how the start and end of steps are
//! reported and recorded.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::orchestration::Orchestration;
use crate::agent::turn::{Turn, TurnStop};
use crate::base::text;
use crate::config::{FlowConfig, FlowStep, StepWork};
use crate::conversation::event::EventKind;
use crate::conversation::event::plan::{FlowNote, StepFinished, StepStarted, StepStatus};

use super::machine::FlowJob;

/// A running flow, with the flows and groups inside it.
pub(super) struct Course<'o> {
    pub orchestration: &'o Orchestration,
    /// The results of steps before the flow was interrupted, by their names.
    pub memory: BTreeMap<String, Value>,
    /// True if the flow continues after an interruption and has not carried out a plan since.
    pub is_resumed: bool,
    /// The number of steps that have begun.
    pub begun: u32,
}

/// The position of steps: their flow, and the prefix of their names.
#[derive(Clone)]
pub(super) struct Spot<'f> {
    pub flow: &'f FlowConfig,
    pub prefix: String,
}

/// A running step.
pub(super) struct RunningFlowStep {
    pub name: String,
    step_id: u32,
    at: Instant,
}

impl Turn<'_> {
    pub(super) fn begin_job(
        &mut self,
        course: &mut Course<'_>,
        spot: &Spot<'_>,
        job: &FlowJob<'_>,
    ) -> Result<RunningFlowStep, TurnStop> {
        course.begun += 1;
        let (name, step_id) = (spot.name(job), course.begun);
        let started = StepStarted {
            step_id,
            name: Some(name.clone()),
            attempt: 1,
            tool_name: describe_step(job.step),
            description: String::new(),
        };
        self.run.emitter.emit(EventKind::StepStarted(started))?;
        Ok(RunningFlowStep { name, step_id, at: Instant::now() })
    }

    /// Records the end of a job: on disk, then as an event.
    pub(super) fn end_job(
        &mut self,
        running: RunningFlowStep,
        result: &Result<(Value, String), String>,
    ) -> Result<(), TurnStop> {
        let RunningFlowStep { name, step_id, at } = running;
        let (status, summary) = match result {
            Ok((value, summary)) => {
                self.note_flow(FlowNote::Finished { name: name.clone(), result: value.clone() })?;
                (StepStatus::Ok, summary.clone())
            }
            Err(why) => (StepStatus::Failed, why.clone()),
        };
        let duration_ms = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.tell_end(step_id, name, status, &summary, duration_ms)
    }

    pub(super) fn end_without_job(
        &mut self,
        course: &mut Course<'_>,
        spot: &Spot<'_>,
        step: &FlowStep,
        status: StepStatus,
        why: String,
    ) -> Result<(), TurnStop> {
        course.begun += 1;
        self.tell_end(course.begun, format!("{}{}", spot.prefix, step.id), status, &why, 0)
    }

    fn tell_end(
        &mut self,
        step_id: u32,
        name: String,
        status: StepStatus,
        summary: &str,
        duration_ms: u64,
    ) -> Result<(), TurnStop> {
        let (name, summary) = (Some(name), text::one_line(summary, 200));
        let (attempt, check, cut, result) = (1, None, false, Value::Null);
        let finished = StepFinished { step_id, name, attempt, status, summary, check, duration_ms, cut, result };
        Ok(self.run.emitter.emit(EventKind::StepFinished(finished))?)
    }

    pub(super) fn note_flow(&mut self, note: FlowNote) -> Result<(), TurnStop> {
        Ok(self.conversation.session.note_flow(note, Timestamp::now()).map_err(anyhow::Error::from)?)
    }
}

impl Spot<'_> {
    /// The name of a job: the prefix, the step and the round.
    pub(super) fn name(&self, job: &FlowJob<'_>) -> String {
        let round = job.round.map(|round| format!("[{round}]")).unwrap_or_default();
        format!("{}{}{round}", self.prefix, job.step.id)
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
