//! The machine of a plan, by tables.

use serde_json::{Value, json};

use crate::conversation::event::plan::{
    self, Checked, Decision, Evaluation, PlanCreated, PlanStep, Reflection, Score, StepCheck, StepFinished,
    StepStarted, StepStatus,
};

use super::super::progress::{Next, Progress};
use super::super::reply::{ReflectorAction, ReflectorReply, RetryDetails};
use super::super::verdict::{MOST_RETRIES, decide};

pub(super) fn step(step_id: u32, input: Value, depends_on: &[u32]) -> PlanStep {
    PlanStep {
        step_id,
        description: String::new(),
        tool_name: "t".to_owned(),
        tool_input: input,
        depends_on: depends_on.to_vec(),
        check: None,
    }
}

/// Steps that differ in nothing but what they need.
fn steps(needs: &[&[u32]]) -> Vec<PlanStep> {
    (1..).zip(needs).map(|(id, on)| step(id, json!({ "id": id }), on)).collect()
}

pub(super) fn planned(revision: u32, steps: &[PlanStep], kept: &[u32]) -> plan::Progress {
    plan::Progress::Planned(PlanCreated {
        request: "r".to_owned(),
        revision,
        analysis: String::new(),
        steps: steps.to_vec(),
        kept: kept.to_vec(),
    })
}

pub(super) fn started(machine: &Progress, step_id: u32) -> plan::Progress {
    let (tool_name, description) = (String::new(), String::new());
    let attempt = machine.next_attempt(step_id);
    plan::Progress::Started(StepStarted { step_id, name: None, attempt, tool_name, description })
}

pub(super) fn finished(step_id: u32, status: StepStatus, check: Option<bool>, result: Value) -> plan::Progress {
    plan::Progress::Finished(StepFinished {
        step_id,
        name: None,
        attempt: 1,
        status,
        summary: String::new(),
        check: check.map(|passed| Checked { passed, detail: String::new() }),
        duration_ms: 0,
        result,
    })
}

pub(super) fn ok(step_id: u32) -> plan::Progress {
    finished(step_id, StepStatus::Ok, None, json!(step_id))
}

pub(super) fn failed(step_id: u32) -> plan::Progress {
    finished(step_id, StepStatus::Failed, None, Value::Null)
}

pub(super) fn reply(scores: [u8; 3], action: ReflectorAction, step_id: Option<u32>) -> ReflectorReply {
    let [completeness, correctness, format] = scores.map(|score| Score { score, reason: String::new() });
    let retry_details = RetryDetails { step_id, modification: "m".to_owned() };
    let evaluation = Evaluation { completeness, correctness, format };
    ReflectorReply { evaluation, overall_pass: true, action, retry_details }
}

pub(super) fn judged(machine: &Progress, reply: ReflectorReply) -> plan::Progress {
    let facts = machine.facts();
    let decision = decide(&reply, &facts);
    let ReflectorReply { evaluation, overall_pass, .. } = reply;
    plan::Progress::Reflected(Reflection { evaluation, overall_pass, decision, retries: facts.retries })
}

fn reflected(decision: Decision) -> plan::Progress {
    let ReflectorReply { evaluation, overall_pass, .. } = reply([1, 1, 1], ReflectorAction::Replan, None);
    plan::Progress::Reflected(Reflection { evaluation, overall_pass, decision, retries: 0 })
}

fn again(step_id: u32) -> plan::Progress {
    reflected(Decision::RetryStep { step_id, modification: "m".to_owned() })
}

fn anew() -> plan::Progress {
    reflected(Decision::Replan { modification: "m".to_owned() })
}

fn closed() -> plan::Progress {
    plan::Progress::Closed { why: "dropped".to_owned() }
}

