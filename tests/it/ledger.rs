//! The ledger of a run: what it may spend with all its helpers, and that every request is entered and reported once.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::output::Output;
use crate::plans::{self, Role, accepted, step};
use crate::reply::{Act, Gate, Reply, chunk, data, finish, usage};
use crate::run::Run;
use crate::server::{Request, Server};

/// USD per million tokens.
const PRICES: &str = "prices: { input: 1.0, cached_input: 0.1, output: 4.0 }\n";

fn is_helper(request: &Request) -> bool {
    request.system().starts_with("You are explore")
}

fn may_call(request: &Request) -> bool {
    request.body["tool_choice"] != "none" && !request.body["tools"].is_null()
}

/// `count` calls of helpers.
fn tasks(count: usize) -> Reply {
    let call = |at: usize| ("task", json!({ "agent": "explore", "prompt": format!("look {at}") }).to_string());
    Reply::calls(&(0..count).map(call).collect::<Vec<_>>())
}

/// An agent that calls `width` helpers in every step, each of which looks around for as long as it may.
fn spends_without_end(width: usize) -> Server {
    Server::answering(move |request, index| match (may_call(request), is_helper(request)) {
        (false, _) => Reply::text("Summary."),
        (true, false) => tasks(width),
        (true, true) => Reply::call("read_file", &json!({ "path": format!("f{index}.txt") })),
    })
}

fn total(usage: &Value) -> u64 {
    usage["input_tokens"].as_u64().unwrap_or_default() + usage["output_tokens"].as_u64().unwrap_or_default()
}

/// What the events of requests say in sum is what the record says, and what the server saw.
#[track_caller]
fn assert_adds_up(output: &Output, server: &Server) -> Vec<Value> {
    let events = output.events();
    let requests: Vec<Value> = events.of("request.finished").into_iter().cloned().collect();
    let record = events.one("run.completed");
    assert_eq!(requests.len(), server.requests().len(), "one event for every request");
    assert_eq!(record["requests"], requests.len());
    for field in ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"] {
        let sum: u64 = requests.iter().filter_map(|request| request["usage"][field].as_u64()).sum();
        assert_eq!(record["usage"][field], sum, "{field}");
    }
    let sum: f64 = requests.iter().filter_map(|request| request["cost_usd"].as_f64()).sum();
    let cost = record["cost_usd"].as_f64().unwrap_or_default();
    assert!((sum - cost).abs() < 1e-9, "{sum} and {cost}");
    requests
}

fn fields<'v>(requests: &'v [Value], name: &str) -> Vec<&'v str> {
    requests.iter().map(|request| request[name].as_str().unwrap_or("-")).collect()
}

#[test]
fn turns_bind_a_conversation_and_requests_bind_the_run_with_its_helpers() {
    for (options, most, word) in [
        (&["--max-turns", "5"][..], 50, "max_requests"),
        (&["--max-requests", "7"], 7, "max_requests"),
        (&["--set", "limits.max_requests=3"], 3, "max_requests"),
        (&["--max-turns", "2", "--max-requests", "1000"], 1000, "max_turns"),
    ] {
        let server = spends_without_end(3);
        let output = Run::task(&server, "task").args(options.to_vec()).args(["-o", "jsonl"]).run().exits(8);
        let sent = server.requests().len();
        assert!(sent <= most, "{options:?}: {sent} requests");
        assert!(word == "max_turns" || sent >= most - 1, "{options:?}: only {sent} requests");
        assert_adds_up(&output, &server);
        output.reason_has(word).reason_has(&format!("{sent} requests"));
    }
}

#[test]
fn a_limit_of_one_request_still_allows_an_answer() {
    let server = Server::start([Reply::text("done")]);
    Run::task(&server, "task").args(["--max-requests", "1"]).run().success().stdout_is("done\n");
}

