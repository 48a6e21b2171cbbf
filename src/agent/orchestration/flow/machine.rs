//! The state machine of a list of steps: decides what can run now and what follows from a result. It makes no calls
//! itself: a driver runs its jobs and returns their results.
//!
//! It always terminates: each step ends once, each loop has a bound, and a step begins only when the earlier steps that
//! it needs have ended.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::config::FlowStep;
use crate::conversation::event::plan::StepStatus;

use super::values::{FlowArguments, FlowScope};

/// The name for the results of earlier rounds. If a step reads them, its rounds run one after another.
const BEFORE: &str = "results";

/// The machine of the steps of a flow, or of a group.
pub struct Machine<'f> {
    stages: Vec<FlowStage<'f>>,
    /// The names around the steps, and the results so far.
    scope: FlowScope,
    /// The first failure without a default.
    failure: Option<String>,
}

struct FlowStage<'f> {
    step: &'f FlowStep,
    /// The steps of this list whose results it reads.
    needs: BTreeSet<usize>,
    /// The steps that it needs or only waits for.
    waits: BTreeSet<usize>,
    state: FlowStageState,
}

#[derive(Debug, Clone, PartialEq)]
enum FlowStageState {
    Waiting,
    Running(Rounds),
    /// The result for other steps; `None` if it was skipped or failed, without a default.
    Ended(Option<Value>),
}

/// The progress of a step.
#[derive(Debug, Clone, PartialEq)]
enum Rounds {
    Once,
    Each { items: Vec<Value>, results: Vec<Option<Value>> },
    Again,
}

/// One round of a step, ready to run.
#[derive(Debug, Clone)]
pub struct FlowJob<'f> {
    pub step: &'f FlowStep,
    /// The number of the round, from 1; `None` if the step has no loop.
    pub round: Option<u32>,
    pub arguments: FlowArguments,
    /// The scope for the steps of a group.
    pub scope: FlowScope,
}

/// A step that ended without a job: skipped, or failed before its first round or after its last.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowStepNote<'f> {
    pub step: &'f FlowStep,
    pub status: StepStatus,
    pub why: String,
}

impl<'f> Machine<'f> {
    /// The steps in `scope`, none of which has begun.
    pub fn new(steps: &'f [FlowStep], scope: FlowScope) -> Self {
        let at: BTreeMap<&str, usize> =
            steps.iter().enumerate().map(|(at, step)| (step.id.as_str(), at)).collect();
        let stage = |(here, step): (usize, &'f FlowStep)| {
            // Only earlier steps of this list count; a valid flow has no others.
            let known = |id: &String| at.get(id.as_str()).copied().filter(|at| *at < here);
            let needs: BTreeSet<usize> = step.needs().iter().filter_map(known).collect();
            let waits = step.waits().iter().filter_map(known).collect();
            FlowStage { step, needs, waits, state: FlowStageState::Waiting }
        };
        Self { stages: steps.iter().enumerate().map(stage).collect(), scope, failure: None }
    }

    /// Begins every step that can begin. Returns the first jobs of these, and the steps that ended without one.
    pub fn begin(&mut self) -> (Vec<FlowJob<'f>>, Vec<FlowStepNote<'f>>) {
        let (mut jobs, mut notes) = (Vec::new(), Vec::new());
        // Steps come after those that they need, so one pass sees what an earlier end makes ready.
        for at in 0..self.stages.len() {
            if self.failure.is_some() {
                break;
            }
            let stage = &self.stages[at];
            let has_ended = |at: &usize| matches!(self.stages[*at].state, FlowStageState::Ended(_));
            if stage.state != FlowStageState::Waiting || !stage.waits.iter().all(has_ended) {
                continue;
            }
            match self.open(at) {
                Ok(begun) => jobs.extend(begun),
                Err((status, why)) => notes.push(self.end_without_result(at, status, why)),
            }
        }
        (jobs, notes)
    }

