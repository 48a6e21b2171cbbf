//! The state machine of a plan: a fold over its events. It has no side effects: a driver asks what may run, runs it,
//! and applies the outcome. A resumed session applies the events of its log and goes on.

use std::collections::{BTreeMap, BTreeSet};

use crate::conversation::event::plan::{
    self, Decision, PlanCreated, PlanStep, Reflection, StepFinished, StepStatus,
};

use super::graph;
use super::reference::Results;

/// The progress of a request that is carried out by a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    plan: Option<PlanCreated>,
    states: BTreeMap<u32, State>,
    /// Attempts of each step in this revision.
    attempts: BTreeMap<u32, u32>,
    /// The changes that retries make to steps.
    modifications: BTreeMap<u32, String>,
    /// The last judgement of this revision, unless it led to a retry of a step.
    decision: Option<Decision>,
    reflections: Vec<Reflection>,
    retries: u32,
    closed: Option<String>,
}

/// The state of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    Waiting,
    Running,
    /// It ended, with or without success.
    Ended(StepFinished),
}

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Ask a planner; for a new plan, with what the last one lacked.
    Plan { modification: Option<String> },
    /// Skip these steps: a step that they need failed.
    Skip(Vec<u32>),
    /// Start these steps.
    Start(Vec<u32>),
    /// Wait: steps are running, and no other may start.
    Wait,
    /// Ask a reflector to judge the results.
    Reflect,
    /// Answer: the results were accepted.
    Answer,
    /// Ask a person to decide.
    Escalate { why: String },
    /// Nothing: the plan is closed.
    Over,
}

/// The facts about the steps of a plan before it is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    pub steps: BTreeSet<u32>,
    /// Steps that failed, or whose check did. Skipped ones are not among them.
    pub failed: Vec<u32>,
    /// True if each step that no other needs has a check that passed.
    pub proven: bool,
    /// Retries and new plans so far.
    pub retries: u32,
}

