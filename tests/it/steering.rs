//! Steering: messages that the user sends while a turn runs.

use agent::facade::safety::Approval;
use serde_json::json;

use crate::in_process::{Answering, Hear, turn};
use crate::plans::{Role, accepted, plan, roles, step, told};
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Server, assert_answered_once, assert_append_only};

/// Says `words` at the first event of a type.
fn at(kind: &'static str, words: &'static str) -> Box<Hear> {
    let said = std::sync::atomic::AtomicBool::new(false);
    Box::new(move |event, steering| {
        if event["type"] == kind && !said.swap(true, std::sync::atomic::Ordering::Relaxed) {
            steering.push(words);
        }
    })
}

#[test]
fn it_enters_the_conversation_after_the_answers_of_the_running_calls() {
    let read = Reply::calls(&[
        ("read_file", json!({"path": "a.txt"}).to_string()),
        ("list_dir", json!({"path": "."}).to_string()),
    ]);
    let server = Server::start([read, Reply::text("done")]);
    let run = Run::new().server(&server).file("a.txt", "a\n");
    let taken =
        turn(&run, &[], "read it", Answering::with(Approval::Allow), at("tool.started", "shorter, please"));
    let requests = server.requests();
    assert_append_only(&requests);
    assert_answered_once(&requests[1]);
    assert_eq!(requests[1].messages().last().expect("messages")["content"], "shorter, please");
    assert_eq!(requests[1].tool_results().len(), 2);
    let heard = |event: &&serde_json::Value| event["role"] == "user" && event["content"] == "shorter, please";
    assert_eq!(taken.of("message").filter(heard).count(), 1, "{:?}", taken.events);
    assert!(taken.rest.is_empty());
}

#[test]
fn what_no_request_can_hold_any_more_is_given_back() {
    let server = Server::start([Reply::text("the answer")]);
    let run = Run::new().server(&server);
    let taken = turn(&run, &[], "hello", Answering::with(Approval::Allow), at("text.delta", "one more thing"));
    assert_eq!(taken.end.answer, "the answer");
    assert_eq!(taken.rest, ["one more thing"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn what_is_too_large_for_the_window_is_given_back_and_the_turn_goes_on() {
    let server = Server::start([Reply::call("list_dir", &json!({"path": "."})), Reply::text("done")]);
    let run = Run::new().server(&server);
    let large: &str = "words ".repeat(100_000).leak();
    let sets = ["models.default.context_window=20000"];
    let taken = turn(&run, &sets, "look", Answering::with(Approval::Allow), at("tool.started", large));
    assert_eq!(taken.end.answer, "done");
    assert_eq!(taken.rest, [large]);
}

#[test]
fn the_reflector_of_a_plan_hears_it() {
    let plan = plan(&[step(1, "list_dir", &json!({"path": "."}), &[])]);
    let server = roles(vec![(Role::Planner, vec![plan]), (Role::Reflector, vec![accepted()])]);
    let run = Run::new().server(&server);
    let sets = ["agents.default.mode=plan", "agents.default.plan_approval=false"];
    let hear = at("tool.started", "count the files as well");
    let taken = turn(&run, &sets, "the request", Answering::with(Approval::Allow), hear);
    assert!(told(&server, Role::Reflector, 0).contains("count the files as well"));
    assert!(!told(&server, Role::Planner, 0).contains("count the files as well"));
    assert!(taken.rest.is_empty());
}
