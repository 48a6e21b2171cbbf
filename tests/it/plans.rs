//! The mode `plan` from outside: a planner, steps, checks, a reflector, the answer; and what interrupts it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server};

/// The person who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Router,
    Planner,
    Executor,
    Reflector,
    /// The model of the conversation.
    Model,
}

pub fn role(request: &Request) -> Role {
    let texts: Vec<&str> = request.messages().iter().filter_map(|message| message["content"].as_str()).collect();
    let text = texts.concat();
    [
        ("You route requests", Role::Router),
        ("You plan how", Role::Planner),
        ("You carry out one step", Role::Executor),
        ("You judge work", Role::Reflector),
    ]
    .into_iter()
    .find(|(words, _)| text.contains(words))
    .map_or(Role::Model, |(_, role)| role)
}

pub fn step(id: u32, tool: &str, input: &Value, after: &[u32]) -> Value {
    json!({ "step_id": id, "description": format!("step {id}"), "tool_name": tool, "tool_input": input, "depends_on": after })
}

pub fn plan(steps: &[Value]) -> Reply {
    let plan = json!({
        "analysis": "as asked", "plan": steps, "estimated_steps": steps.len(), "can_parallelize": [],
    });
    Reply::text(&plan.to_string())
}

pub fn judged([completeness, correctness, format]: [u8; 3], action: &str, step: Option<u32>) -> Reply {
    let score = |score: u8| json!({ "score": score, "reason": "seen" });
    let judged = json!({
        "evaluation": {
            "completeness": score(completeness), "correctness": score(correctness), "format": score(format),
        },
        "overall_pass": action == "accept",
        "action": action,
        "retry_details": { "step_id": step, "modification": if step.is_some() { "do it better" } else { "" } },
    });
    Reply::text(&judged.to_string())
}

pub fn accepted() -> Reply {
    judged([5, 5, 5], "accept", None)
}

/// Answers each role with its replies in order, the last one again and again; the model says `done`.
pub fn roles(replies: Vec<(Role, Vec<Reply>)>) -> Server {
    let asked = Arc::new(std::sync::Mutex::new(Vec::<Role>::new()));
    Server::answering(move |request, _| {
        let role = role(request);
        let mut asked = asked.lock().expect("no test panics here");
        let before = asked.iter().filter(|one| **one == role).count();
        asked.push(role);
        let own = replies.iter().find(|(of, _)| *of == role);
        own.map_or_else(|| Reply::text("done"), |(_, replies)| replies[before.min(replies.len() - 1)].clone())
    })
}

pub fn run(server: &Server, extra: &[&str]) -> Run {
    let approve = if extra.contains(&"--approve") { &[][..] } else { &["--approve", "edits"] };
    Run::task(server, "the request").args(["--mode", "plan"]).args(approve.to_vec()).args(extra.to_vec())
}

/// The text of a role's `n`-th request.
pub fn told(server: &Server, of: Role, n: usize) -> String {
    let requests = server.requests();
    let found = requests.iter().filter(|request| role(request) == of).nth(n);
    found.map(|request| request.user().to_owned()).unwrap_or_default()
}

pub fn asked(server: &Server) -> Vec<Role> {
    server.requests().iter().map(role).collect()
}

fn types(output: &Output) -> Vec<String> {
    let kinds = ["plan.created", "step.started", "step.finished", "reflection"];
    let events = output.events();
    let all = events.0.iter().filter_map(|event| event["type"].as_str());
    all.filter(|kind| kinds.contains(kind)).map(str::to_owned).collect()
}

#[test]
fn steps_run_by_themselves_and_only_roles_and_the_answer_ask_a_model() {
    let steps = [
        step(1, "list_dir", &json!({ "path": "in" }), &[]),
        step(2, "read_file", &json!({ "path": "a.txt" }), &[]),
        step(
            3,
            "write_file",
            &json!({ "path": "out.txt", "content": "first: $step_1_result.entries[0].name" }),
            &[1],
        ),
    ];
    let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Reflector, vec![accepted()])]);
    let output = run(&server, &["-o", "jsonl"]).file("in/x.txt", "x").file("a.txt", "alpha").run().success();
    assert_eq!(asked(&server), [Role::Planner, Role::Reflector, Role::Model], "{}", output.shown());
    assert_eq!(output.place.read("out.txt"), "first: x.txt");
    assert_eq!(types(&output).first().map(String::as_str), Some("plan.created"));
    assert_eq!(types(&output).last().map(String::as_str), Some("reflection"));
    let last = server.requests().pop().expect("the answer");
    assert_eq!(last.tool_results().len(), 3, "the results are part of the conversation");
    assert_eq!(output.events().one("run.completed")["result"], "done");
}