    /// Takes the result of a job. Returns the jobs that follow in the same step, and the step if it failed after its
    /// last round.
    pub fn finish(
        &mut self,
        job: &FlowJob<'f>,
        result: Result<Value, String>,
    ) -> (Vec<FlowJob<'f>>, Option<FlowStepNote<'f>>) {
        let is_of_job = |stage: &FlowStage<'_>| {
            stage.step.id == job.step.id && matches!(stage.state, FlowStageState::Running(_))
        };
        let Some(at) = self.stages.iter().position(is_of_job) else { return (Vec::new(), None) };
        let value = match result {
            Ok(value) => value,
            Err(why) => {
                self.end_without_result(at, StepStatus::Failed, why);
                return (Vec::new(), None);
            }
        };
        match self.follow(at, job.round.unwrap_or(1), value) {
            Ok(jobs) => (jobs, None),
            Err(why) => (Vec::new(), Some(self.end_without_result(at, StepStatus::Failed, why))),
        }
    }

    /// True if the result of a job still matters: its step runs, and nothing has failed.
    pub fn wants(&self, job: &FlowJob<'_>) -> bool {
        let is_running = |stage: &FlowStage<'_>| {
            stage.step.id == job.step.id && matches!(stage.state, FlowStageState::Running(_))
        };
        self.failure.is_none() && self.stages.iter().any(is_running)
    }

    /// True if a step has failed that had no default.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// True if no step can begin any more. Some may run.
    pub fn has_ended(&self) -> bool {
        let has_begun = |stage: &FlowStage<'_>| stage.state != FlowStageState::Waiting;
        self.has_failed() || self.stages.iter().all(has_begun)
    }

    /// The results by their steps, without those that have none; or the step that ended it, with the reason.
    pub fn results(&self) -> Result<Map<String, Value>, String> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let results = self.stages.iter().filter_map(|stage| match &stage.state {
            FlowStageState::Ended(Some(value)) => Some((stage.step.id.clone(), value.clone())),
            _ => None,
        });
        Ok(results.collect())
    }

    /// The scope for the outputs and the answer.
    pub fn scope(&self) -> &FlowScope {
        &self.scope
    }

    /// Begins a step, or returns the reason that it ends without a job.
    fn open(&mut self, at: usize) -> Result<Vec<FlowJob<'f>>, (StepStatus, String)> {
        let step = self.stages[at].step;
        let failed = |why: String| (StepStatus::Failed, why);
        let missing =
            self.stages[at].needs.iter().find(|at| self.stages[**at].state == FlowStageState::Ended(None));
        if let Some(missing) = missing {
            let id = &self.stages[*missing].step.id;
            return Err((StepStatus::Skipped, format!("the step `{id}` has no result")));
        }
        if let Some(when) = &step.when
            && !self.scope.holds(when).map_err(|why| failed(format!("`when`: {why}")))?
        {
            return Err((StepStatus::Skipped, format!("`{when}` does not hold")));
        }
        let rounds = match (&step.for_each, &step.repeat) {
            (Some(each), _) => {
                let items = self.scope.list(&each.list, each.most);
                let items = items.map_err(|why| failed(format!("`for_each`: {why}")))?;
                if items.is_empty() {
                    self.end(at, Value::Array(Vec::new()));
                    return Ok(Vec::new());
                }
                Rounds::Each { results: vec![None; items.len()], items }
            }
            (None, Some(_)) => Rounds::Again,
            (None, None) => Rounds::Once,
        };
        let first = match &rounds {
            Rounds::Once => vec![prepare_job(step, None, self.scope.clone())],
            Rounds::Again => {
                let scope = self.scope.clone().add_name("last", &Value::Null).add_name("round", &1);
                vec![prepare_job(step, Some(1), scope)]
            }
            Rounds::Each { items, .. } => {
                let first = if step.reads(BEFORE) { 1 } else { items.len() };
                (0..first).map(|at| prepare_item(&self.scope, step, items, &[], at)).collect()
            }
        };
        let first = first.into_iter().collect::<Result<_, _>>().map_err(failed)?;
        self.stages[at].state = FlowStageState::Running(rounds);
        Ok(first)
    }

    /// The jobs after the result of a round; the step may end with it.
    fn follow(&mut self, at: usize, round: u32, value: Value) -> Result<Vec<FlowJob<'f>>, String> {
        let FlowStage { step, state, .. } = &mut self.stages[at];
        let step = *step;
        match state {
            FlowStageState::Running(Rounds::Each { items, results }) => {
                let next = round as usize;
                if let Some(slot) = results.get_mut(next - 1) {
                    *slot = Some(value);
                }
                if results.iter().all(Option::is_some) {
                    let all = results.drain(..).flatten().collect();
                    self.end(at, Value::Array(all));
                    return Ok(Vec::new());
                }
                if !step.reads(BEFORE) {
                    return Ok(Vec::new());
                }
                let so_far: Vec<Value> = results.iter().flatten().cloned().collect();
                prepare_item(&self.scope, step, items, &so_far, next).map(|job| vec![job])
            }
            FlowStageState::Running(Rounds::Again) => self.again(at, round, value),
            _ => {
                self.end(at, value);
                Ok(Vec::new())
            }
        }
    }

    /// The next round of a step that is repeated, or its end.
    fn again(&mut self, at: usize, round: u32, value: Value) -> Result<Vec<FlowJob<'f>>, String> {
        let step = self.stages[at].step;
        let Some(repeat) = &step.repeat else { return Ok(Vec::new()) };
        let scope = self.scope.clone().add_name("last", &value);
        let over = scope.clone().add_name("round", &round).holds(&repeat.until);
        if over.map_err(|why| format!("`until`: {why}"))? {
            self.end(at, value);
            return Ok(Vec::new());
        }
        if round >= repeat.most {
            return Err(format!("`{}` did not hold within {round} rounds", repeat.until));
        }
        Ok(vec![prepare_job(step, Some(round + 1), scope.add_name("round", &(round + 1)))?])
    }

    fn end(&mut self, at: usize, value: Value) {
        self.scope.add(&self.stages[at].step.id, &value);
        self.stages[at].state = FlowStageState::Ended(Some(value));
    }

    /// Ends a step without a result: with its default, if it has one. A failure without a default ends the whole list.
    fn end_without_result(&mut self, at: usize, status: StepStatus, why: String) -> FlowStepNote<'f> {
        let step = self.stages[at].step;
        match &step.default {
            Some(value) => self.end(at, value.clone()),
            None => {
                self.stages[at].state = FlowStageState::Ended(None);
                if status == StepStatus::Failed && self.failure.is_none() {
                    self.failure = Some(format!("step `{}`: {why}", step.id));
                }
            }
        }
        FlowStepNote { step, status, why }
    }
}

