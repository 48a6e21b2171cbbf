//! The output of a run that did not reach its answer: partial text, nothing invalid, no silence.

use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::reply::{Act, Reply, chunk, data};
use crate::run::{GUARD, Run};
use crate::server::Server;

#[test]
fn under_a_schema_the_output_file_holds_valid_data_or_is_not_written() {
    let look = || Reply::call("list_dir", &json!({"path": "."}));
    for (replies, limit, code) in [
        (vec![look(), Reply::text("I had no time to look.")], "--max-turns", 8),
        (vec![Reply::text("prose"); 9], "--max-tokens", 10),
    ] {
        let server = Server::start(replies);
        let most = if limit == "--max-turns" { "1" } else { "100000" };
        let output = Run::task(&server, "task")
            .args(["--schema", "schema.json", "--output-file", "answer.json", limit, most])
            .file("schema.json", r#"{"type": "object", "required": ["n"]}"#)
            .run()
            .exits(code)
            .stdout_is("");
        assert!(!output.place.exists("answer.json"), "{}", output.place.read("answer.json"));
    }
}

#[test]
fn the_text_of_a_reply_that_was_interrupted_is_its_result() {
    let server = Server::start([Reply::text("First half, second half.").then(2, Act::Hang)]);
    let running = Run::task(&server, "task").args(["-o", "jsonl"]).spawn();
    running.wait_stdout("First half");
    running.signal(Signal::SIGINT);
    let output = running.wait().exits(130);
    assert_eq!(output.events().one("run.completed")["result"], "First half, ", "{}", output.shown());
}

#[test]
fn streamed_text_is_in_the_log_while_the_stream_stalls_and_so_outlives_a_kill() {
    let server = Server::start([Reply::text("First half, second half.").then(2, Act::Hang)]);
    let run = Run::task(&server, "task");
    let data = run.place().data();
    let running = run.spawn();
    let logged = "until grep -rqs 'First half' \"$0\"; do sleep 0.02; done";
    let guard = GUARD.as_secs().to_string();
    let waited = Command::new("timeout").args([&guard, "sh", "-c", logged]).arg(data).status();
    running.signal(Signal::SIGKILL);
    let output = running.wait();
    assert!(waited.expect("there is a shell").success(), "the text never came into the log\n{}", output.shown());
    Run::at(&output.place)
        .args(["session", "show", "2"])
        .run()
        .success()
        .stdout_has("(unfinished)\n\nFirst half,\n");
}

#[test]
fn the_text_of_a_reply_that_failed_is_its_result() {
    let server = Server::always(Reply::text("First half, second half.").then(2, Act::Reset));
    let output = Run::task(&server, "task").args(["-o", "json"]).quick_retries().run().exits(5);
    assert_eq!(output.json()["result"], "First half, ", "{}", output.shown());
}

#[test]
fn text_that_an_overflow_voids_is_said_to_be_void() {
    let overflow = json!({"error": {
        "message": "This model's maximum context length is 9000 tokens. However, your messages resulted in 9500 tokens.",
        "type": "invalid_request_error", "code": "context_length_exceeded",
    }});
    let mut cut = Reply::events(&[chunk(&json!({"content": "The first "})), chunk(&json!({"content": "half"}))]);
    cut.acts.pop();
    cut.acts.push(Act::Send(data(&overflow)));
    let calls = (1..7).map(|line| Reply::call("read_file", &json!({"path": "big.txt", "offset": line})));
    let server = Server::start(calls.chain([cut]).chain(vec![Reply::text("The whole answer."); 3]));
    let output = Run::task(&server, "task")
        .arg("--stream")
        .file("big.txt", "a line of some length\n".repeat(300))
        .quick_retries()
        .run()
        .success();
    output
        .stdout_has("The first half\n")
        .stdout_has("The whole answer.")
        .stderr_has("the answer above was cut off");
}

#[test]
fn arguments_in_events_are_an_object_whatever_the_model_wrote() {
    let server = Server::start([
        Reply::calls(&[
            ("list_dir", r#"{"path": "."}"#.to_owned()),
            ("list_dir", "not JSON at all".to_owned()),
            ("list_dir", "[1]".to_owned()),
            ("no_such_tool", String::new()),
        ]),
        Reply::text("done"),
    ]);
    let events = Run::task(&server, "task").args(["-o", "jsonl"]).run().success().events();
    let arguments: Vec<_> = events.of("tool.started").iter().map(|event| event["arguments"].clone()).collect();
    let expected = [
        json!({"path": ".", "depth": 1}),
        json!({"unparsed": "not JSON at all"}),
        json!({"unparsed": "[1]"}),
        json!({}),
    ];
    assert_eq!(arguments, expected);
}