#[test]
fn eight_helpers_side_by_side_do_not_pass_a_limit_of_their_caller() {
    let cost = |output: &Output| output.events().one("run.completed")["cost_usd"].as_f64().unwrap_or_default();
    for (option, limit) in [("--max-tokens", "90000"), ("--max-cost", "0.12")] {
        let server = spends_without_end(8);
        let output = Run::task(&server, "task")
            .config("models/default.yaml", PRICES)
            .args([option, limit, "--set", "limits.max_parallel=8", "-o", "jsonl"])
            .run()
            .exits(8);
        assert_adds_up(&output, &server);
        let used = total(&output.events().one("run.completed")["usage"]);
        assert!(option == "--max-cost" || (45_000..=90_900).contains(&used), "{used} tokens");
        let dollars = cost(&output);
        assert!(option == "--max-tokens" || (0.06..=0.1212).contains(&dollars), "${dollars}");
        assert!(server.requests().iter().filter(|request| is_helper(request)).count() > 4, "helpers worked");
    }
}

#[test]
fn what_does_not_fit_is_not_sent() {
    for (option, value) in [("--max-tokens", "10"), ("--max-cost", "0.0001")] {
        let server = Server::always(Reply::text("never"));
        let output = Run::task(&server, "task")
            .config("models/default.yaml", PRICES)
            .args([option, value, "-o", "jsonl"])
            .run()
            .exits(8)
            .reason_has("0 requests");
        assert_eq!(server.requests().len(), 0);
        assert_adds_up(&output, &server);
    }
}

#[test]
fn a_reply_is_shortened_only_where_less_is_left_and_never_below_1024() {
    let sent = |options: &[&str]| {
        let server = Server::always(Reply::text("done"));
        Run::task(&server, "task")
            .config("models/default.yaml", "max_output_tokens: 4000\n")
            .config("agents/default.yaml", "tools: [read_file]\n")
            .args(options.to_vec())
            .run();
        server.requests().first().cloned()
    };
    let plain = sent(&[]).expect("a request");
    assert_eq!(plain.body["max_tokens"], 4000);
    let input = plain.raw.len() as u64 / 4;
    // The request, and a closing answer with its reply as well.
    let needed = |reply: u64| (2 * (input + reply) + 512 + 1024 + 100).to_string();
    for (reply, least, most) in [(4000, 4000, 4000), (2500, 2400, 2700), (1100, 1024, 1300)] {
        let request = sent(&["--max-tokens", &needed(reply)]).expect("a request");
        let limit = request.body["max_tokens"].as_u64().unwrap_or_default();
        assert!((least..=most).contains(&limit), "{limit} instead of {reply}");
        assert_ne!(request.body["tool_choice"], "none");
    }
    let closing = sent(&["--max-tokens", &needed(900)]).expect("the closing answer fits");
    assert_eq!(closing.body["tool_choice"], "none");
    assert!(closing.body["max_tokens"].as_u64() >= Some(1024));
    assert!(sent(&["--max-tokens", &(input + 900).to_string()]).is_none(), "not even the closing answer fits");
}

#[test]
fn a_limit_that_the_server_does_not_accept_is_lowered() {
    let server = Server::answering(|request, _| {
        let most = ["max_tokens", "max_completion_tokens"].iter().find_map(|key| request.body[*key].as_u64());
        match most {
            Some(most) if most > 2048 => {
                let words =
                    format!("max_tokens: {most} > 2048, which is the maximum allowed number of output tokens");
                Reply::error(400, &words)
            }
            _ => Reply::text("done"),
        }
    });
    let output = Run::task(&server, "task").args(["--max-tokens", "60000", "-o", "jsonl"]).run().success();
    let requests = assert_adds_up(&output, &server);
    assert_eq!(fields(&requests, "status"), ["refused", "ok"]);
}

