//! What is asked of a provider, and how its refusals are understood.

use serde_json::json;

use crate::reply::Reply;
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
    let output = Run::task(&server, "task").args(["--max-time", "1h"]).run();
    output.exits(6).reason_has("slow down (to be tried again in 2h, which max_time forbids)");
    assert_eq!(server.requests().len(), 1);
}
