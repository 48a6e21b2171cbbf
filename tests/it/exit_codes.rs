//! One test per row of the table of exit codes, and the code that wins if several apply.

use serde_json::{Value, json};

use crate::reply::{Act, Reply};
use crate::run::Run;
use crate::server::{Request, Server, assert_answered_once};

/// Calls `tool` until no tool may be called any more, then says `closing`.
fn calls_until_stopped(name: &'static str, arguments: &Value, closing: &'static str) -> Server {
    let arguments = arguments.clone();
    Server::answering(
        move |request, _| {
            if stopped(request) { Reply::text(closing) } else { Reply::call(name, &arguments) }
        },
    )
}

fn stopped(request: &Request) -> bool {
    request.body["tool_choice"] == "none"
}

#[test]
fn code_0_done() {
    let server = Server::start([Reply::text("done")]);
    Run::task(&server, "task").run().success().stdout_is("done\n");
}

#[test]
fn code_2_the_last_line_is_the_reason() {
    for (args, reason) in [
        (&["run", "--no-such-option"][..], "error: unexpected argument '--no-such-option' found"),
        (&["run", "--max-turns", "x", "task"], "error: invalid value 'x' for '--max-turns <N>'"),
        (&["run", "--stdin", "x", "task"], "[possible values: auto, none, require]"),
        (&["config", "explain"], "error: the following required arguments were not provided: <KEY>"),
        (&["config"], "error: a command is missing"),
        (&["run", "-a", "nobody", "task"], "error: there is no agent `nobody`"),
    ] {
        Run::new().args(args.iter().copied()).run().exits(2).stdout_is("").reason_has(reason);
    }
}

#[test]
fn code_3_the_last_line_is_the_reason() {
    let one = Run::new().config("agent.yaml", "default_agnet: default\n").args(["run", "task"]).run().exits(3);
    one.reason_has("agent.yaml:1:1: unknown key `default_agnet`").stderr_has("did you mean `default_agent`?");
    let both = "default_agnet: default\nlimits: { max_turn: 3 }\n";
    let several = Run::new().config("agent.yaml", both).args(["config", "check"]).run().exits(3);
    several.reason_has("error: the configuration has 2 mistakes, the first at").reason_has("`default_agnet`");
    let layer = Run::new().args(["run", "-m", "demo", "--set", "context.budget=900", "hi"]).run().exits(3);
    layer.reason_has("mistakes, the first at --set context.budget: the layer `system` has");
}

#[test]
fn code_3_the_configuration_is_wrong() {
    let server = Server::start([]);
    Run::task(&server, "task")
        .config("agent.yaml", "default_agnet: default\n")
        .run()
        .exits(3)
        .stdout_is("")
        .stderr_has("agent.yaml:1")
        .stderr_has("default_agent");
    Run::task(&server, "task").args(["-o", "jsonl", "-a", "nobody"]).run().exits(2).stdout_is("");
    assert!(server.requests().is_empty(), "a wrong configuration sends nothing");
}

#[test]
fn code_4_authentication() {
    for status in [401, 403] {
        let server = Server::always(Reply::error(status, "Incorrect API key provided"));
        Run::task(&server, "task")
            .quick_retries()
            .run()
            .exits(4)
            .stdout_is("")
            .stderr_has("Incorrect API key provided")
            .stderr_has("scripted-model")
            .stderr_has(&status.to_string());
        assert_eq!(server.requests().len(), 1, "{status} is not retried");
    }
}

#[test]
fn code_4_no_model_configured_says_what_to_do() {
    let output = Run::new().args(["run", "task"]).run().exits(4).stdout_is("").stderr_has("OPENAI_API_KEY");
    assert!(output.stderr.contains("demo"), "the demo model is not named\n{}", output.shown());
    let lines = output.stderr.lines().filter(|line| !line.trim().is_empty()).count();
    assert!((3..=5).contains(&lines), "what to do takes three lines, not {lines}\n{}", output.shown());
}