#[test]
fn a_plan_that_cannot_run_goes_back_once_with_all_its_mistakes() {
    let wrong = [
        step(1, "list_dirs", &json!({}), &[]),
        step(2, "write_file", &json!({ "path": 5 }), &[3]),
        step(3, "read_file", &json!({ "path": "$step_2_result" }), &[2]),
    ];
    let good = [step(1, "list_dir", &json!({ "path": "." }), &[])];
    let server =
        roles(vec![(Role::Planner, vec![plan(&wrong), plan(&good)]), (Role::Reflector, vec![accepted()])]);
    run(&server, &[]).run().success().stdout_is("done\n");
    let correction = told(&server, Role::Planner, 1);
    for part in ["Step 1", "list_dirs", "Step 2", "path", "Steps 2 and 3"] {
        assert!(correction.contains(part), "{part}: {correction}");
    }

    let server = roles(vec![(Role::Planner, vec![plan(&wrong)])]);
    run(&server, &[]).run().exits(1).stderr_has("given back");
    assert_eq!(asked(&server), [Role::Planner, Role::Planner], "it is asked again once");
}

#[test]
fn a_request_that_cannot_be_planned_ends_with_the_question() {
    let nothing =
        json!({ "analysis": "Which file do you mean?", "plan": [], "estimated_steps": 0, "can_parallelize": [] });
    let server = roles(vec![(Role::Planner, vec![Reply::text(&nothing.to_string())])]);
    run(&server, &[]).run().exits(1).stdout_is("Which file do you mean?\n");
}

#[test]
fn retries_count_to_three_and_then_the_task_is_given_back_with_what_was_found() {
    let steps = [step(1, "list_dir", &json!({ "path": "." }), &[])];
    let filled =
        json!({ "tool_call": { "name": "list_dir", "arguments": { "path": "." } }, "explanation": "as before" });
    let server = roles(vec![
        (Role::Planner, vec![plan(&steps)]),
        (Role::Executor, vec![Reply::text(&filled.to_string())]),
        (Role::Reflector, vec![judged([5, 2, 5], "retry_step", Some(1))]),
        (Role::Model, vec![Reply::text("Half of it was found.")]),
    ]);
    let output = run(&server, &["-o", "jsonl"]).run().exits(1);
    let events = output.events();
    let decisions: Vec<&str> =
        events.of("reflection").iter().filter_map(|event| event["action"].as_str()).collect();
    assert_eq!(decisions, ["retry_step", "retry_step", "retry_step", "escalate"]);
    assert_eq!(events.of("step.started").len(), 4, "one attempt and three retries");
    assert_eq!(events.one("run.completed")["result"], "Half of it was found.");
    assert!(told(&server, Role::Executor, 0).contains("do it better"), "the executor is told what to change");
}

#[test]
fn what_the_reflector_calls_accepted_is_not_where_its_scores_say_no() {
    let steps = [step(1, "list_dir", &json!({ "path": "." }), &[])];
    let better = [step(1, "glob", &json!({ "pattern": "*" }), &[])];
    let server = roles(vec![
        (Role::Planner, vec![plan(&steps), plan(&better)]),
        (Role::Reflector, vec![judged([5, 2, 5], "accept", None), accepted()]),
    ]);
    let output = run(&server, &["-o", "jsonl"]).run().success();
    assert_eq!(output.events().of("plan.created").len(), 2, "{}", output.shown());
}

#[test]
fn a_new_plan_does_not_repeat_what_is_done() {
    let write = step(1, "write_file", &json!({ "path": "once.txt", "content": "x" }), &[]);
    let first = [write.clone(), step(2, "read_file", &json!({ "path": "missing.txt" }), &[1])];
    let second = [write, step(2, "list_dir", &json!({ "path": "." }), &[1])];
    let server = roles(vec![
        (Role::Planner, vec![plan(&first), plan(&second)]),
        (Role::Reflector, vec![judged([2, 2, 5], "replan", None), accepted()]),
    ]);
    let output = run(&server, &["-o", "jsonl"]).run().success();
    let events = output.events();
    let written = events.of("tool.started").iter().filter(|event| event["name"] == "write_file").count();
    assert_eq!(written, 1, "{}", output.shown());
    assert_eq!(events.of("plan.created")[1]["kept"], json!([1]));
}