impl Progress {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Rebuilds the state from a log: nothing is running any more.
    #[must_use]
    pub fn replay<'p>(happened: impl IntoIterator<Item = &'p plan::Progress>) -> Self {
        let mut progress = Self::new();
        happened.into_iter().for_each(|one| progress.apply(one));
        progress.interrupt();
        progress
    }

    /// Applies one event.
    pub fn apply(&mut self, happened: &plan::Progress) {
        match happened {
            plan::Progress::Planned(created) => self.planned(created),
            plan::Progress::Started(started) => {
                if let Some(state) = self.states.get_mut(&started.step_id) {
                    *state = State::Running;
                    self.attempts.insert(started.step_id, started.attempt);
                }
            }
            plan::Progress::Finished(finished) => {
                if let Some(state) = self.states.get_mut(&finished.step_id) {
                    *state = State::Ended(finished.clone());
                }
            }
            plan::Progress::Reflected(reflection) => self.reflected(reflection),
            plan::Progress::Closed { why } => self.closed = Some(why.clone()),
        }
    }

    /// Resets running steps, because the work on them was dropped: they may start again.
    pub fn interrupt(&mut self) {
        let running = self.states.values_mut().filter(|state| **state == State::Running);
        running.for_each(|state| *state = State::Waiting);
    }

    fn planned(&mut self, created: &PlanCreated) {
        let old = std::mem::take(self);
        if created.revision > 1 && old.closed.is_none() {
            let kept = old.kept(&created.steps);
            let is_kept = |step: &u32| kept.contains(step) && created.kept.contains(step);
            self.states = old.states.into_iter().filter(|(step, _)| is_kept(step)).collect();
            self.reflections = old.reflections;
            self.retries = old.retries;
        }
        for step in &created.steps {
            self.states.entry(step.step_id).or_insert(State::Waiting);
        }
        self.plan = Some(created.clone());
    }

    fn reflected(&mut self, reflection: &Reflection) {
        self.reflections.push(reflection.clone());
        match &reflection.decision {
            Decision::RetryStep { step_id, modification } => {
                self.retries += 1;
                self.modifications.insert(*step_id, modification.clone());
                let needed = graph::needed(self.steps());
                let void = |step: &u32| step == step_id || needed.get(step).is_some_and(|on| on.contains(step_id));
                let void = self.states.iter_mut().filter(|(step, _)| void(step));
                void.for_each(|(_, state)| *state = State::Waiting);
            }
            other => {
                self.retries += u32::from(matches!(other, Decision::Replan { .. }));
                self.decision = Some(other.clone());
            }
        }
    }

    /// Decides the next thing to do.
    #[must_use]
    pub fn next(&self) -> Next {
        match &self.decision {
            _ if self.closed.is_some() => return Next::Over,
            _ if self.plan.is_none() => return Next::Plan { modification: None },
            Some(Decision::Accept) => return Next::Answer,
            Some(Decision::Escalate { why }) => return Next::Escalate { why: why.clone() },
            Some(Decision::Replan { modification }) => {
                return Next::Plan { modification: Some(modification.clone()) };
            }
            Some(Decision::RetryStep { .. }) | None => {}
        }
        let blocked = self.blocked();
        if !blocked.is_empty() {
            return Next::Skip(blocked);
        }
        match self.ready() {
            ready if !ready.is_empty() => Next::Start(ready),
            _ if self.states.values().any(|state| *state == State::Running) => Next::Wait,
            _ => Next::Reflect,
        }
    }

    /// The steps that may start, in the order of the plan: all steps that they need have succeeded.
    #[must_use]
    pub fn ready(&self) -> Vec<u32> {
        self.waiting(|step| step.depends_on.iter().all(|on| self.succeeded(*on)))
    }

    /// The steps that will never run: a step that they need did not succeed.
    #[must_use]
    pub fn blocked(&self) -> Vec<u32> {
        let ended = |on: &u32| matches!(self.states.get(on), Some(State::Ended(_)));
        self.waiting(|step| step.depends_on.iter().any(|on| ended(on) && !self.succeeded(*on)))
    }

    fn waiting(&self, holds: impl Fn(&PlanStep) -> bool) -> Vec<u32> {
        let waits = |step: &&PlanStep| self.states.get(&step.step_id) == Some(&State::Waiting);
        self.steps().iter().filter(waits).filter(|step| holds(step)).map(|step| step.step_id).collect()
    }

    /// True if every step has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.plan.is_some() && self.states.values().all(|state| matches!(state, State::Ended(_)))
    }

    /// True if there is a plan that is not closed.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.plan.is_some() && self.closed.is_none()
    }

    /// True if a step ended well, its check included.
    #[must_use]
    pub fn succeeded(&self, step: u32) -> bool {
        matches!(self.states.get(&step), Some(State::Ended(finished)) if is_good(finished))
    }

    /// The steps that failed, or whose check did. Skipped ones are not among them.
    #[must_use]
    pub fn failed(&self) -> Vec<u32> {
        let has_failed = |finished: &&StepFinished| finished.status != StepStatus::Skipped && !is_good(finished);
        self.ended().filter(has_failed).map(|finished| finished.step_id).collect()
    }

    /// The steps that have ended, by number.
    pub fn ended(&self) -> impl Iterator<Item = &StepFinished> {
        self.states.values().filter_map(|state| match state {
            State::Ended(finished) => Some(finished),
            State::Waiting | State::Running => None,
        })
    }

    /// The results of the steps that ended well.
    #[must_use]
    pub fn results(&self) -> Results<'_> {
        self.ended().filter(|finished| is_good(finished)).map(|one| (one.step_id, &one.result)).collect()
    }

    /// The steps of a new plan whose results stay valid: they succeeded, and they and all steps that they need are the
    /// same, apart from their descriptions.
    #[must_use]
    pub fn kept(&self, steps: &[PlanStep]) -> Vec<u32> {
        let mut kept = Vec::new();
        for step in steps {
            let same = |old: &PlanStep| {
                (&old.tool_name, &old.tool_input, &old.check) == (&step.tool_name, &step.tool_input, &step.check)
                    && set(&old.depends_on) == set(&step.depends_on)
            };
            let before = self.step(step.step_id).filter(|old| same(old));
            let stands = step.depends_on.iter().all(|on| kept.contains(on)) && self.succeeded(step.step_id);
            if before.is_some() && stands {
                kept.push(step.step_id);
            }
        }
        kept
    }

    /// The facts for the decision.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let needed: BTreeSet<u32> = self.steps().iter().flat_map(|step| step.depends_on.iter().copied()).collect();
        let passed = |step: &u32| {
            let check = self.ended().find(|finished| finished.step_id == *step).and_then(|one| one.check.as_ref());
            check.is_some_and(|check| check.passed)
        };
        let mut last = self.states.keys().filter(|step| !needed.contains(step)).peekable();
        Facts {
            steps: self.states.keys().copied().collect(),
            failed: self.failed(),
            proven: last.peek().is_some() && last.all(passed),
            retries: self.retries,
        }
    }

    #[must_use]
    pub fn plan(&self) -> Option<&PlanCreated> {
        self.plan.as_ref()
    }

    /// The steps of the plan; none without a plan.
    #[must_use]
    pub fn steps(&self) -> &[PlanStep] {
        self.plan.as_ref().map_or(&[], |plan| &plan.steps)
    }

    #[must_use]
    pub fn step(&self, step: u32) -> Option<&PlanStep> {
        self.steps().iter().find(|one| one.step_id == step)
    }

    #[must_use]
    pub fn state(&self, step: u32) -> Option<&State> {
        self.states.get(&step)
    }

    /// The number of the next attempt of a step, from 1.
    #[must_use]
    pub fn next_attempt(&self, step: u32) -> u32 {
        self.attempts.get(&step).map_or(1, |attempt| attempt + 1)
    }

    /// The revision that a new plan gets, from 1.
    #[must_use]
    pub fn next_revision(&self) -> u32 {
        self.plan.as_ref().filter(|_| self.closed.is_none()).map_or(1, |plan| plan.revision + 1)
    }

    /// The change to a step that the last judgement asks for.
    #[must_use]
    pub fn modification(&self, step: u32) -> Option<&str> {
        self.modifications.get(&step).map(String::as_str).filter(|text| !text.is_empty())
    }

    #[must_use]
    pub fn reflections(&self) -> &[Reflection] {
        &self.reflections
    }

    /// Retries and new plans so far.
    #[must_use]
    pub fn retries(&self) -> u32 {
        self.retries
    }
}

fn is_good(finished: &StepFinished) -> bool {
    finished.status == StepStatus::Ok && finished.check.as_ref().is_none_or(|check| check.passed)
}

fn set(steps: &[u32]) -> BTreeSet<u32> {
    steps.iter().copied().collect()
}
