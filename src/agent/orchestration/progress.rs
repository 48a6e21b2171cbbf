//! The state machine of a plan: a fold over its events. It has no side effects: a driver asks what may run, runs it,
//! and applies the outcome. A resumed session applies the events of its log and goes on.

use std::collections::{BTreeMap, BTreeSet};

use crate::conversation::event::plan::{
    self, PlanAuthor, PlanCreated, PlanStep, Reflection, ScoreDecision, StepFinished, StepStarted, StepStatus,
};

use super::graph;
use super::reference::{self, Reference, Results};

/// The progress of a request that is carried out by a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanProgress {
    plan: Option<PlanCreated>,
    states: BTreeMap<u32, PlanStepState>,
    /// Attempts of each step in this revision.
    attempts: BTreeMap<u32, u32>,
    /// The changes that retries make to steps.
    modifications: BTreeMap<u32, String>,
    /// The last judgement of this revision, unless it led to a retry of a step.
    decision: Option<ScoreDecision>,
    reflections: Vec<Reflection>,
    retries: u32,
    closed: Option<String>,
}

/// The state of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanStepState {
    Waiting,
    Running,
    /// It was running when the work on the plan was dropped: it may have run in part.
    Interrupted,
    /// It ended, with or without success.
    Ended(StepFinished),
}

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanAction {
    /// Ask a planner; for a new plan, with what the last one lacked.
    Plan { modification: Option<String> },
    /// Skip these steps: a step that they need failed.
    Skip(Vec<u32>),
    /// Decide whether these steps, which may have run in part, run again: [`PlanProgress::allow_again`].
    Doubt(Vec<u32>),
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
pub struct PlanFacts {
    pub steps: BTreeSet<u32>,
    /// Steps that failed, or whose check did. Skipped ones are not among them.
    pub failed: Vec<u32>,
    /// True if each step that no other needs has a check that passed.
    pub proven: bool,
    /// Retries and new plans so far.
    pub retries: u32,
}

impl PlanProgress {
    /// Rebuilds the state from a log: nothing is running any more.
    pub fn replay<'p>(happened: impl IntoIterator<Item = &'p plan::PlanEvent>) -> Self {
        let mut progress = Self::default();
        happened.into_iter().for_each(|one| progress.apply(one));
        progress.interrupt();
        progress
    }

    /// Applies one event.
    pub fn apply(&mut self, happened: &plan::PlanEvent) {
        match happened {
            plan::PlanEvent::Planned(created) => self.accept_plan(created),
            // Steps of flows have names.
            plan::PlanEvent::Begun { .. }
            | plan::PlanEvent::Started(StepStarted { name: Some(_), .. })
            | plan::PlanEvent::Finished(StepFinished { name: Some(_), .. }) => {}
            plan::PlanEvent::Started(started) => {
                if let Some(state) = self.states.get_mut(&started.step_id) {
                    *state = PlanStepState::Running;
                    self.attempts.insert(started.step_id, started.attempt);
                }
            }
            plan::PlanEvent::Finished(finished) => {
                if let Some(state) = self.states.get_mut(&finished.step_id) {
                    *state = PlanStepState::Ended(finished.clone());
                }
            }
            plan::PlanEvent::Reflected(reflection) => self.reflected(reflection),
            plan::PlanEvent::Closed { why } => self.closed = Some(why.clone()),
        }
    }

    /// Marks running steps, because the work on them was dropped.
    pub fn interrupt(&mut self) {
        let running = self.states.values_mut().filter(|state| **state == PlanStepState::Running);
        running.for_each(|state| *state = PlanStepState::Interrupted);
    }

    /// Lets a step run again that may have run in part.
    pub fn allow_again(&mut self, step: u32) {
        if let Some(state) = self.states.get_mut(&step).filter(|state| **state == PlanStepState::Interrupted) {
            *state = PlanStepState::Waiting;
        }
    }

    fn accept_plan(&mut self, created: &PlanCreated) {
        let mut old = std::mem::take(self);
        old.interrupt();
        if created.revision > 1 && old.closed.is_none() {
            let kept = old.find_kept(&created.steps);
            // What may have run in part stays in doubt, unless a person who read the plan wants it to run.
            let in_doubt = |step: &PlanStep| {
                let state = old.states.get(&step.step_id);
                !created.approved
                    && state == Some(&PlanStepState::Interrupted)
                    && old.step(step.step_id).is_some_and(|old| is_same_call(old, step))
            };
            let doubted: BTreeSet<u32> =
                created.steps.iter().filter(|step| in_doubt(step)).map(|step| step.step_id).collect();
            let stays = |step: &u32| kept.contains(step) && created.kept.contains(step) || doubted.contains(step);
            self.states = old.states.into_iter().filter(|(step, _)| stays(step)).collect();
            self.reflections = old.reflections;
            self.retries = old.retries;
        }
        for step in &created.steps {
            self.states.entry(step.step_id).or_insert(PlanStepState::Waiting);
        }
        self.plan = Some(created.clone());
    }

    fn reflected(&mut self, reflection: &Reflection) {
        self.reflections.push(reflection.clone());
        match &reflection.decision {
            ScoreDecision::RetryStep { step_id, modification } => {
                self.retries += 1;
                self.modifications.insert(*step_id, modification.clone());
                let needed = graph::collect_needed(self.steps());
                let void = |step: &u32| step == step_id || needed.get(step).is_some_and(|on| on.contains(step_id));
                let void = self.states.iter_mut().filter(|(step, _)| void(step));
                void.for_each(|(_, state)| *state = PlanStepState::Waiting);
            }
            other => {
                self.retries += u32::from(matches!(other, ScoreDecision::Replan { .. }));
                self.decision = Some(other.clone());
            }
        }
    }

    /// Decides the next thing to do.
    pub fn next(&self) -> PlanAction {
        match &self.decision {
            _ if self.closed.is_some() => return PlanAction::Over,
            _ if self.plan.is_none() => return PlanAction::Plan { modification: None },
            Some(ScoreDecision::Accept) => return PlanAction::Answer,
            Some(ScoreDecision::Escalate { why }) => return PlanAction::Escalate { why: why.clone() },
            Some(ScoreDecision::Replan { modification }) => {
                return PlanAction::Plan { modification: Some(modification.clone()) };
            }
            Some(ScoreDecision::RetryStep { .. }) | None => {}
        }
        let blocked = self.find_blocked();
        if !blocked.is_empty() {
            return PlanAction::Skip(blocked);
        }
        let doubted = self.list_in(&PlanStepState::Interrupted);
        if !doubted.is_empty() {
            return PlanAction::Doubt(doubted);
        }
        match self.ready() {
            ready if !ready.is_empty() => PlanAction::Start(ready),
            _ if self.states.values().any(|state| *state == PlanStepState::Running) => PlanAction::Wait,
            _ => self.find_denial().map_or(PlanAction::Reflect, |why| PlanAction::Escalate { why }),
        }
    }

    /// Says which steps were not allowed, if any: no retry changes that.
    fn find_denial(&self) -> Option<String> {
        let denied = self.list_ended().filter(|finished| finished.status == StepStatus::Denied);
        let told: Vec<String> =
            denied.map(|one| format!("step {} was not allowed: {}", one.step_id, one.summary)).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    fn list_in(&self, state: &PlanStepState) -> Vec<u32> {
        self.states.iter().filter(|(_, now)| *now == state).map(|(step, _)| *step).collect()
    }

    /// The steps that may start, in the order of the plan: all steps that they need have succeeded.
    pub fn ready(&self) -> Vec<u32> {
        self.find_waiting(|step| step.depends_on.iter().all(|on| self.has_succeeded(*on)))
    }

    /// The steps that will never run: a step that they need did not succeed.
    pub fn find_blocked(&self) -> Vec<u32> {
        let ended = |on: &u32| matches!(self.states.get(on), Some(PlanStepState::Ended(_)));
        self.find_waiting(|step| step.depends_on.iter().any(|on| ended(on) && !self.has_succeeded(*on)))
    }

    fn find_waiting(&self, holds: impl Fn(&PlanStep) -> bool) -> Vec<u32> {
        let waits = |step: &&PlanStep| self.states.get(&step.step_id) == Some(&PlanStepState::Waiting);
        self.steps().iter().filter(waits).filter(|step| holds(step)).map(|step| step.step_id).collect()
    }

    /// True if every step has ended.
    pub fn is_done(&self) -> bool {
        self.plan.is_some() && self.states.values().all(|state| matches!(state, PlanStepState::Ended(_)))
    }

    /// True if there is a plan that is not closed.
    pub fn is_unfinished(&self) -> bool {
        self.plan.is_some() && self.closed.is_none()
    }

    /// True if an unfinished plan waits for a word of the model or a person.
    pub fn waits_for_word(&self) -> bool {
        self.is_unfinished() && self.plan.as_ref().is_some_and(|plan| plan.author != PlanAuthor::Flow)
    }

    /// True if a step ended well, its check included.
    pub fn has_succeeded(&self, step: u32) -> bool {
        matches!(self.states.get(&step), Some(PlanStepState::Ended(finished)) if is_good(finished))
    }

    /// The steps that failed, or whose check did. Skipped ones are not among them.
    pub fn find_failed(&self) -> Vec<u32> {
        let has_failed = |finished: &&StepFinished| finished.status != StepStatus::Skipped && !is_good(finished);
        self.list_ended().filter(has_failed).map(|finished| finished.step_id).collect()
    }

    /// The steps that have ended, by number.
    pub fn list_ended(&self) -> impl Iterator<Item = &StepFinished> {
        self.states.values().filter_map(|state| match state {
            PlanStepState::Ended(finished) => Some(finished),
            PlanStepState::Waiting | PlanStepState::Running | PlanStepState::Interrupted => None,
        })
    }

    /// The end of a step, if it has ended.
    pub fn find_end(&self, step: u32) -> Option<&StepFinished> {
        self.list_ended().find(|finished| finished.step_id == step)
    }

    /// The results of the steps that ended well.
    pub fn results(&self) -> Results<'_> {
        self.list_ended().filter(|finished| is_good(finished)).map(|one| (one.step_id, &one.result)).collect()
    }

    /// Says which part of a result a step needs that was cut off, if there is one.
    pub fn find_cut(&self, step: &PlanStep) -> Option<String> {
        let results = self.results();
        let lacks = |read: &Reference| {
            let is_cut = self.find_end(read.step).is_some_and(|ended| ended.cut);
            is_cut && read.value(&results).is_ok_and(|value| !(value.is_number() || value.is_boolean()))
        };
        let read = reference::find_references(&step.tool_input).references.into_iter().find(lacks)?;
        let summary = self.find_end(read.step).map_or("", |ended| ended.summary.as_str());
        Some(format!(
            "`{read}` is not whole: the result of step {} was cut ({summary}); let that step ask for less",
            read.step
        ))
    }

    /// The steps of a new plan whose results stay valid: they succeeded, and they and all steps that they need are the
    /// same, apart from their descriptions.
    pub fn find_kept(&self, steps: &[PlanStep]) -> Vec<u32> {
        let mut kept = Vec::new();
        for step in steps {
            let stands = step.depends_on.iter().all(|on| kept.contains(on)) && self.has_succeeded(step.step_id);
            if stands && self.step(step.step_id).is_some_and(|old| is_same_step(old, step)) {
                kept.push(step.step_id);
            }
        }
        kept
    }

    /// The facts for the decision.
    pub fn facts(&self) -> PlanFacts {
        let needed: BTreeSet<u32> = self.steps().iter().flat_map(|step| step.depends_on.iter().copied()).collect();
        let passed = |step: &u32| {
            let check = self.find_end(*step).and_then(|finished| finished.check.as_ref());
            check.is_some_and(|check| check.passed)
        };
        let mut last = self.states.keys().filter(|step| !needed.contains(step)).peekable();
        PlanFacts {
            steps: self.states.keys().copied().collect(),
            failed: self.find_failed(),
            proven: last.peek().is_some() && last.all(passed),
            retries: self.retries,
        }
    }

    pub fn plan(&self) -> Option<&PlanCreated> {
        self.plan.as_ref()
    }

    /// The steps of the plan; none without a plan.
    pub fn steps(&self) -> &[PlanStep] {
        self.plan.as_ref().map_or(&[], |plan| &plan.steps)
    }

    pub fn step(&self, step: u32) -> Option<&PlanStep> {
        self.steps().iter().find(|one| one.step_id == step)
    }

    pub fn state(&self, step: u32) -> Option<&PlanStepState> {
        self.states.get(&step)
    }

    /// The number of the next attempt of a step, from 1.
    pub fn next_attempt(&self, step: u32) -> u32 {
        self.attempts.get(&step).map_or(1, |attempt| attempt + 1)
    }

    /// The revision that a new plan gets, from 1.
    pub fn next_revision(&self) -> u32 {
        self.plan.as_ref().filter(|_| self.closed.is_none()).map_or(1, |plan| plan.revision + 1)
    }

    /// The change to a step that the last judgement asks for.
    pub fn modification(&self, step: u32) -> Option<&str> {
        self.modifications.get(&step).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub fn reflections(&self) -> &[Reflection] {
        &self.reflections
    }

    /// Retries and new plans so far.
    pub fn retries(&self) -> u32 {
        self.retries
    }
}

/// True if these steps are the same, apart from their descriptions.
pub fn are_same_steps(old: &[PlanStep], new: &[PlanStep]) -> bool {
    let is_known = |step: &PlanStep| old.iter().any(|old| old.step_id == step.step_id && is_same_step(old, step));
    old.len() == new.len() && new.iter().all(is_known)
}

fn is_same_step(old: &PlanStep, new: &PlanStep) -> bool {
    let are_same = (&old.check, collect_set(&old.depends_on)) == (&new.check, collect_set(&new.depends_on));
    are_same && is_same_call(old, new)
}

fn is_same_call(old: &PlanStep, new: &PlanStep) -> bool {
    (&old.tool_name, &old.tool_input) == (&new.tool_name, &new.tool_input)
}

fn is_good(finished: &StepFinished) -> bool {
    finished.status == StepStatus::Ok && finished.check.as_ref().is_none_or(|check| check.passed)
}

fn collect_set(steps: &[u32]) -> BTreeSet<u32> {
    steps.iter().copied().collect()
}
