//! Limits and loops: the closing answer is requested with the same prefix, and a summary replaces a missing one.

use serde_json::{Value, json};

use crate::reply::{Act, Reply};
use crate::run::Run;
use crate::server::{Request, Server, assert_append_only};

/// True if the model may not call tools any more: forbidden by the choice, or none are offered.
fn stopped(request: &Request) -> bool {
    request.body["tool_choice"] == "none" || request.body["tools"].is_null()
}

/// Reads ever other files, so that no loop is seen, until it may not call; then plays `closing`.
fn reads_until_stopped(closing: Reply) -> Server {
    Server::answering(move |request, index| {
        if stopped(request) {
            closing.clone()
        } else {
            Reply::call("read_file", &json!({"path": format!("f{index}.txt")}))
        }
    })
}

#[test]
fn the_closing_answer_is_asked_over_the_same_prefix_with_tools_that_may_not_be_called() {
    let server = reads_until_stopped(Reply::text("Summary."));
    let output = Run::task(&server, "task").args(["--max-turns", "3", "-o", "jsonl"]).run().exits(8);
    assert_eq!(output.events().one("run.completed")["status"], "limit");
    let requests = server.requests();
    assert_eq!(requests.len(), 4, "three steps and the closing answer");
    assert_append_only(&requests);
    let (last, before) = requests.split_last().expect("requests");
    assert!(stopped(last) && !before.iter().any(stopped), "only the closing request forbids calls");
    assert_eq!(last.tool_names(), before[0].tool_names());
}

#[test]
fn where_tools_are_not_supported_the_closing_request_has_none() {
    let server = Server::always(Reply::text("done"));
    Run::task(&server, "task")
        .config("models/default.yaml", "capabilities: { tools: false }\n")
        .run()
        .success()
        .stdout_is("done\n");
    assert!(server.only_request().body["tools"].is_null());
}

#[test]
fn a_closing_answer_that_is_empty_or_calls_again_is_replaced_by_a_summary_made_in_code() {
    for closing in [Reply::text(""), Reply::call("list_dir", &json!({}))] {
        let server = reads_until_stopped(closing);
        let output = Run::task(&server, "task").args(["--max-turns", "2"]).run().exits(8);
        assert!(!output.stdout.trim().is_empty(), "no summary\n{}", output.shown());
        assert_eq!(server.requests().len(), 3, "the closing answer is asked for once");
    }
}

#[test]
fn a_closing_request_that_is_refused_is_made_once_more_without_tools_and_then_ends_the_run() {
    let server = reads_until_stopped(Reply::error(400, "not like this"));
    Run::task(&server, "task").args(["--max-turns", "2"]).run().exits(5);
    let requests = server.requests();
    assert_eq!(requests.len(), 4, "two steps, and the closing answer twice");
    assert!(requests[3].body["tools"].is_null(), "{}", requests[3].raw);
}

#[test]
fn the_reason_names_the_limit() {
    for (option, value, word) in [("--max-turns", "2", "2"), ("--max-tokens", "200", "200")] {
        let server = reads_until_stopped(Reply::text("Summary."));
        Run::task(&server, "task").args([option, value]).run().exits(8).reason_has(word);
    }
}

#[test]
fn limits_come_from_the_configuration_and_flags_beat_it() {
    let server = reads_until_stopped(Reply::text("Summary."));
    Run::task(&server, "task").config("agent.yaml", "limits: { max_turns: 2 }\n").run().exits(8);
    assert_eq!(server.requests().len(), 3);
    let server = reads_until_stopped(Reply::text("Summary."));
    Run::task(&server, "task")
        .config("agent.yaml", "limits: { max_turns: 2 }\n")
        .args(["--max-turns", "4"])
        .run()
        .exits(8);
    assert_eq!(server.requests().len(), 5);
    let server = reads_until_stopped(Reply::text("Summary."));
    Run::task(&server, "task").args(["--set", "limits.max_turns=1"]).run().exits(8);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn time_that_runs_out_in_a_command_kills_the_command() {
    let server = Server::answering(|request, _| {
        if stopped(request) {
            Reply::text("Summary.")
        } else {
            Reply::call("run_command", &json!({"command": "sleep 600"}))
        }
    });
    Run::task(&server, "task").args(["--approve", "all", "--max-time", "1s"]).run().exits(124);
}

#[test]
fn after_time_is_out_nothing_more_is_asked_and_a_summary_made_in_code_stands_in() {
    let server = Server::answering(|_, index| match index {
        0 => Reply::call("read_file", &json!({"path": "a.txt"})),
        _ => Reply::text("never whole").then(2, Act::Hang),
    });
    let output = Run::task(&server, "task").args(["--max-time", "700ms"]).file("a.txt", "a").run().exits(124);
    assert!(!output.stdout.trim().is_empty(), "no summary\n{}", output.shown());
}

#[test]
fn the_model_is_told_of_its_loop_before_it_is_stopped() {
    let server = Server::answering(|request, _| {
        if stopped(request) { Reply::text("Stuck.") } else { Reply::call("list_dir", &json!({"path": "."})) }
    });
    Run::task(&server, "task").run().exits(12).stdout_is("Stuck.\n");
    let requests = server.requests();
    let text =
        |index: usize| -> String { requests[index].messages().last().map(Value::to_string).unwrap_or_default() };
    assert_ne!(text(3), text(2), "after the third equal result the model is told");
    assert_append_only(&requests);
}

#[test]
fn a_cycle_of_calls_is_a_loop_too() {
    let server = Server::answering(|request, index| {
        let path = ["a", "b", "c"][index % 3];
        if stopped(request) { Reply::text("Stuck.") } else { Reply::call("list_dir", &json!({"path": path})) }
    });
    Run::task(&server, "task").file("a/x", "1").file("b/x", "2").file("c/x", "3").run().exits(12);
}

#[test]
fn the_same_call_with_other_results_is_honest_work() {
    let server = Server::answering(|_, index| match index {
        0..9 => Reply::call("run_command", &json!({"command": "echo x >> n; wc -l < n"})),
        _ => Reply::text("done"),
    });
    let output = Run::task(&server, "task").args(["--approve", "all"]).run().success().stdout_is("done\n");
    assert_eq!(output.place.read("n").lines().count(), 9);
}

#[test]
fn a_loop_whose_results_are_cut_is_seen_too() {
    for call in [json!({"command": "seq 100000"}), json!({"command": "cat long.txt"})] {
        let server = Server::answering(move |request, _| {
            if stopped(request) { Reply::text("Stuck.") } else { Reply::call("run_command", &call) }
        });
        let run =
            Run::task(&server, "task").args(["--approve", "all"]).file("long.txt", "a line\n".repeat(20_000));
        run.run().exits(12).stdout_is("Stuck.\n");
        assert_eq!(server.requests().len(), 7, "six calls, and the closing answer");
    }
}

#[test]
fn a_test_that_goes_on_failing_between_edits_is_no_loop() {
    let server = Server::answering(|_, index| match index {
        0..14 if index % 2 == 0 => {
            Reply::call("write_file", &json!({"path": "a.sh", "content": format!("exit 1 # {index}\n")}))
        }
        0..14 => Reply::call("run_command", &json!({"command": "sh a.sh"})),
        _ => Reply::text("done"),
    });
    Run::task(&server, "task").args(["--approve", "all"]).run().success().stdout_is("done\n");
    let hints = server.requests().last().map(|request| request.raw.matches("More of the same").count());
    assert_eq!(hints, Some(0));
}