#[test]
fn what_is_next_follows_from_what_happened() {
    let begun = |step_id| started(&Progress::new(), step_id);
    // Two steps side by side, then one that needs both.
    let diamond = || planned(1, &steps(&[&[], &[], &[1, 2]]), &[]);
    let accepted = || reflected(Decision::Accept);
    let replan = || Next::Plan { modification: Some("m".to_owned()) };
    let table: Vec<(&str, Vec<plan::Progress>, Next)> = vec![
        ("nothing", vec![], Next::Plan { modification: None }),
        ("a plan", vec![diamond()], Next::Start(vec![1, 2])),
        ("one runs", vec![diamond(), begun(1)], Next::Start(vec![2])),
        ("both run", vec![diamond(), begun(1), begun(2)], Next::Wait),
        ("one is done", vec![diamond(), begun(1), begun(2), ok(1)], Next::Wait),
        ("both are done", vec![diamond(), ok(1), ok(2)], Next::Start(vec![3])),
        ("all is done", vec![diamond(), ok(1), ok(2), ok(3)], Next::Reflect),
        ("one failed", vec![diamond(), begun(2), failed(1)], Next::Skip(vec![3])),
        (
            "one failed and the other runs",
            vec![diamond(), begun(2), failed(1), finished(3, StepStatus::Skipped, None, Value::Null)],
            Next::Wait,
        ),
        (
            "one failed and the other is done",
            vec![diamond(), ok(2), failed(1), finished(3, StepStatus::Skipped, None, Value::Null)],
            Next::Reflect,
        ),
        (
            "a check failed",
            vec![diamond(), ok(2), finished(1, StepStatus::Ok, Some(false), json!(1))],
            Next::Skip(vec![3]),
        ),
        ("accepted", vec![diamond(), ok(1), ok(2), ok(3), accepted()], Next::Answer),
        (
            "escalated",
            vec![diamond(), reflected(Decision::Escalate { why: "w".to_owned() })],
            Next::Escalate { why: "w".to_owned() },
        ),
        ("a retry voids what depends on it", vec![diamond(), ok(1), ok(2), ok(3), again(1)], Next::Start(vec![1])),
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
            Next::Start(vec![3]),
        ),
        ("a retry of a last step", vec![diamond(), ok(1), ok(2), ok(3), again(3)], Next::Start(vec![3])),
        ("a retry of nothing", vec![diamond(), ok(1), ok(2), ok(3), again(9)], Next::Reflect),
        ("a new plan is due", vec![diamond(), ok(1), anew()], replan()),
        ("closed", vec![diamond(), closed()], Next::Over),
        ("a request after it", vec![diamond(), ok(1), closed(), diamond()], Next::Start(vec![1, 2])),
        ("steps that there are not", vec![diamond(), begun(9), ok(9)], Next::Start(vec![1, 2])),
    ];
    for (name, happened, expected) in table {
        let mut machine = Progress::new();
        for one in &happened {
            machine.apply(one);
        }
        assert_eq!(machine.next(), expected, "{name}");
    }
}

#[test]
fn a_plan_is_gone_on_with_until_it_is_over() {
    let plan = || planned(1, &steps(&[&[], &[1]]), &[]);
    let running = started(&Progress::new(), 1);
    for (happened, is_unfinished, next) in [
        (vec![], false, Next::Plan { modification: None }),
        (vec![plan()], true, Next::Start(vec![1])),
        (vec![plan(), running], true, Next::Start(vec![1])),
        (vec![plan(), ok(1)], true, Next::Start(vec![2])),
        (vec![plan(), ok(1), ok(2)], true, Next::Reflect),
        (vec![plan(), ok(1), ok(2), anew()], true, Next::Plan { modification: Some("m".to_owned()) }),
        (vec![plan(), reflected(Decision::Accept)], true, Next::Answer),
        (vec![plan(), closed()], false, Next::Over),
    ] {
        let machine = Progress::replay(&happened);
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
        let mut machine = Progress::new();
        machine.apply(&planned(1, &old, &[]));
        done.iter().chain([&anew()]).for_each(|one| machine.apply(one));
        assert_eq!(machine.kept(&steps), kept, "{name}");
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
        let machine = Progress::replay([&plan].into_iter().chain(&done));
        let facts = machine.facts();
        assert_eq!((facts.failed, facts.proven), (failed, proven), "{done:?}");
    }
    assert!(!Progress::new().facts().proven);
}

#[test]
fn a_planner_that_loops_and_a_reflector_that_always_praises_come_to_an_end() {
    let plan = steps(&[&[], &[1]]);
    for (outcome, reply, expected) in [
        (ok as fn(u32) -> _, reply([1, 1, 1], ReflectorAction::Replan, None), 2),
        (ok, reply([1, 1, 1], ReflectorAction::RetryStep, Some(2)), 5),
        (failed, reply([5, 5, 5], ReflectorAction::Accept, None), 4),
    ] {
        let mut machine = Progress::new();
        let mut runs = 0;
        let why = loop {
            let happened = match machine.next() {
                Next::Plan { .. } => planned(machine.next_revision(), &plan, &machine.kept(&plan)),
                Next::Start(ready) => {
                    runs += 1;
                    outcome(ready[0])
                }
                Next::Skip(blocked) => finished(blocked[0], StepStatus::Skipped, None, Value::Null),
                Next::Reflect => judged(&machine, reply.clone()),
                Next::Escalate { why } => break why,
                next => panic!("{next:?}"),
            };
            machine.apply(&happened);
        };
        assert!(why.starts_with("3 retries are used up"), "{why}");
        assert_eq!((machine.retries(), runs), (MOST_RETRIES, expected));
    }
}
