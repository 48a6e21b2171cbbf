//! Requests to a provider, and the interpretation of its refusals.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::json;

use crate::output::Events;
use crate::reply::{Act, Reply};
use crate::run::Run;
use crate::server::Server;

#[test]
fn only_what_the_model_is_said_to_know_is_sent() {
    let server = Server::always(Reply::text("ok"));
    Run::task(&server, "task").run().success();
    Run::task(&server, "task")
        .config(
            "models/default.yaml",
            "capabilities: { stream_usage: false, tools: false }\ntemperature: 0.5\nextra_body: { top_k: 7 }\n\
             headers: { X-Team: blue }\n",
        )
        .run()
        .success();
    let [plain, told] = &server.requests()[..] else { panic!("two requests") };
    assert_eq!(plain.body["stream"], true);
    assert_eq!(plain.body["stream_options"]["include_usage"], true);
    assert!(plain.body["temperature"].is_null(), "null is not sent");
    assert_eq!(plain.path, "/v1/chat/completions");
    assert!(told.body["stream_options"].is_null() && told.body["tools"].is_null(), "{}", told.raw);
    assert_eq!(told.body["temperature"], 0.5);
    assert_eq!(told.body["top_k"], 7);
    assert_eq!(told.header("x-team"), Some("blue"));
    assert_eq!(told.header("authorization").map(|value| value.starts_with("Bearer ")), Some(true));
}

#[test]
fn too_long_a_context_is_recognised_in_every_dialect() {
    let dialects = [
        json!({"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded"}}),
        json!({"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error"}}),
        json!({"object": "error", "message": "This model's maximum context length is 4096 tokens. Please reduce the length of the messages.", "code": 400}),
        json!({"error": {"message": "litellm.ContextWindowExceededError: input is too long", "code": "400"}}),
        json!({"error": {"message": "input length exceeds the context length"}}),
        json!({"error": {"message": "Range of input length should be [1, 129024]", "code": "invalid_parameter_error"}}),
        json!({"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}),
    ];
    for body in dialects {
        let server = Server::always(Reply::json(400, &body));
        let output = Run::task(&server, "task").quick_retries().run();
        assert!(output.code == 9, "{body}\n{}", output.shown());
    }
}

#[test]
fn refusals_in_every_shape_keep_their_words_and_status() {
    for body in [
        "{\"error\": \"no such model\"}",
        "{\"error\": {\"message\": \"no such model\", \"code\": 404}}",
        "[{\"error\": {\"message\": \"no such model\"}}]",
        "{\"detail\": \"no such model\"}",
        "no such model",
    ] {
        let server = Server::always(Reply::body(404, "application/json", body));
        Run::task(&server, "task").run().exits(5).stderr_has("no such model").stderr_has("404");
    }
}

#[test]
fn transient_statuses_are_retried() {
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        let server = Server::start([Reply::error(status, "later"), Reply::text("Hello, world.")]);
        let output = Run::task(&server, "task").quick_retries().run();
        assert!(output.code == 0 && output.stdout == "Hello, world.\n", "{status}\n{}", output.shown());
    }
}

