//! The machine of a plan, by tables.

use serde_json::{Value, json};

use crate::conversation::event::plan::{
    self, Evaluation, PlanCreated, PlanStep, ProgramCheck, Reflection, Score, ScoreDecision, StepCheck,
    StepFinished, StepStarted, StepStatus,
};

use super::super::progress::{PlanAction, PlanProgress};
use super::super::reply::{ReflectorAction, ReflectorReply, RetryDetails};
use super::super::verdict::{MOST_RETRIES, decide_step};

pub(super) fn step(step_id: u32, input: Value, depends_on: &[u32]) -> PlanStep {
    PlanStep {
        step_id,
        tool_name: "t".to_owned(),
        tool_input: input,
        depends_on: depends_on.to_vec(),
        ..PlanStep::default()
    }
}

/// Steps that differ in nothing but what they need.
fn steps(needs: &[&[u32]]) -> Vec<PlanStep> {
    (1..).zip(needs).map(|(id, on)| step(id, json!({ "id": id }), on)).collect()
}

pub(super) fn planned(revision: u32, steps: &[PlanStep], kept: &[u32]) -> plan::PlanEvent {
    plan::PlanEvent::Planned(PlanCreated {
        request: "r".to_owned(),
        revision,
        steps: steps.to_vec(),
        kept: kept.to_vec(),
        ..PlanCreated::default()
    })
}

pub(super) fn started(machine: &PlanProgress, step_id: u32) -> plan::PlanEvent {
    let (tool_name, description) = (String::new(), String::new());
    let attempt = machine.next_attempt(step_id);
    plan::PlanEvent::Started(StepStarted { step_id, name: None, attempt, tool_name, description })
}

pub(super) fn finished(step_id: u32, status: StepStatus, check: Option<bool>, result: Value) -> plan::PlanEvent {
    plan::PlanEvent::Finished(StepFinished {
        step_id,
        name: None,
        attempt: 1,
        status,
        summary: String::new(),
        check: check.map(|passed| ProgramCheck { passed, detail: String::new() }),
        duration_ms: 0,
        cut: false,
        result,
    })
}

pub(super) fn ok(step_id: u32) -> plan::PlanEvent {
    finished(step_id, StepStatus::Ok, None, json!(step_id))
}

pub(super) fn failed(step_id: u32) -> plan::PlanEvent {
    finished(step_id, StepStatus::Failed, None, Value::Null)
}

pub(super) fn reply(scores: [u8; 3], action: ReflectorAction, step_id: Option<u32>) -> ReflectorReply {
    let [completeness, correctness, format] = scores.map(|score| Score { score, reason: String::new() });
    let retry_details = RetryDetails { step_id, modification: "m".to_owned() };
    let evaluation = Evaluation { completeness, correctness, format };
    ReflectorReply { evaluation, overall_pass: true, action, retry_details }
}

pub(super) fn judged(machine: &PlanProgress, reply: ReflectorReply) -> plan::PlanEvent {
    let facts = machine.facts();
    let decision = decide_step(&reply, &facts);
    let ReflectorReply { evaluation, overall_pass, .. } = reply;
    plan::PlanEvent::Reflected(Reflection { evaluation, overall_pass, decision, retries: facts.retries })
}

fn reflected(decision: ScoreDecision) -> plan::PlanEvent {
    let ReflectorReply { evaluation, overall_pass, .. } = reply([1, 1, 1], ReflectorAction::Replan, None);
    plan::PlanEvent::Reflected(Reflection { evaluation, overall_pass, decision, retries: 0 })
}

fn again(step_id: u32) -> plan::PlanEvent {
    reflected(ScoreDecision::RetryStep { step_id, modification: "m".to_owned() })
}

fn anew() -> plan::PlanEvent {
    reflected(ScoreDecision::Replan { modification: "m".to_owned() })
}

fn closed() -> plan::PlanEvent {
    plan::PlanEvent::Closed { why: "dropped".to_owned() }
}

