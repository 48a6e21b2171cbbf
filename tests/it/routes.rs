//! The mode `route` from outside: a router picks a tool, an agent or the loop, or asks back.

use serde_json::{Value, json};

use crate::plans::{Role, accepted, asked, plan, roles, step, told};
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

fn routed(name: &str, input: &Value, confidence: f64) -> Reply {
    let reply =
        json!({ "reasoning": "because of it", "tool_name": name, "tool_input": input, "confidence": confidence });
    Reply::text(&reply.to_string())
}

fn route(server: &Server) -> Run {
    Run::task(server, "the request").args(["--mode", "route", "-o", "jsonl"])
}

#[test]
fn the_router_sends_a_request_to_a_tool_the_loop_or_the_planner() {
    let steps = [step(1, "list_dir", &json!({ "path": "." }), &[])];
    for (name, input, roles_asked) in [
        ("list_dir", json!({ "path": "." }), &[Role::Router, Role::Model][..]),
        ("flow:direct", json!({}), &[Role::Router, Role::Model]),
        ("direct", json!({}), &[Role::Router, Role::Model]),
        ("flow:plan", json!({}), &[Role::Router, Role::Planner, Role::Reflector, Role::Model]),
    ] {
        let server = roles(vec![
            (Role::Router, vec![routed(name, &input, 0.9)]),
            (Role::Planner, vec![plan(&steps)]),
            (Role::Reflector, vec![accepted()]),
        ]);
        let output = route(&server).run().success();
        assert_eq!(asked(&server), roles_asked, "{name}\n{}", output.shown());
        assert_eq!(output.events().one("run.completed")["result"], "done");
    }
}

#[test]
fn a_router_that_is_unsure_asks_and_one_that_makes_names_up_is_asked_again_once() {
    for reply in [routed("list_dir", &json!({}), 0.59), routed("none", &json!({}), 1.0)] {
        let server = roles(vec![(Role::Router, vec![reply])]);
        let output = route(&server).run().exits(1);
        assert_eq!(output.events().one("run.completed")["result"], "because of it");
        assert_eq!(asked(&server), [Role::Router]);
    }
    let made_up = routed("list_dirs", &json!({}), 0.9);
    let server = roles(vec![(Role::Router, vec![made_up.clone(), routed("flow:direct", &json!({}), 0.9)])]);
    route(&server).run().success();
    assert!(told(&server, Role::Router, 1).contains("list_dirs"), "the name is said to be unknown");
    let server = roles(vec![(Role::Router, vec![made_up])]);
    route(&server).run().exits(1);
    assert_eq!(asked(&server), [Role::Router, Role::Router]);
}

#[test]
fn arguments_that_the_router_leaves_open_are_filled_in_by_the_executor() {
    let filled =
        json!({ "tool_call": { "name": "read_file", "arguments": { "path": "a.txt" } }, "explanation": "" });
    let server = roles(vec![
        (Role::Router, vec![routed("read_file", &json!({}), 0.9)]),
        (Role::Executor, vec![Reply::text(&filled.to_string())]),
    ]);
    let output = route(&server).file("a.txt", "alpha").run().success();
    assert_eq!(asked(&server), [Role::Router, Role::Executor, Role::Model], "{}", output.shown());
}

#[test]
fn a_routed_call_that_fails_returns_to_the_loop() {
    let server = roles(vec![
        (Role::Router, vec![routed("read_file", &json!({ "path": "READM.md" }), 0.9)]),
        (Role::Model, vec![Reply::call("read_file", &json!({ "path": "README.md" })), Reply::text("It says hi.")]),
    ]);
    let output = route(&server).file("README.md", "hi").run().success();
    assert_eq!(output.events().one("run.completed")["result"], "It says hi.");
    assert_eq!(asked(&server), [Role::Router, Role::Model, Role::Model]);
}