/// The job for one item of a list.
fn prepare_item<'f>(
    scope: &FlowScope,
    step: &'f FlowStep,
    items: &[Value],
    so_far: &[Value],
    at: usize,
) -> Result<FlowJob<'f>, String> {
    let scope = scope.clone().add_name("item", &items[at]).add_name("index", &at).add_name(BEFORE, &so_far);
    prepare_job(step, u32::try_from(at + 1).ok(), scope)
}

fn prepare_job(step: &FlowStep, round: Option<u32>, scope: FlowScope) -> Result<FlowJob<'_>, String> {
    let arguments = scope.arguments(step)?;
    Ok(FlowJob { step, round, arguments, scope })
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::{FlowJob, FlowScope, Machine};
    use crate::config::FlowStep;
    use crate::conversation::event::plan::StepStatus;

    fn steps(steps: Value) -> Vec<FlowStep> {
        serde_json::from_value(steps).expect("steps")
    }

    /// Runs the steps: `tool` is what a call gives. Returns what happened, and the results.
    fn played(
        steps: &[FlowStep],
        tool: &mut dyn FnMut(&FlowJob<'_>) -> Result<Value, String>,
    ) -> (Vec<String>, Result<Map<String, Value>, String>) {
        let inputs = json!({ "yes": true, "no": false, "list": [1, 2, 3] });
        let mut machine = Machine::new(steps, FlowScope::of_inputs(inputs.as_object().expect("an object")));
        let (mut happened, mut waiting) = (Vec::new(), VecDeque::new());
        loop {
            let (jobs, notes) = machine.begin();
            waiting.extend(jobs);
            happened.extend(notes.iter().map(|note| told(&note.step.id, note.status)));
            let Some(job) = waiting.pop_front() else { break };
            if !machine.wants(&job) {
                continue;
            }
            let result = tool(&job);
            let round = job.round.map(|round| format!("[{round}]")).unwrap_or_default();
            let how = if result.is_ok() { "ran" } else { "broke" };
            happened.push(format!("{how} {}{round}", job.step.id));
            let (next, note) = machine.finish(&job, result);
            waiting.extend(next);
            happened.extend(note.iter().map(|note| told(&note.step.id, note.status)));
        }
        (happened, machine.results())
    }

    fn told(id: &str, status: StepStatus) -> String {
        match status {
            StepStatus::Skipped => format!("skipped {id}"),
            _ => format!("failed {id}"),
        }
    }

    /// A call returns what it was given; `bad` fails.
    fn echo(job: &FlowJob<'_>) -> Result<Value, String> {
        if job.step.tool.as_deref() == Some("bad") {
            return Err("it is bad".to_owned());
        }
        Ok(job.arguments.with.get("say").cloned().unwrap_or_else(|| job.step.id.clone().into()))
    }

    #[test]
    fn steps_run_when_what_they_need_has_ended() {
        let table = [
            (
                "what is skipped skips what needs it, and not what waits for it",
                json!([
                    { "id": "a", "tool": "t", "when": "inputs.no" },
                    { "id": "b", "tool": "t", "with": { "say": "{{ steps.a }}" } },
                    { "id": "c", "tool": "t", "depends_on": ["a"] },
                    { "id": "d", "tool": "t", "when": "steps.b" },
                ]),
                "skipped a, skipped b, skipped d, ran c",
                Ok(json!({ "c": "c" })),
            ),
            (
                "a default stands in for a result",
                json!([
                    { "id": "a", "tool": "t", "when": "inputs.no", "default": null },
                    { "id": "b", "tool": "bad", "default": [7] },
                    { "id": "c", "tool": "t", "with": { "say": "{{ steps.a or steps.b }}" } },
                ]),
                "skipped a, broke b, ran c",
                Ok(json!({ "a": null, "b": [7], "c": [7] })),
            ),
            (
                "a failure ends the flow",
                json!([
                    { "id": "a", "tool": "t" },
                    { "id": "b", "tool": "bad", "depends_on": ["a"] },
                    { "id": "c", "tool": "t", "depends_on": ["b"] },
                ]),
                "ran a, broke b",
                Err(("b", "it is bad")),
            ),
            (
                "each item is a round",
                json!([
                    { "id": "a", "tool": "t", "with": { "say": "{{ item + index }}" }, "for_each": { "in": "inputs.list", "most": 3 } },
                    { "id": "b", "tool": "t", "with": { "say": "{{ results | length }}" }, "for_each": { "in": "steps.a", "most": 3 } },
                    { "id": "c", "tool": "t", "for_each": { "in": "[]", "most": 1 } },
                ]),
                "ran a[1], ran a[2], ran a[3], ran b[1], ran b[2], ran b[3]",
                Ok(json!({ "a": [1, 3, 5], "b": [0, 1, 2], "c": [] })),
            ),
            (
                "a longer list is refused, not cut",
                json!([{ "id": "a", "tool": "t", "for_each": { "in": "inputs.list", "most": 2 } }]),
                "failed a",
                Err(("a", "`for_each`: `inputs.list` has 3 items, more than `most`: 2")),
            ),
            (
                "a step is repeated until it is well",
                json!([{ "id": "a", "tool": "t", "with": { "say": "{{ round }}" }, "repeat": { "until": "last == 3", "most": 5 } }]),
                "ran a[1], ran a[2], ran a[3]",
                Ok(json!({ "a": 3 })),
            ),
            (
                "and not for ever",
                json!([{ "id": "a", "tool": "t", "with": { "say": "{{ last }}" }, "repeat": { "until": "last", "most": 2 } }]),
                "ran a[1], ran a[2], failed a",
                Err(("a", "`last` did not hold within 2 rounds")),
            ),
            (
                "what cannot be evaluated fails its step",
                json!([
                    { "id": "a", "tool": "t" },
                    { "id": "b", "tool": "t", "with": { "say": "{{ steps.a.b.c }}" } },
                ]),
                "ran a, failed b",
                Err(("b", "`with.say`: `steps.a.b` is undefined")),
            ),
        ];
        for (what, written, expected, results) in table {
            let (happened, end) = played(&steps(written), &mut echo);
            assert_eq!(happened.join(", "), expected, "{what}");
            let results = results.map_err(|(step, why)| format!("step `{step}`: {why}"));
            assert_eq!(end.map(Value::Object), results, "{what}");
        }
    }

    /// A flow of random steps: what each needs and waits for, its condition, its default, its loop, whether it breaks.
    fn flows() -> impl Strategy<Value = Vec<(Value, bool)>> {
        let step = (any::<u8>(), any::<u8>(), 0..4_u8, any::<bool>(), 0..4_u8, 0..5_u8);
        proptest::collection::vec(step, 1..9).prop_map(|drawn| {
            let of = |(at, (needs, waits, when, default, looped, breaks)): (usize, (u8, u8, u8, bool, u8, u8))| {
                let earlier = |bits: u8| {
                    (0..at).filter(move |before| bits >> (before % 8) & 1 == 1 && bits.is_multiple_of(3))
                };
                let read: Vec<String> = earlier(needs).map(|at| format!("{{{{ steps.s{at} }}}}")).collect();
                let mut step = json!({
                    "id": format!("s{at}"), "tool": "t", "with": { "say": read },
                    "depends_on": earlier(waits).map(|at| format!("s{at}")).collect::<Vec<_>>(),
                });
                if when == 0 {
                    step["when"] = "inputs.no".into();
                }
                if default {
                    step["default"] = "d".into();
                }
                match looped {
                    0 => step["for_each"] = json!({ "in": "inputs.list", "most": 3 }),
                    1 => step["repeat"] = json!({ "until": "round == 2", "most": 3 }),
                    2 => step["repeat"] = json!({ "until": "false", "most": 2 }),
                    _ => {}
                }
                (step, breaks == 0)
            };
            drawn.into_iter().enumerate().map(of).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn every_flow_ends_and_nothing_runs_before_what_it_needs(flow in flows()) {
            let breaking: Vec<bool> = flow.iter().map(|(_, breaks)| *breaks).collect();
            let steps = steps(flow.into_iter().map(|(step, _)| step).collect());
            let number = |id: &str| id[1..].parse::<usize>().expect("a number");
            let mut runs: Vec<(usize, Option<u32>)> = Vec::new();
            let (happened, end) = played(&steps, &mut |job| {
                runs.push((number(&job.step.id), job.round));
                if breaking[number(&job.step.id)] { Err("broken".to_owned()) } else { Ok(json!("x")) }
            });
            prop_assert!(runs.len() <= steps.len() * 3, "a loop has a bound");
            let mut once = runs.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), runs.len(), "a round ran twice");
            for (at, step) in steps.iter().enumerate() {
                let first = runs.iter().position(|(run, _)| *run == at);
                for before in step.waits().iter().map(|id| number(id)) {
                    let last = runs.iter().rposition(|(run, _)| *run == before);
                    prop_assert!(first.is_none() || last < first, "s{at} ran before s{before} ended");
                }
                if let Ok(results) = &end {
                    let lacks = step.needs().iter().any(|id| !results.contains_key(id));
                    prop_assert!(!lacks || first.is_none(), "s{at} ran without what it needs");
                    let accounted = first.is_some() || happened.iter().any(|line| line.ends_with(&format!(" s{at}")));
                    prop_assert!(accounted, "s{at} was forgotten");
                    prop_assert_eq!(results.contains_key(&step.id), !lacks && step.when.is_none() || step.default.is_some());
                }
            }
        }
    }
}