#[test]
fn code_5_the_provider_failed_after_retries_that_are_shown() {
    let server = Server::always(Reply::error(500, "the server is on fire"));
    let output = Run::task(&server, "task").quick_retries().args(["-o", "jsonl"]).run().exits(5);
    assert_eq!(server.requests().len(), 3, "attempts: 3");
    assert_eq!(output.events().of("retry").len(), 2);
    let output = Run::task(&server, "task").quick_retries().run().exits(5).stdout_is("");
    assert!(output.reason().contains("the server is on fire"), "{}", output.shown());
    assert!(output.stderr.lines().count() >= 3, "the retries were not shown\n{}", output.shown());
}

#[test]
fn code_5_a_refused_request_is_not_retried() {
    for status in [400, 404, 422] {
        let server = Server::always(Reply::error(status, "no such thing"));
        Run::task(&server, "task").quick_retries().run().exits(5).stdout_is("").stderr_has("no such thing");
        assert_eq!(server.requests().len(), 1, "{status} is not retried");
    }
}

#[test]
fn code_5_nobody_listens() {
    let gone = Server::start([]).url();
    Run::new()
        .args(["run", "task"])
        .quick_retries()
        .env("OPENAI_BASE_URL", gone)
        .env("OPENAI_API_KEY", "k")
        .run()
        .exits(5)
        .stdout_is("");
}

#[test]
fn code_6_rate_limit_and_quota() {
    let limited = Server::always(Reply::error(429, "slow down").header("retry-after", "0"));
    Run::task(&limited, "task").quick_retries().run().exits(6).stdout_is("").stderr_has("slow down");
    assert_eq!(limited.requests().len(), 3, "429 is retried");
    let empty = Server::always(Reply::error(402, "insufficient balance"));
    Run::task(&empty, "task").quick_retries().run().exits(6).stdout_is("").stderr_has("insufficient balance");
    assert_eq!(empty.requests().len(), 1, "a quota that waiting does not refill is not retried");
    let spent = Server::always(Reply::json(
        429,
        &json!({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}}),
    ));
    Run::task(&spent, "task").quick_retries().run().exits(6);
    assert_eq!(spent.requests().len(), 1, "an exhausted quota is not retried");
}

#[test]
fn code_7_denied_because_nobody_could_be_asked() {
    let server = Server::start([
        Reply::call("write_file", &json!({"path": "new.txt", "content": "x"})),
        Reply::text("I could not write."),
    ]);
    let output = Run::task(&server, "write").run().exits(7).stdout_is("I could not write.\n");
    assert!(!output.place.exists("new.txt"), "a denied call ran");
    assert!(output.stderr.contains("write_file"), "the denial was not reported\n{}", output.shown());
}

#[test]
fn code_8_each_limit() {
    let list = json!({"path": "."});
    for (option, value) in [("--max-turns", "2"), ("--max-tokens", "12000"), ("--max-cost", "0.012")] {
        let server = calls_until_stopped("list_dir", &list, "Summary of what was done.");
        let output = Run::task(&server, "task")
            .args([option, value])
            .config("models/default.yaml", "prices: { input: 1.0, output: 1.0 }\n")
            .run()
            .exits(8)
            .stdout_is("Summary of what was done.\n");
        assert!(!output.reason().is_empty(), "{option}: no reason\n{}", output.shown());
    }
}

#[test]
fn code_9_the_context_cannot_be_made_to_fit() {
    let server = Server::always(Reply::json(
        400,
        &json!({"error": {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}}),
    ));
    Run::task(&server, "task").quick_retries().run().exits(9).stdout_is("").stderr_has("maximum context length");
}

#[test]
fn code_10_the_answer_does_not_match_the_schema() {
    let server = Server::always(Reply::text("{\"answer\": \"not a number\"}"));
    Run::task(&server, "task")
        .args(["--schema", "schema.json"])
        .file("schema.json", SCHEMA)
        .run()
        .exits(10)
        .stdout_is("")
        .stderr_has("answer");
}

#[test]
fn an_answer_that_matches_the_schema_is_printed() {
    let server = Server::start([Reply::text("{\"answer\": 42}")]);
    let output =
        Run::task(&server, "task").args(["--schema", "schema.json"]).file("schema.json", SCHEMA).run().success();
    assert_eq!(output.json(), json!({"answer": 42}));
    assert!(server.only_request().body.get("response_format").is_none(), "nothing is forced between calls");
}