#[test]
fn a_failed_step_skips_what_needs_it_and_is_no_success_whatever_the_scores() {
    let steps = [
        step(1, "read_file", &json!({ "path": "missing.txt" }), &[]),
        step(2, "write_file", &json!({ "path": "out.txt", "content": "$step_1_result" }), &[1]),
    ];
    let server = roles(vec![
        (Role::Planner, vec![plan(&steps)]),
        (Role::Reflector, vec![judged([5, 5, 5], "escalate", None)]),
        (Role::Model, vec![Reply::text("There is no such file.")]),
    ]);
    let output = run(&server, &["-o", "jsonl"]).run().exits(1);
    let states: Vec<Value> =
        output.events().of("step.finished").iter().map(|event| event["status"].clone()).collect();
    assert_eq!(states, ["failed", "skipped"], "{}", output.shown());
    assert!(!output.place.exists("out.txt"));
}

#[test]
fn a_check_of_a_program_outranks_the_scores() {
    let mut wrong = step(1, "write_file", &json!({ "path": "out.txt", "content": "no" }), &[]);
    wrong["check"] = json!({ "command": "grep -q yes out.txt" });
    let mut right = step(1, "write_file", &json!({ "path": "other.txt", "content": "yes" }), &[]);
    right["check"] = json!({ "file": "other.txt" });
    let server = roles(vec![
        (Role::Planner, vec![plan(&[wrong]), plan(&[right])]),
        (Role::Reflector, vec![judged([5, 5, 5], "replan", None), judged([5, 3, 4], "retry_step", Some(1))]),
    ]);
    let output = run(&server, &["-o", "jsonl"]).run().success();
    let events = output.events();
    let checks: Vec<Value> =
        events.of("step.finished").iter().map(|event| event["check"]["passed"].clone()).collect();
    assert_eq!(checks, [json!(false), json!(true)], "{}", output.shown());
    let decisions: Vec<&str> =
        events.of("reflection").iter().filter_map(|event| event["action"].as_str()).collect();
    assert_eq!(decisions, ["replan", "accept"]);
}

#[test]
fn a_result_is_no_part_of_the_text_of_a_command() {
    let steps = [
        step(1, "read_file", &json!({ "path": "a.txt" }), &[]),
        step(2, "run_command", &json!({ "command": "printf %s $step_1_result.text > out.txt" }), &[1]),
    ];
    let evil = "$(touch hacked); `touch hacked`; touch hacked\n";
    let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Reflector, vec![accepted()])]);
    let output = run(&server, &["--approve", "all"]).file("a.txt", evil).run().success();
    assert!(output.place.read("out.txt").contains("$(touch hacked)"), "{}", output.shown());
    assert!(!output.place.exists("hacked"), "{}", output.shown());
}

#[test]
fn thoughts_stay_in_the_log() {
    let steps = [step(1, "list_dir", &json!({ "path": "." }), &[])];
    let planned = json!({ "analysis": "", "plan": steps, "estimated_steps": 1, "can_parallelize": [] });
    let thought = format!("<scratchpad>a private thought</scratchpad>\n<action>{planned}</action>");
    let server = roles(vec![(Role::Planner, vec![Reply::text(&thought)]), (Role::Reflector, vec![accepted()])]);
    let output = run(&server, &["-o", "jsonl"]).run().success();
    for request in server.requests() {
        assert!(!request.body.to_string().contains("a private thought"), "it was sent back");
    }
    assert!(!output.stdout.contains("a private thought"), "{}", output.shown());
    let log = std::fs::read_to_string(&output.place.session_logs()[0]).expect("a log");
    assert!(log.contains("a private thought"), "{log}");
}

#[test]
fn the_same_step_may_stand_in_a_plan_as_often_as_there_are_steps() {
    let steps: Vec<Value> = (1..=8).map(|id| step(id, "list_dir", &json!({ "path": "." }), &[])).collect();
    let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Reflector, vec![accepted()])]);
    let output = run(&server, &["-o", "jsonl"]).run().success();
    assert_eq!(output.events().of("step.finished").len(), 8, "no model repeats itself: {}", output.shown());
}

