//! Interrupted plans, and plans in a conversation: finished steps stay finished, and earlier messages are known.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::plans::{Role, accepted, asked, plan, roles, run, step};
use crate::reply::{Act, Reply};
use crate::run::Run;

#[test]
fn a_plan_that_was_killed_goes_on_without_repeating_what_is_done() {
    let steps = [
        step(1, "run_command", &json!({ "command": "echo once >> log.txt" }), &[]),
        step(2, "run_command", &json!({ "command": "echo begun; while [ ! -e go ]; do sleep 0.05; done" }), &[1]),
        step(3, "run_command", &json!({ "command": "echo last >> log.txt" }), &[2]),
    ];
    let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Reflector, vec![accepted()])]);
    let first = run(&server, &["--approve", "all", "-o", "jsonl"]);
    let place = first.place();
    let running = first.spawn();
    running.wait_stdout("\"chunk\":\"begun");
    running.signal(Signal::SIGKILL);
    running.wait();
    std::fs::write(place.workspace().join("go"), "").expect("written");
    let output = Run::at(&place)
        .server(&server)
        .args(["run", "--continue", "go on", "--mode", "plan", "--approve", "all", "-o", "jsonl"])
        .run()
        .success();
    assert_eq!(place.read("log.txt"), "once\nlast\n", "{}", output.shown());
    assert_eq!(asked(&server), [Role::Planner, Role::Reflector, Role::Model], "no second plan");
}

#[test]
fn a_limit_ends_a_plan_with_a_summary_and_the_plan_stays() {
    let steps = [step(1, "list_dir", &json!({ "path": "." }), &[])];
    let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Reflector, vec![accepted()])]);
    let output = run(&server, &["--max-turns", "1"]).run().exits(8);
    let server = roles(vec![(Role::Reflector, vec![accepted()])]);
    Run::at(&output.place)
        .server(&server)
        .args(["run", "--continue", "go on", "--mode", "plan"])
        .run()
        .success()
        .stdout_is("done\n");
    assert_eq!(asked(&server), [Role::Reflector, Role::Model], "the step is done and the plan is known");
}

#[test]
fn a_plan_that_is_stopped_in_any_state_goes_on_from_there() {
    let steps = [step(1, "run_command", &json!({ "command": "echo once >> log.txt" }), &[])];
    let replies = |hung: Option<Role>| {
        let reply = |role: Role, reply: Reply| {
            let reply = if hung == Some(role) { Reply::nothing(Act::Hang) } else { reply };
            (role, vec![reply])
        };
        roles(vec![
            reply(Role::Planner, plan(&steps)),
            reply(Role::Reflector, accepted()),
            reply(Role::Model, Reply::text("done")),
        ])
    };
    for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT] {
        for (state, begun, later) in [
            (Role::Planner, "\"role\":\"planner\"", &[Role::Planner, Role::Reflector, Role::Model][..]),
            (Role::Reflector, "\"role\":\"reflector\"", &[Role::Reflector, Role::Model]),
            (Role::Model, "\"type\":\"request.started\"", &[Role::Model]),
        ] {
            let server = replies(Some(state));
            let first = run(&server, &["--approve", "all", "-o", "jsonl"]);
            let place = first.place();
            let running = first.spawn();
            running.wait_stdout(begun);
            running.signal(signal);
            running.wait();
            let server = replies(None);
            let output = Run::at(&place)
                .server(&server)
                .args(["run", "--continue", "go on", "--mode", "plan", "--approve", "all"])
                .run()
                .success()
                .stdout_is("done\n");
            assert_eq!(asked(&server), later, "{signal} while the {state:?} is asked\n{}", output.shown());
            assert_eq!(place.read("log.txt"), "once\n", "{signal} while the {state:?} is asked");
        }
    }
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