#[test]
fn what_is_next_follows_from_what_happened() {
    let begun = |step_id| started(&PlanProgress::default(), step_id);
    // Two steps side by side, then one that needs both.
    let diamond = || planned(1, &steps(&[&[], &[], &[1, 2]]), &[]);
    let accepted = || reflected(ScoreDecision::Accept);
    let replan = || PlanAction::Plan { modification: Some("m".to_owned()) };
    let table: Vec<(&str, Vec<plan::PlanEvent>, PlanAction)> = vec![
        ("nothing", vec![], PlanAction::Plan { modification: None }),
        ("a plan", vec![diamond()], PlanAction::Start(vec![1, 2])),
        ("one runs", vec![diamond(), begun(1)], PlanAction::Start(vec![2])),
        ("both run", vec![diamond(), begun(1), begun(2)], PlanAction::Wait),
        ("one is done", vec![diamond(), begun(1), begun(2), ok(1)], PlanAction::Wait),
        ("both are done", vec![diamond(), ok(1), ok(2)], PlanAction::Start(vec![3])),
        ("all is done", vec![diamond(), ok(1), ok(2), ok(3)], PlanAction::Reflect),
        ("one failed", vec![diamond(), begun(2), failed(1)], PlanAction::Skip(vec![3])),
        (
            "one was not allowed",
            vec![planned(1, &steps(&[&[], &[]]), &[]), ok(2), finished(1, StepStatus::Denied, None, Value::Null)],
            PlanAction::Escalate { why: "step 1 was not allowed: ".to_owned() },
        ),
        (
            "one failed and the other runs",
            vec![diamond(), begun(2), failed(1), finished(3, StepStatus::Skipped, None, Value::Null)],
            PlanAction::Wait,
        ),
        (
            "one failed and the other is done",
            vec![diamond(), ok(2), failed(1), finished(3, StepStatus::Skipped, None, Value::Null)],
            PlanAction::Reflect,
        ),
        (
            "a check failed",
            vec![diamond(), ok(2), finished(1, StepStatus::Ok, Some(false), json!(1))],
            PlanAction::Skip(vec![3]),
        ),
        ("accepted", vec![diamond(), ok(1), ok(2), ok(3), accepted()], PlanAction::Answer),
        (
            "escalated",
            vec![diamond(), reflected(ScoreDecision::Escalate { why: "w".to_owned() })],
            PlanAction::Escalate { why: "w".to_owned() },
        ),
        (
            "a retry voids what depends on it",
            vec![diamond(), ok(1), ok(2), ok(3), again(1)],
            PlanAction::Start(vec![1]),
        ),
        (
            "a retry revives what was skipped",
            vec![
                diamond(),
                ok(2),
                failed(1),
                finished(3, StepStatus::Skipped, None, Value::Null),
                again(1),
                ok(1),
            ],
            PlanAction::Start(vec![3]),
        ),
        ("a retry of a last step", vec![diamond(), ok(1), ok(2), ok(3), again(3)], PlanAction::Start(vec![3])),
        ("a retry of nothing", vec![diamond(), ok(1), ok(2), ok(3), again(9)], PlanAction::Reflect),
        ("a new plan is due", vec![diamond(), ok(1), anew()], replan()),
        ("closed", vec![diamond(), closed()], PlanAction::Over),
        ("a request after it", vec![diamond(), ok(1), closed(), diamond()], PlanAction::Start(vec![1, 2])),
        ("steps that there are not", vec![diamond(), begun(9), ok(9)], PlanAction::Start(vec![1, 2])),
    ];
    for (name, happened, expected) in table {
        let mut machine = PlanProgress::default();
        for one in &happened {
            machine.apply(one);
        }
        assert_eq!(machine.next(), expected, "{name}");
    }
}

#[test]
fn a_plan_is_gone_on_with_until_it_is_over() {
    let plan = || planned(1, &steps(&[&[], &[1]]), &[]);
    let running = started(&PlanProgress::default(), 1);
    for (happened, is_unfinished, next) in [
        (vec![], false, PlanAction::Plan { modification: None }),
        (vec![plan()], true, PlanAction::Start(vec![1])),
        (vec![plan(), running], true, PlanAction::Doubt(vec![1])),
        (vec![plan(), ok(1)], true, PlanAction::Start(vec![2])),
        (vec![plan(), ok(1), ok(2)], true, PlanAction::Reflect),
        (vec![plan(), ok(1), ok(2), anew()], true, PlanAction::Plan { modification: Some("m".to_owned()) }),
        (vec![plan(), reflected(ScoreDecision::Accept)], true, PlanAction::Answer),
        (vec![plan(), closed()], false, PlanAction::Over),
    ] {
        let machine = PlanProgress::replay(&happened);
        assert_eq!((machine.is_unfinished(), machine.next()), (is_unfinished, next), "{happened:?}");
    }
}

