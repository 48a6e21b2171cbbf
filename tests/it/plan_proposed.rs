//! A plan that the model of the conversation proposes with a tool.

use serde_json::{Value, json};

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// What a model proposes with the tool.
fn proposed(steps: &Value) -> Reply {
    Reply::call("propose_plan", &json!({ "steps": steps, "why": "two things" }))
}

#[test]
fn a_model_proposes_a_plan_in_its_conversation_and_goes_on_from_the_results() {
    let steps = json!([
        { "id": 1, "description": "look", "tool": "read_file", "input": { "path": "a.txt" } },
        { "id": 2, "description": "keep", "tool": "write_file", "depends_on": [1],
          "input": { "path": "b.txt", "content": "$step_1_result.text" } },
        { "id": 3, "description": "fail", "tool": "read_file", "input": { "path": "missing.txt" } },
    ]);
    let wrong = json!([{ "id": 1, "description": "look", "tool": "raed_file", "input": {} }]);
    let server = Server::start([proposed(&wrong), proposed(&steps), Reply::text("done")]);
    let run = Run::task(&server, "copy it").args(["--approve", "edits", "-o", "jsonl"]).file("a.txt", "alpha");
    let output = run.run().success();
    assert_eq!(output.place.read("b.txt"), "alpha");
    let events = output.events();
    assert_eq!(events.one("plan.created")["author"], "model");
    assert_eq!(events.of("step.finished").len(), 3);
    let requests = server.requests();
    assert!(requests[1].body.to_string().contains("there is no tool or agent `raed_file`"));
    let last = requests[2].body.to_string();
    for part in ["1. look · read_file: done", "3. fail · read_file: failed", "Go on from the results above"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert!(!output.stdout.contains("a plan waits"), "{}", output.shown());
    let (before, after) = (requests[1].messages(), requests[2].messages());
    assert_eq!(&after[..before.len()], before, "the prefix stays");
}

#[test]
fn agents_without_plans_have_no_tool_for_them() {
    let offered = |extra: &[&str]| {
        let server = Server::always(Reply::text("done"));
        Run::task(&server, "look").args(extra.to_vec()).run().success();
        server.requests()[0].body["tools"].to_string().contains("propose_plan")
    };
    assert!(offered(&[]));
    assert!(!offered(&["--set", "permissions.max=read"]));
    assert!(!offered(&["--set", "agents.default.plans=false"]));
}

#[test]
fn who_explores_proposes_no_plan_that_runs() {
    let steps = json!([{ "id": 1, "description": "keep", "tool": "write_file", "input": { "path": "b.txt", "content": "x" } }]);
    let server = Server::start([proposed(&steps), Reply::text("I would write b.txt.")]);
    let run = Run::task(&server, "copy it").args(["--approve", "all", "--mode", "explore", "-o", "jsonl"]);
    let output = run.run().success();
    assert!(!output.place.exists("b.txt"));
    assert!(output.events().of("plan.created").is_empty(), "{}", output.shown());
    assert!(server.requests()[1].last_result().contains("answered in mode `explore`"));
}