#[test]
fn an_answer_that_does_not_match_is_corrected_with_the_schema_in_force() {
    let server = Server::start([Reply::text("It is 42."), Reply::text("```json\n{\"answer\": 42}\n```")]);
    let output =
        Run::task(&server, "task").args(["--schema", "schema.json"]).file("schema.json", SCHEMA).run().success();
    assert_eq!(output.json(), json!({"answer": 42}));
    let correction = &server.requests()[1];
    assert!(correction.body["response_format"].is_object(), "the model's capabilities say that it knows schemas");
}

#[test]
fn calls_of_a_correction_are_answered() {
    let calls = Reply::text_and_calls("{", &[("list_dir", "{}".to_owned()), ("list_dir", "{}".to_owned())]);
    let server = Server::start([Reply::text("It is 42."), calls, Reply::text("{\"answer\": 42}")]);
    let output =
        Run::task(&server, "task").args(["--schema", "schema.json"]).file("schema.json", SCHEMA).run().success();
    assert_eq!(output.json(), json!({"answer": 42}));
    assert_answered_once(&server.requests()[2]);
    assert!(server.requests()[2].raw.contains("Not run: this reply had to be the answer alone."));
}

#[test]
fn a_broken_schema_is_wrong_usage_or_configuration_and_sends_nothing() {
    let server = Server::start([]);
    let output =
        Run::task(&server, "task").args(["--schema", "schema.json"]).file("schema.json", "{").run().fails();
    assert!([2, 3].contains(&output.code) && output.stderr.contains("schema.json"), "{}", output.shown());
    assert!(server.requests().is_empty());
}

const SCHEMA: &str = r#"{"type": "object", "required": ["answer"], "properties": {"answer": {"type": "integer"}}, "additionalProperties": false}"#;

#[test]
fn code_12_stopped_in_a_loop() {
    let server = calls_until_stopped("list_dir", &json!({"path": "."}), "I was going in circles.");
    Run::task(&server, "task").run().exits(12).stdout_is("I was going in circles.\n");
    let requests = server.requests().len();
    assert!(requests <= 8, "a threshold of 3 stops at the sixth call, not after {requests} requests");
}

#[test]
fn code_124_time_ran_out() {
    let server = Server::always(Reply::text("never whole").then(2, Act::Hang));
    let output = Run::task(&server, "task").args(["--max-time", "500ms"]).run().exits(124);
    assert!(output.reason().contains("time"), "{}", output.shown());
}

#[test]
fn a_loop_beats_a_denial_and_a_limit_beats_a_denial() {
    let write = json!({"path": "new.txt", "content": "x"});
    let server = calls_until_stopped("write_file", &write, "Stopped.");
    Run::task(&server, "task").args(["--max-turns", "2"]).run().exits(8);
    let server = calls_until_stopped("write_file", &write, "Stopped.");
    Run::task(&server, "task").run().exits(12);
}

#[test]
fn a_failing_provider_beats_a_denial() {
    let server = Server::answering(|_, index| match index {
        0 => Reply::call("write_file", &json!({"path": "new.txt", "content": "x"})),
        _ => Reply::error(401, "expired"),
    });
    Run::task(&server, "task").quick_retries().run().exits(4);
}

#[test]
fn a_failed_run_still_completes_its_events() {
    let server = Server::always(Reply::error(401, "Incorrect API key provided"));
    let output = Run::task(&server, "task").args(["-o", "jsonl"]).run().exits(4);
    let events = output.events();
    assert_eq!(events.one("run.completed")["status"], "error");
    assert!(events.one("run.completed")["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
}

#[test]
fn a_reply_that_says_nothing_is_asked_for_again_and_never_a_success() {
    let server = Server::start([Reply::text(""), Reply::text("the answer")]);
    Run::task(&server, "task").quick_retries().run().success().stdout_is("the answer\n");
    let server = Server::always(Reply::text(""));
    Run::task(&server, "task").quick_retries().run().exits(5).stdout_is("").reason_has("empty");
}
