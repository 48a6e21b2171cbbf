//! What runs without asking, and what happens where nobody can be asked.

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Server, assert_answered_once};

/// One call under `--approve MODE`; the output, and what the model read.
fn approved(mode: &str, tool: &str, arguments: &Value) -> (Output, String) {
    let server = Server::start([Reply::call(tool, arguments), Reply::text("done")]);
    let output = Run::task(&server, "task").args(["--approve", mode, "-o", "jsonl"]).file("a.txt", "a\n").run();
    let requests = server.requests();
    assert_answered_once(&requests[1]);
    (output, requests[1].last_result().to_owned())
}

#[test]
fn the_table_of_modes() {
    let write = json!({"path": "new.txt", "content": "x\n"});
    let outside = json!({"path": "../outside.txt", "content": "x\n"});
    let touch = json!({"command": "touch touched.txt"});
    let read = json!({"path": "a.txt"});
    #[rustfmt::skip]
    let table = [
        ("ask",   "read_file",   &read,    0, None),
        ("ask",   "write_file",  &write,   7, Some("new.txt")),
        ("ask",   "run_command", &touch,   7, Some("touched.txt")),
        ("edits", "write_file",  &write,   0, Some("new.txt")),
        ("edits", "write_file",  &outside, 7, Some("../outside.txt")),
        ("edits", "run_command", &touch,   7, Some("touched.txt")),
        ("all",   "write_file",  &write,   0, Some("new.txt")),
        ("all",   "run_command", &touch,   0, Some("touched.txt")),
        ("never", "read_file",   &read,    0, None),
        ("never", "write_file",  &write,   0, None),
        ("never", "run_command", &touch,   0, None),
    ];
    for (mode, tool, arguments, code, made) in table {
        let (output, told) = approved(mode, tool, arguments);
        assert!(output.code == code, "--approve {mode}, {tool} {arguments}: expected {code}\n{}", output.shown());
        // What the mode itself refuses was decided by whoever chose it: the run did what it was told.
        let refused = code == 7 || (mode == "never" && tool != "read_file");
        if let Some(path) = made {
            assert_eq!(output.place.exists(path), !refused, "--approve {mode}, {tool}: {path}");
        }
        let events = output.events();
        let status = if refused { "denied" } else { "ok" };
        assert_eq!(events.one("tool.finished")["status"], status, "--approve {mode}, {tool}");
        if refused {
            assert_eq!(events.one("run.completed")["denied"], 1);
            assert!(!told.is_empty(), "the model is told why");
        }
    }
}

#[test]
fn a_denial_by_nobody_is_an_event_with_its_reason() {
    let (output, _) = approved("ask", "write_file", &json!({"path": "new.txt", "content": "x"}));
    let events = output.events();
    assert_eq!(events.one("permission.requested")["name"], "write_file");
    let resolved = events.one("permission.resolved");
    assert_eq!((resolved["verdict"].clone(), resolved["by"].clone()), (json!("denied"), json!("nobody")));
}

#[test]
fn approval_in_the_users_configuration_holds_and_the_flag_beats_it() {
    let run = |extra: &[&str]| {
        let write = Reply::call("write_file", &json!({"path": "new.txt", "content": "x"}));
        let server = Server::start([write, Reply::text("done")]);
        let run = Run::task(&server, "task").args(extra.iter().copied());
        run.config("agents/default.yaml", "approval: edits\n").run()
    };
    assert!(run(&[]).success().place.exists("new.txt"));
    assert!(!run(&["--approve", "ask"]).exits(7).place.exists("new.txt"));
}

#[test]
fn a_command_that_only_reads_needs_no_approval_if_the_policy_can_prove_it() {
    let (output, told) = approved("ask", "run_command", &json!({"command": "cat a.txt"}));
    if output.code == 0 {
        assert!(told.contains('a'), "{told}");
    } else {
        assert_eq!(output.code, 7, "{}", output.shown());
    }
    for command in
        ["cat a.txt > b.txt", "cat a.txt; rm a.txt", "cat $(rm a.txt)", "find . -delete", "cat ../../secret"]
    {
        let (output, _) = approved("ask", "run_command", &json!({"command": command}));
        assert_eq!(output.code, 7, "`{command}` is not reading alone\n{}", output.shown());
    }
}

#[test]
fn nobody_is_asked_and_ask_user_is_not_offered_without_a_person() {
    let server = Server::start([Reply::text("done")]);
    Run::task(&server, "task").run().success();
    assert!(!server.only_request().tool_names().contains(&"ask_user"));
}