#[test]
fn a_wait_that_max_time_forbids_ends_in_the_words_of_the_provider() {
    let server = Server::always(Reply::error(429, "slow down").header("retry-after", "7200"));
    let patient = "retry: { max_delay: 3h }\n";
    let output =
        Run::task(&server, "task").args(["--max-time", "1h"]).config("models/default.yaml", patient).run();
    output.exits(6).reason_has("slow down (a retry would wait 2h, longer than max_time allows)");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_wait_beyond_the_longest_delay_ends_the_run_with_the_time_to_come_back() {
    let retry_after = |status, words, seconds| Reply::error(status, words).header("retry-after", seconds);
    for (reply, code, reason) in [
        (retry_after(429, "slow down", "7200"), 6, "slow down (come back in 2h, at "),
        (retry_after(503, "maintenance", "600"), 5, "(come back in 10m, at "),
        (Reply::error(429, "Rate limit reached. Try again in 2m30s."), 6, "(come back in 3m, at "),
        (
            Reply::error(429, "Rate limit of 50 exceeded for UserByModelByDay. Please wait 30 seconds."),
            6,
            "30s, at ",
        ),
    ] {
        let server = Server::always(reply);
        let output = Run::task(&server, "task").run().exits(code).reason_has(reason);
        assert_eq!(server.requests().len(), 1, "{}", output.shown());
    }
}

#[test]
fn a_short_wait_is_waited_for_and_a_request_that_fails_for_good_is_not_made_again() {
    let in_words = Reply::error(429, "Please try again in 3ms.");
    let server =
        Server::start([in_words, Reply::error(500, "no").header("retry-after-ms", "2"), Reply::text("done")]);
    Run::task(&server, "task").quick_retries().run().success();
    for (reply, code) in [
        (Reply::error(500, "no").header("x-should-retry", "false"), 5),
        (Reply::error(429, "no").header("x-should-retry", "false"), 6),
        (Reply::error(429, "Usage limit reached for 5 hour"), 6),
    ] {
        let server = Server::always(reply);
        Run::task(&server, "task").quick_retries().run().exits(code);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_failure_says_what_to_do_in_its_line() {
    for (reply, code, advice) in [
        (Reply::error(404, "The model `x` does not exist"), 5, "`agent model list` shows the known names"),
        (Reply::error(400, "x does not support tools"), 5, "`capabilities: { tools: false }`"),
        (Reply::error(401, "Incorrect API key provided"), 4, "Check the key"),
    ] {
        let server = Server::always(reply);
        Run::task(&server, "task").quick_retries().run().exits(code).reason_has(advice);
    }
}

/// A change of every reply.
type Change = fn(Reply) -> Reply;

/// Reads `a.txt` in three steps and is done, every reply changed by `reply`. A connection that has served a request
/// ends with `again` when it gets another one.
fn three_reads(reply: Change, again: Act) -> Server {
    let served = Mutex::new(BTreeSet::new());
    Server::answering(move |request, _| {
        let next = match request.tool_results().len() {
            3 => Reply::text("done"),
            read => Reply::call("read_file", &json!({"path": "a.txt", "offset": read + 1})),
        };
        let fresh = served.lock().expect("no answer panics").insert(request.connection);
        if fresh { reply(next) } else { Reply::nothing(again.clone()) }
    })
}

#[test]
fn a_request_on_a_connection_that_was_closed_meanwhile_is_sent_again_at_once() {
    let close = |reply: Reply| reply.closing();
    let told = |reply: Reply| reply.header("connection", "close").closing();
    let keep = |reply: Reply| reply;
    let table: [(&str, Change, Act, usize); 4] = [
        ("closed after each reply", close, Act::Cut, 4),
        ("closed after each reply, as announced", told, Act::Cut, 4),
        ("closed once the next request is there", keep, Act::Cut, 7),
        ("reset once the next request is there", keep, Act::Reset, 7),
    ];
    for (name, reply, again, requests) in table {
        let server = three_reads(reply, again);
        let run = Run::task(&server, "task").file("a.txt", "1\n2\n3\n").args(["-o", "jsonl"]);
        let output = run.run().success();
        assert_eq!(output.events().of("retry").len(), 0, "{name}");
        assert_eq!((server.requests().len(), server.connections()), (requests, 4), "{name}");
    }
}

fn quick(server: &Server) -> Events {
    let run = Run::task(server, "task").file("a.txt", "a").quick_retries().args(["-o", "jsonl"]);
    run.run().success().events()
}

#[test]
fn a_fresh_connection_that_fails_is_a_failed_attempt() {
    for end in [Act::Cut, Act::Reset] {
        let server = Server::answering(move |_, index| match index {
            0 => Reply::nothing(end.clone()),
            _ => Reply::text("done"),
        });
        let events = quick(&server);
        assert_eq!((events.of("retry").len(), server.requests().len()), (1, 2));
    }
}

#[test]
fn a_request_is_sent_again_once_an_attempt() {
    let server = Server::answering(|_, index| match index {
        0 => Reply::call("read_file", &json!({"path": "a.txt"})),
        // The connection that is kept, and the fresh one after it.
        1 | 2 => Reply::nothing(Act::Cut),
        _ => Reply::text("done"),
    });
    let events = quick(&server);
    assert_eq!((events.of("retry").len(), server.requests().len(), server.connections()), (1, 4, 3));
}

#[test]
fn an_answer_that_breaks_off_is_not_asked_for_again_at_once() {
    let server = Server::answering(|_, index| match index {
        0 => Reply::call("read_file", &json!({"path": "a.txt"})),
        1 => Reply::text("done").then(1, Act::Cut),
        _ => Reply::text("done"),
    });
    let events = quick(&server);
    assert_eq!((events.of("retry").len(), server.requests().len()), (1, 3));
}

#[test]
fn a_null_in_the_extra_body_takes_away_what_the_program_sets() {
    let server = Server::start([Reply::text("ok")]);
    Run::task(&server, "task")
        .config("models/default.yaml", "extra_body: { stream_options: null, top_k: 7, never_set: null }\n")
        .run()
        .success();
    let body = server.only_request().body;
    assert_eq!((body.get("stream_options"), &body["top_k"]), (None, &json!(7)));
    assert_eq!(body.get("never_set"), None);
}