#[test]
fn retried_refused_and_broken_requests_are_entered_with_what_they_took() {
    let server = Server::start([
        Reply::error(503, "overloaded"),
        Reply::text("First half, second half.").then(2, Act::Close),
        Reply::text(""),
        Reply::text("done"),
    ]);
    let output = Run::task(&server, "task")
        .config("models/default.yaml", "prices: { input: 1.0, output: 4.0 }\nretry: { base_delay: 1ms }\n")
        .args(["-o", "jsonl"])
        .run()
        .success();
    let requests = assert_adds_up(&output, &server);
    assert_eq!(fields(&requests, "status"), ["refused", "failed", "failed", "ok"]);
    let attempts: Vec<_> =
        requests.iter().map(|request| request["attempt"].as_u64().unwrap_or_default()).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    assert_eq!(total(&requests[0]["usage"]), 0, "a refusal costs nothing");
    assert_eq!(requests[1]["usage"]["estimated"], true);
    assert_eq!(requests[2]["usage"]["output_tokens"], 20, "the empty reply was counted by its server");
}

/// The usage that one request is entered with, whose reply fails.
fn usage_of_failure(wire: &str, reply: Reply) -> Value {
    let server = Server::always(reply);
    let model = format!("wire: {wire}\nretry: {{ attempts: 1 }}\nprices: {{ input: 1.0, output: 4.0 }}\n");
    let output =
        Run::task(&server, "task").config("models/default.yaml", &model).args(["-o", "jsonl"]).run().fails();
    let requests = assert_adds_up(&output, &server);
    assert_eq!(fields(&requests, "status"), ["failed"], "{}", output.shown());
    requests[0]["usage"].clone()
}

fn events_as_sent(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(data).collect()
}

/// A piece of a call, and the usage so far if it is known.
fn arguments(reported: Option<(u64, u64)>) -> Vec<u8> {
    let function = json!({"name": "write_file", "arguments": "{\"path\": \"a.txt\", \"content\": \"and so on"});
    let mut event = chunk(&json!({"tool_calls": [{"index": 0, "id": "c", "function": function}]}));
    event["usage"] = reported.map(usage).into();
    data(&event)
}

#[test]
fn a_reply_that_fails_is_entered_with_what_its_server_states() {
    let mut gives_up = finish("error");
    gives_up["usage"] = usage((20_000, 3000));
    let malformed = json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}],
        "usageMetadata": {"promptTokenCount": 20_000, "candidatesTokenCount": 3000}});
    let begun = json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
        "content": [], "usage": {"input_tokens": 20_000, "output_tokens": 3000}}});
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let cancelled = json!({"type": "response.cancelled", "response": {"object": "response", "status": "cancelled",
        "output": [], "usage": {"input_tokens": 20_000, "output_tokens": 3000}}});
    for (wire, body) in [
        ("chat", arguments(Some((20_000, 3000)))),
        ("chat", events_as_sent(&[chunk(&json!({"content": "Hm."})), gives_up])),
        ("gemini", events_as_sent(&[malformed])),
        ("anthropic", events_as_sent(&[begun, overloaded])),
        ("responses", events_as_sent(&[cancelled])),
    ] {
        let usage = usage_of_failure(wire, Reply::sse(body).then(1, Act::Cut));
        assert_eq!(usage["input_tokens"], 20_000, "{wire}: {usage}");
        assert_eq!(
            (&usage["output_tokens"], &usage["estimated"]),
            (&json!(3000), &json!(false)),
            "{wire}: {usage}"
        );
    }
}

