//! The machine of a plan, by a driver that does whatever a list of numbers tells it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversation::event::plan::{self, PlanStep, ScoreDecision, StepStatus};

use super::super::progress::{PlanAction, PlanProgress};
use super::super::reference;
use super::super::reply::{ReflectorAction, ReflectorReply};
use super::super::verdict::MOST_RETRIES;
use super::tables::{failed, finished, judged, ok, planned, reply, started, step};

/// Chooses by a list of numbers, starting over at its end.
struct Chooser {
    numbers: Vec<u8>,
    at: usize,
}

impl Chooser {
    /// A number below `most`.
    fn below(&mut self, most: usize) -> usize {
        self.at += 1;
        usize::from(self.numbers[self.at % self.numbers.len()]) % most
    }

    /// A plan whose steps need earlier ones.
    fn plan(&mut self) -> Vec<PlanStep> {
        let count = u32::try_from(1 + self.below(6)).expect("few");
        let step_of = |id: u32, chooser: &mut Self| {
            let needs: Vec<u32> = (1..id).filter(|_| chooser.below(3) == 0).collect();
            step(id, json!({ "version": chooser.below(2) }), &needs)
        };
        (1..=count).map(|id| step_of(id, self)).collect()
    }

    fn reply(&mut self) -> ReflectorReply {
        let scores = [(); 3].map(|()| u8::try_from(1 + self.below(5)).expect("few"));
        let actions = [
            ReflectorAction::Accept,
            ReflectorAction::RetryStep,
            ReflectorAction::RetryStep,
            ReflectorAction::Replan,
            ReflectorAction::Escalate,
        ];
        let action = actions[self.below(5)];
        let step = u32::try_from(self.below(8)).ok().filter(|step| *step > 0);
        reply(scores, action, step)
    }

    fn outcome(&mut self, step: u32) -> plan::PlanEvent {
        match self.below(6) {
            0 => failed(step),
            1 => finished(step, StepStatus::Ok, Some(false), json!(step)),
            2 => finished(step, StepStatus::Ok, Some(true), json!(step)),
            _ => ok(step),
        }
    }
}

/// How often a plan can be made or run at all: four plans of six steps, each started, ended and retried.
const MOST_ROUNDS: usize = 500;

proptest! {
    #[test]
    fn any_sequence_of_replies_ends_and_breaks_no_rule(numbers in prop::collection::vec(any::<u8>(), 1..200)) {
        let mut chooser = Chooser { numbers, at: 0 };
        let (mut machine, mut log) = (PlanProgress::default(), Vec::new());
        let mut running: Vec<u32> = Vec::new();
        // How often each step ran, by revision, attempt and number.
        let mut runs: BTreeMap<(u32, u32, u32), u32> = BTreeMap::new();
        let mut kept: Vec<u32> = Vec::new();
        let mut has_ended = false;
        for _ in 0..MOST_ROUNDS {
            let next = machine.next();
            let happened = match next {
                PlanAction::Plan { .. } => {
                    prop_assert!(running.is_empty());
                    let steps = chooser.plan();
                    kept = machine.find_kept(&steps);
                    planned(machine.next_revision(), &steps, &kept)
                }
                PlanAction::Start(ready) if running.is_empty() || chooser.below(2) == 0 => {
                    let id = ready[chooser.below(ready.len())];
                    let step = machine.step(id).expect("it is of the plan");
                    prop_assert!(step.depends_on.iter().all(|on| machine.has_succeeded(*on)), "before its needs");
                    prop_assert!(!running.contains(&id));
                    let revision = machine.plan().expect("there is one").revision;
                    let times = runs.entry((revision, machine.next_attempt(id), id)).or_default();
                    *times += 1;
                    prop_assert_eq!(*times, 1, "twice in one attempt");
                    if machine.next_attempt(id) == 1 && machine.reflections().last().is_none_or(|last| {
                        matches!(last.decision, ScoreDecision::Replan { .. })
                    }) {
                        prop_assert!(!kept.contains(&id), "a kept step runs again");
                    }
                    running.push(id);
                    started(&machine, id)
                }
                PlanAction::Start(_) | PlanAction::Wait => {
                    let id = running.swap_remove(chooser.below(running.len()));
                    chooser.outcome(id)
                }
                PlanAction::Skip(blocked) => finished(blocked[0], StepStatus::Skipped, None, Value::Null),
                PlanAction::Doubt(steps) => panic!("nothing was interrupted: {steps:?}"),
                PlanAction::Reflect => {
                    prop_assert!(running.is_empty() && machine.is_done());
                    judged(&machine, chooser.reply())
                }
                PlanAction::Answer => {
                    prop_assert!(machine.find_failed().is_empty(), "accepted although a step failed");
                    has_ended = true;
                    break;
                }
                PlanAction::Escalate { .. } | PlanAction::Over => {
                    has_ended = true;
                    break;
                }
            };
            machine.apply(&happened);
            log.push(happened);
            prop_assert!(machine.retries() <= MOST_RETRIES);
            let mut interrupted = machine.clone();
            interrupted.interrupt();
            prop_assert_eq!(PlanProgress::replay(&log), interrupted, "a log tells the same");
        }
        prop_assert!(has_ended, "it does not end");
    }

    #[test]
    fn results_in_parallel_and_in_series_agree(numbers in prop::collection::vec(any::<u8>(), 1..100)) {
        let mut chooser = Chooser { numbers, at: 0 };
        let mut plan = chooser.plan();
        for step in &mut plan {
            let wholes: Vec<String> = step.depends_on.iter().map(|on| format!("$step_{on}_result")).collect();
            step.tool_input = json!({ "id": step.step_id, "text": wholes.join(" and "), "parts": wholes });
        }
        let mut run = |together: bool| {
            let mut machine = PlanProgress::default();
            machine.apply(&planned(1, &plan, &[]));
            let mut running: Vec<(u32, Value)> = Vec::new();
            loop {
                match machine.next() {
                    PlanAction::Start(ready) if together || running.is_empty() => {
                        let step = machine.step(ready[0]).expect("it is of the plan");
                        let filled = reference::fill_references(&step.tool_input, &machine.results()).expect("its needs are met");
                        running.push((ready[0], filled));
                        let happened = started(&machine, ready[0]);
                        machine.apply(&happened);
                    }
                    PlanAction::Start(_) | PlanAction::Wait => {
                        let (id, result) = running.swap_remove(chooser.below(running.len()));
                        machine.apply(&finished(id, StepStatus::Ok, None, result));
                    }
                    _ => return machine.results().into_iter().map(|(id, result)| (id, result.clone())).collect::<BTreeMap<_, _>>(),
                }
            }
        };
        let (series, parallel) = (run(false), run(true));
        prop_assert_eq!(series, parallel);
    }
}