#[test]
fn a_dry_run_shows_the_request_to_the_first_role() {
    let server = Server::always(Reply::text("never sent"));
    for (mode, words) in [("plan", "You plan how"), ("route", "You route requests")] {
        let output = Run::task(&server, "the request").args(["--mode", mode, "--dry-run"]).run().success();
        assert!(output.stdout.contains(words) && output.stdout.contains("the request"), "{}", output.shown());
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_failed_command_is_no_success_and_what_needs_it_does_not_run() {
    for command in ["exit 1", "kill -SEGV $$"] {
        let steps = [
            step(1, "run_command", &json!({ "command": command }), &[]),
            step(2, "write_file", &json!({ "path": "out.txt", "content": "$step_1_result.output" }), &[1]),
        ];
        let server = roles(vec![
            (Role::Planner, vec![plan(&steps)]),
            (Role::Reflector, vec![judged([5, 5, 5], "escalate", None)]),
        ]);
        let output = run(&server, &["--approve", "all", "-o", "jsonl"]).run().exits(1);
        let events = output.events();
        let states: Vec<&str> =
            events.of("step.finished").iter().filter_map(|event| event["status"].as_str()).collect();
        assert_eq!(states, ["failed", "skipped"], "{command}\n{}", output.shown());
        assert!(!output.place.exists("out.txt"));
    }
}

#[test]
fn a_step_that_is_not_allowed_is_told_and_not_tried_again() {
    let steps = [step(1, "run_command", &json!({ "command": "touch denied" }), &[])];
    for (mode, code, why) in [("never", 1, "step 1 was not allowed"), ("ask", 7, "Allow it with --approve")] {
        let model = vec![Reply::text("It was not allowed.")];
        let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Model, model)]);
        let output = run(&server, &["--approve", mode, "-o", "jsonl"]).run().exits(code).reason_has(why);
        assert_eq!(asked(&server), [Role::Planner, Role::Model], "{}", output.shown());
        assert_eq!(output.events().one("step.finished")["status"], "denied");
        assert!(told(&server, Role::Model, 0).contains("step 1 was not allowed"));
    }
}

#[test]
fn a_new_plan_that_changes_nothing_is_refused() {
    let steps = [step(1, "list_dir", &json!({ "path": "." }), &[])];
    let server = roles(vec![
        (Role::Planner, vec![plan(&steps)]),
        (Role::Reflector, vec![judged([5, 2, 5], "replan", None)]),
    ]);
    let output = run(&server, &["-o", "jsonl"]).run().exits(1);
    assert_eq!(output.events().of("plan.created").len(), 1, "{}", output.shown());
    let expected = [Role::Planner, Role::Reflector, Role::Planner, Role::Planner, Role::Model];
    assert_eq!(asked(&server), expected, "the planner is told once");
}

#[test]
fn a_result_is_whole_however_large_and_the_reflector_reads_what_was_written_once() {
    let text: String = (0..20_000).map(|n| format!("line {n} of a long file\n")).collect();
    let steps = [
        step(1, "read_file", &json!({ "path": "long.txt" }), &[]),
        step(2, "write_file", &json!({ "path": "copy.txt", "content": "$step_1_result.text" }), &[1]),
        step(3, "write_file", &json!({ "path": "note.txt", "content": "a heron stands there" }), &[]),
    ];
    let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Reflector, vec![accepted()])]);
    let output = run(&server, &[]).file("long.txt", &text).run().success();
    assert_eq!(output.place.read("copy.txt"), text);
    assert_eq!(told(&server, Role::Reflector, 0).matches("a heron stands there").count(), 1);
}

#[test]
fn a_part_of_a_result_that_was_cut_off_fails_the_step_that_needs_it() {
    let steps = [
        step(1, "run_command", &json!({ "command": "head -c 6000000 /dev/zero | tr '\\0' x" }), &[]),
        step(2, "write_file", &json!({ "path": "copy.txt", "content": "$step_1_result.output" }), &[1]),
        step(3, "write_file", &json!({ "path": "code.txt", "content": "code $step_1_result.exit_code" }), &[1]),
    ];
    let server = roles(vec![
        (Role::Planner, vec![plan(&steps)]),
        (Role::Reflector, vec![judged([5, 5, 5], "escalate", None)]),
    ]);
    let output = run(&server, &["--approve", "all", "-o", "jsonl"]).run().exits(1);
    assert!(output.stdout.contains("`$step_1_result.output` is not whole"), "{}", output.shown());
    assert!(!output.place.exists("copy.txt"));
    assert_eq!(output.place.read("code.txt"), "code 0");
}