#[test]
fn a_reply_that_is_given_up_keeps_the_input_that_its_server_stated() {
    let begun = json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
        "content": [], "usage": {"input_tokens": 15_000, "cache_read_input_tokens": 5000, "output_tokens": 1}}});
    let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let text = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let half = text("First half of what could be said about this.");
    let mut counted = chunk(&json!({"content": "First half of what could be said about this."}));
    counted["usage"] = json!({"prompt_tokens": 20_000, "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 5000}});
    for (wire, body) in [("anthropic", vec![begun, block, half]), ("chat", vec![counted])] {
        let body = events_as_sent(&body);
        let failed = usage_of_failure(wire, Reply::sse(body.clone()).then(1, Act::Cut));
        let gate = Gate::new();
        let server = Server::always(Reply::sse(body).gate(&gate, 1));
        let model = format!("wire: {wire}\nprices: {{ input: 1.0, output: 4.0 }}\n");
        let running =
            Run::task(&server, "task").config("models/default.yaml", &model).args(["-o", "jsonl"]).spawn();
        running.wait_stdout("First half");
        running.signal(Signal::SIGINT);
        let output = running.wait().exits(130);
        gate.open();
        let requests = assert_adds_up(&output, &server);
        assert_eq!(fields(&requests, "status"), ["cancelled"]);
        for usage in [&failed, &requests[0]["usage"]] {
            let input = (&usage["input_tokens"], &usage["cached_input_tokens"]);
            assert_eq!(input, (&json!(20_000), &json!(5000)), "{wire}: {usage}");
            assert!(usage["output_tokens"].as_u64() > Some(5) && usage["estimated"] == true, "{wire}: {usage}");
        }
    }
}

#[test]
fn a_reply_that_fails_unreported_is_estimated_once_it_has_begun() {
    let usage = usage_of_failure("chat", Reply::sse(arguments(None)).then(1, Act::Cut));
    assert_eq!(usage["estimated"], true);
    assert!(usage["input_tokens"].as_u64() > Some(100) && usage["output_tokens"].as_u64() > Some(5), "{usage}");
    let begun = data(&chunk(&json!({"role": "assistant"})));
    let usage = usage_of_failure("chat", Reply::sse(begun).then(1, Act::Cut));
    assert!(usage["estimated"] == true && usage["input_tokens"].as_u64() > Some(100), "{usage}");
    let error = data(&json!({"error": {"message": "out of order", "code": "server_error"}}));
    let usage = usage_of_failure("chat", Reply::sse(error));
    assert_eq!(total(&usage), 0, "an error in place of a reply costs nothing");
}

#[test]
fn a_plan_with_a_helper_adds_up() {
    let steps = [step(1, "explore", &json!({ "prompt": "look" }), &[])];
    let server =
        plans::roles(vec![(Role::Planner, vec![plans::plan(&steps)]), (Role::Reflector, vec![accepted()])]);
    let output = plans::run(&server, &["-o", "jsonl"]).config("models/default.yaml", PRICES).run();
    let requests = assert_adds_up(&output, &server);
    let roles = fields(&requests, "role");
    assert_eq!(roles, ["planner", "main", "reflector", "closing"], "{}", output.shown());
    assert_eq!(fields(&requests, "helper"), ["-", "explore#1", "-", "-"]);
    assert_eq!(fields(&requests, "provider"), ["openai"; 4]);
}

#[test]
fn a_summary_adds_up() {
    let server = crate::context::talks_at_length(25, |asked| {
        Reply::text(&crate::context::summary(&format!("round-{asked}")))
    });
    let output = crate::context::run(&server, crate::context::TASK).args(["-o", "jsonl"]).run().success();
    let requests = assert_adds_up(&output, &server);
    assert!(fields(&requests, "role").contains(&"summary"));
}

#[test]
fn the_provider_is_that_of_the_protocol_where_the_host_is_unknown() {
    for (wire, provider) in [("chat", "openai"), ("responses", "openai"), ("anthropic", "anthropic")] {
        let server = Server::always(Reply::error(401, "no"));
        let output = Run::task(&server, "task")
            .config("models/default.yaml", &format!("wire: {wire}\n"))
            .args(["-o", "jsonl"])
            .run()
            .exits(4);
        let requests = assert_adds_up(&output, &server);
        assert_eq!(
            (fields(&requests, "provider"), fields(&requests, "status")),
            (vec![provider], vec!["refused"])
        );
    }
}