#[test]
fn a_new_plan_keeps_what_it_repeats() {
    let old = steps(&[&[], &[1], &[2], &[]]);
    let with = |change: &dyn Fn(&mut Vec<PlanStep>)| {
        let mut steps = old.clone();
        change(&mut steps);
        steps
    };
    let input = |steps: &mut Vec<PlanStep>| steps[1].tool_input = json!({ "id": 20 });
    let description = |steps: &mut Vec<PlanStep>| steps[1].description = "in other words".to_owned();
    let tool = |steps: &mut Vec<PlanStep>| steps[0].tool_name = "u".to_owned();
    let needs = |steps: &mut Vec<PlanStep>| steps[2].depends_on = vec![1, 2];
    let check = |steps: &mut Vec<PlanStep>| steps[3].check = Some(StepCheck::File("a".to_owned()));
    let fewer = |steps: &mut Vec<PlanStep>| drop(steps.remove(0));
    let all_done = [ok(1), ok(2), ok(3), ok(4)];
    let some_done = [ok(1), failed(2), finished(4, StepStatus::Ok, Some(false), json!(4))];
    for (name, steps, done, kept) in [
        ("the same", old.clone(), &all_done[..], vec![1, 2, 3, 4]),
        ("another description", with(&description), &all_done, vec![1, 2, 3, 4]),
        ("another input, and what needs it", with(&input), &all_done, vec![1, 4]),
        ("another tool, and what needs it", with(&tool), &all_done, vec![4]),
        ("other needs", with(&needs), &all_done, vec![1, 2, 4]),
        ("another check", with(&check), &all_done, vec![1, 2, 3]),
        ("what it needs is gone", with(&fewer), &all_done, vec![4]),
        ("what did not succeed", old.clone(), &some_done, vec![1]),
    ] {
        let mut machine = PlanProgress::default();
        machine.apply(&planned(1, &old, &[]));
        done.iter().chain([&anew()]).for_each(|one| machine.apply(one));
        assert_eq!(machine.find_kept(&steps), kept, "{name}");
        machine.apply(&planned(2, &steps, &kept));
        assert_eq!(machine.results().into_keys().collect::<Vec<_>>(), kept, "{name}");
        assert!(machine.ready().iter().all(|step| !kept.contains(step)), "{name}");
    }
}

#[test]
fn what_is_known_before_a_judgement() {
    let checked = |id, passed| finished(id, StepStatus::Ok, Some(passed), json!(id));
    // Steps 2 and 3 are last.
    let plan = planned(1, &steps(&[&[], &[1], &[1]]), &[]);
    for (done, failed, proven) in [
        ([ok(1), ok(2), ok(3)], vec![], false),
        ([ok(1), checked(2, true), checked(3, true)], vec![], true),
        ([checked(1, true), checked(2, true), ok(3)], vec![], false),
        ([ok(1), checked(2, true), checked(3, false)], vec![3], false),
        ([ok(1), checked(2, true), failed(3)], vec![3], false),
        ([failed(1), finished(2, StepStatus::Skipped, None, Value::Null), ok(3)], vec![1], false),
    ] {
        let machine = PlanProgress::replay([&plan].into_iter().chain(&done));
        let facts = machine.facts();
        assert_eq!((facts.failed, facts.proven), (failed, proven), "{done:?}");
    }
    assert!(!PlanProgress::default().facts().proven);
}

#[test]
fn a_planner_that_loops_and_a_reflector_that_always_praises_come_to_an_end() {
    let plan = steps(&[&[], &[1]]);
    for (outcome, reply, expected) in [
        (ok as fn(u32) -> _, reply([1, 1, 1], ReflectorAction::Replan, None), 2),
        (ok, reply([1, 1, 1], ReflectorAction::RetryStep, Some(2)), 5),
        (failed, reply([5, 5, 5], ReflectorAction::Accept, None), 4),
    ] {
        let mut machine = PlanProgress::default();
        let mut runs = 0;
        let why = loop {
            let happened = match machine.next() {
                PlanAction::Plan { .. } => planned(machine.next_revision(), &plan, &machine.find_kept(&plan)),
                PlanAction::Start(ready) => {
                    runs += 1;
                    outcome(ready[0])
                }
                PlanAction::Skip(blocked) => finished(blocked[0], StepStatus::Skipped, None, Value::Null),
                PlanAction::Reflect => judged(&machine, reply.clone()),
                PlanAction::Escalate { why } => break why,
                next => panic!("{next:?}"),
            };
            machine.apply(&happened);
        };
        assert!(why.starts_with("3 retries are used up"), "{why}");
        assert_eq!((machine.retries(), runs), (MOST_RETRIES, expected));
    }
}

#[test]
fn what_may_have_run_in_part_stays_in_doubt_until_somebody_decides() {
    let steps = steps(&[&[], &[]]);
    let begun = started(&PlanProgress::default(), 1);
    let mut machine = PlanProgress::replay(&[planned(1, &steps, &[]), begun]);
    machine.apply(&planned(2, &steps, &[]));
    assert_eq!(machine.next(), PlanAction::Doubt(vec![1]), "the same step in a new plan");
    let mut approved = machine.clone();
    let plan::PlanEvent::Planned(created) = planned(3, &steps, &[]) else { unreachable!("it is a plan") };
    approved.apply(&plan::PlanEvent::Planned(PlanCreated { approved: true, ..created }));
    assert_eq!(approved.next(), PlanAction::Start(vec![1, 2]), "a person read it");
    machine.allow_again(1);
    assert_eq!(machine.next(), PlanAction::Start(vec![1, 2]));
}
