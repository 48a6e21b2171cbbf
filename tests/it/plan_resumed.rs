//! Interrupted plans wait: the next message comes first, finished steps stay finished, and what may have run in part is
//! not repeated unasked. And plans in a conversation: earlier messages are known.

use std::sync::Arc;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::plans::{Role, accepted, asked, plan, roles, run, step};
use crate::reply::{Act, Reply};
use crate::run::{Place, Run};
use crate::server::Server;

/// A model that goes on with the plan that waits, and then is done.
fn going_on() -> (Role, Vec<Reply>) {
    (Role::Model, vec![Reply::call("propose_plan", &json!({ "steps": [] })), Reply::text("done")])
}

fn next(place: &Arc<Place>, server: &Server, said: &str) -> Run {
    let args = ["run", "--continue", said, "--mode", "plan", "--approve", "all", "-o", "jsonl"];
    Run::at(place).server(server).args(args)
}

/// Kills a plan whose second step sends a mail and hangs, and whose third would write `danger.txt`.
fn killed_in_its_second_step(signal: Signal) -> Arc<Place> {
    let steps = [
        step(1, "run_command", &json!({ "command": "echo once >> log.txt" }), &[]),
        step(2, "run_command", &json!({ "command": "echo mail >> log.txt; echo begun; sleep 60" }), &[1]),
        step(3, "write_file", &json!({ "path": "danger.txt", "content": "x" }), &[2]),
    ];
    let server = roles(vec![(Role::Planner, vec![plan(&steps)])]);
    let first = run(&server, &["--approve", "all", "-o", "jsonl"]);
    let place = first.place();
    let running = first.spawn();
    running.wait_stdout("\"chunk\":\"begun");
    running.signal(signal);
    running.wait();
    place
}

#[test]
fn nothing_of_an_interrupted_plan_runs_before_somebody_says_so() {
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let place = killed_in_its_second_step(signal);
        for said in ["No! Stop. Do not write danger.txt", "Hello"] {
            let server = roles(vec![(Role::Model, vec![Reply::text("As you say.")])]);
            let output = next(&place, &server, said).run().success();
            assert_eq!(asked(&server), [Role::Model], "{signal}\n{}", output.shown());
            assert_eq!(output.events().one("run.completed")["result"], "As you say.");
            assert!(output.stdout.contains("a plan waits, 1 of 3 steps done"), "{}", output.shown());
            let request = server.requests()[0].body.to_string();
            assert!(request.contains("may have run in part"), "the plan is in view: {request}");
            assert_eq!(request.matches("A plan was interrupted and waits").count(), 1, "it is told once");
        }
        assert_eq!(place.read("log.txt"), "once\nmail\n");
        assert!(!place.exists("danger.txt"));
    }
}

#[test]
fn a_step_that_may_have_run_in_part_is_not_repeated_unasked() {
    let place = killed_in_its_second_step(Signal::SIGKILL);
    let server = roles(vec![going_on()]);
    let output = next(&place, &server, "go on").run().success();
    let events = output.events();
    let ended: Vec<_> = events.of("step.finished").iter().map(|event| event["status"].clone()).collect();
    assert_eq!(ended, ["failed", "skipped"], "{}", output.shown());
    assert_eq!(place.read("log.txt"), "once\nmail\n", "the mail was sent once");
    let told = server.requests().pop().expect("the answer").body.to_string();
    assert!(told.contains("without a person's yes"), "{told}");
}

#[test]
fn a_plan_goes_on_where_it_was_stopped_if_the_model_says_so() {
    let steps = [step(1, "run_command", &json!({ "command": "echo once >> log.txt" }), &[])];
    for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT] {
        for state in [Role::Reflector, Role::Model] {
            let reply = |role: Role, reply: Reply| {
                (role, vec![if role == state { Reply::nothing(Act::Hang) } else { reply }])
            };
            let server = roles(vec![
                reply(Role::Planner, plan(&steps)),
                reply(Role::Reflector, accepted()),
                reply(Role::Model, Reply::text("done")),
            ]);
            let begun = match state {
                Role::Reflector => "\"role\":\"reflector\"",
                _ => "\"type\":\"request.started\"",
            };
            let first = run(&server, &["--approve", "all", "-o", "jsonl"]);
            let place = first.place();
            let running = first.spawn();
            running.wait_stdout(begun);
            running.signal(signal);
            running.wait();
            let server = roles(vec![going_on()]);
            let output = next(&place, &server, "go on").run().success();
            assert_eq!(output.events().of("plan.created")[0]["kept"], json!([1]), "{}", output.shown());
            assert_eq!(place.read("log.txt"), "once\n", "{signal} while the {state:?} is asked");
            let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Reflector, vec![accepted()])]);
            next(&place, &server, "anew").run().success();
            assert_eq!(asked(&server)[0], Role::Planner, "the first plan is over");
        }
    }
}

#[test]
fn a_limit_ends_a_plan_with_a_summary_and_the_plan_waits() {
    let steps = [step(1, "list_dir", &json!({ "path": "." }), &[])];
    let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Reflector, vec![accepted()])]);
    let output = run(&server, &["--max-turns", "1"]).run().exits(8);
    let server = roles(vec![going_on()]);
    let output = next(&output.place, &server, "go on").run().success();
    assert!(output.events().of("step.started").is_empty(), "the step is done: {}", output.shown());
}

#[test]
fn a_follow_up_is_planned_with_what_was_said_before() {
    let steps = [step(1, "list_dir", &json!({ "path": "." }), &[])];
    let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Reflector, vec![accepted()])]);
    let place = Run::task(&server, "Remember the word heron.").run().success().place;
    let follow_up = ["run", "--continue", "Now do it.", "--mode", "plan"];
    Run::at(&place).server(&server).args(follow_up).run().success();
    let requests = server.requests();
    let planner = &requests[1];
    assert!(
        planner.body.to_string().contains("heron") && planner.user().contains("Now do it."),
        "{}",
        planner.body
    );
}
