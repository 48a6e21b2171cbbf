//! Servers that refuse a part of a request, speak another protocol, or say what they are: the run goes on.

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::{Act, Reply};
use crate::run::Run;
use crate::server::{Request, Server};

fn refused(words: &str) -> Reply {
    let error =
        json!({"error": {"message": words, "type": "invalid_request_error", "code": "unsupported_parameter"}});
    Reply::json(400, &error)
}

/// A server that refuses every request in which `is_wrong` finds something, with these words.
fn refuses(words: &'static str, is_wrong: fn(&Request) -> bool) -> Server {
    Server::answering(move |request, _| {
        if is_wrong(request) {
            return refused(words);
        }
        match request.tool_results().len() {
            0 => Reply::call("read_file", &json!({"path": "a.txt"})),
            _ => Reply::text("done"),
        }
    })
}

/// A parameter that a server refuses: the model file, the words, and what is wrong in a request.
type Refusal = (&'static str, &'static str, fn(&Request) -> bool);

const REFUSALS: &[Refusal] = &[
    ("{}", "Unknown field: stream_options", |request| request.body["stream_options"].is_object()),
    (
        "{ temperature: 0.5 }",
        "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
        |request| request.body["temperature"].is_number(),
    ),
    (
        "{ max_output_tokens: 99 }",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        |request| request.body["max_tokens"].is_number(),
    ),
    ("{ reasoning_effort: high }", "Unrecognized request argument supplied: reasoning_effort", |request| {
        request.body["reasoning_effort"].is_string()
    }),
    (
        "{ reasoning_effort: max }",
        "Invalid value: 'max'. Supported values for reasoning_effort are: 'low', 'medium', and 'high'.",
        |request| request.body["reasoning_effort"] == "max",
    ),
    ("{ dialect: groq }", "property 'parallel_tool_calls' is not supported", |request| {
        !request.body["parallel_tool_calls"].is_null()
    }),
    (
        "{ capabilities: { prompt_cache_key: true } }",
        "Extra inputs are not permitted: prompt_cache_key",
        |request| !request.body["prompt_cache_key"].is_null(),
    ),
];

#[test]
fn a_parameter_that_a_server_refuses_is_left_out_once_and_for_all_with_one_notice() {
    for (model, words, is_wrong) in REFUSALS {
        let server = refuses(words, *is_wrong);
        let run = Run::task(&server, "task").file("a.txt", "a").args(["-o", "jsonl"]);
        let output = run.config("models/default.yaml", model).run().success();
        let requests = server.requests();
        assert_eq!(requests.len(), 3, "{words}: one refusal, two steps");
        assert_eq!(requests.iter().filter(|request| is_wrong(request)).count(), 1, "{words}");
        let told = output.events();
        assert_eq!((told.of("retry").len(), told.of("warning").len()), (0, 1), "{words}: {}", output.shown());
    }
}

#[test]
fn no_more_than_eight_parts_of_a_request_are_left_out() {
    let server = Server::answering(|request, index| {
        let known = ["stream_options", "temperature", "max_tokens", "max_completion_tokens", "reasoning_effort"];
        let sent = known.iter().find(|name| !request.body[**name].is_null()).unwrap_or(&"nothing");
        refused(&format!("unsupported parameter {index}: {sent}"))
    });
    let model = "{ temperature: 0.5, max_output_tokens: 9, reasoning_effort: low }\n";
    Run::task(&server, "task").config("models/default.yaml", model).run().exits(5);
    assert_eq!(server.requests().len(), 9);
}

#[test]
fn a_refusal_that_teaches_nothing_ends_the_run_with_its_words() {
    let server = refuses("messages.3: no", |_| true);
    Run::task(&server, "task").run().exits(5).stderr_has("messages.3: no");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_that_wants_its_reasoning_back_gets_it() {
    let thought = |call: &str| {
        let delta = json!({"choices": [{"delta": {"reasoning_content": "hm", "tool_calls": [{"index": 0, "id": call,
            "function": {"name": "read_file", "arguments": "{\"path\":\"a.txt\"}"}}]}, "finish_reason": "tool_calls"}]});
        Reply::events([&delta])
    };
    let server = Server::answering(move |request, _| {
        let calls = request.messages().iter().filter(|message| message["tool_calls"].is_array());
        let lacks = calls.clone().any(|message| message["reasoning_content"].is_null());
        match (calls.count(), lacks) {
            (0, _) => thought("call_1"),
            (_, true) => refused("The `reasoning_content` in the thinking mode must be passed back to the API."),
            (1, _) => thought("call_2"),
            _ => Reply::text("done"),
        }
    });
    Run::task(&server, "task").file("a.txt", "a").run().success().stdout_is("done\n");
    let requests = server.requests();
    let sent: Vec<&Value> =
        requests.iter().map(|request| &request.messages().last().expect("a message")["role"]).collect();
    assert_eq!(requests.len(), 4, "{sent:?}");
    let last = requests[3].messages().iter().rfind(|message| message["tool_calls"].is_array()).expect("a call");
    assert_eq!(last["reasoning_content"], "hm", "what came after the lesson goes back whole");
}

#[test]
fn a_refusal_of_what_was_not_sent_is_not_answered_by_the_same_request() {
    let server = Server::always(refused("Thinking mode does not support this tool_choice"));
    Run::task(&server, "task").quick_retries().run().exits(5).reason_has("does not support this tool_choice");
    assert_eq!(server.requests().len(), 1, "the request had no tool_choice to leave out");
}

#[test]
fn an_empty_end_after_a_result_is_the_end_where_the_model_has_spoken() {
    let call = [("read_file", json!({"path": "a.txt"}).to_string())];
    let server = Server::start([Reply::text_and_calls("All is well.", &call), Reply::text("")]);
    let run = Run::task(&server, "task").file("a.txt", "a").quick_retries();
    run.run().success().stdout_has("All is well.");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn an_empty_end_after_a_result_without_a_word_is_asked_once_to_go_on() {
    let call = || Reply::call("read_file", &json!({"path": "a.txt"}));
    let server = Server::start([call(), Reply::text(""), Reply::text("done")]);
    Run::task(&server, "task").file("a.txt", "a").quick_retries().run().success().stdout_is("done\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[2].user().contains("Your reply was empty"), "{}", requests[2].raw);
    // Who stays silent after that has failed.
    let silent = Server::answering(move |request, _| match request.tool_results().len() {
        0 => call(),
        _ => Reply::text(""),
    });
    let output = Run::task(&silent, "task").file("a.txt", "a").quick_retries().run();
    output.exits(5).reason_has("the reply was empty");
}

#[test]
fn a_server_that_calls_tools_only_over_responses_is_asked_there() {
    let server = Server::answering(|request, _| {
        if request.path != "/v1/responses" {
            return refused(
                "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            );
        }
        let item = json!({"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "done"}]});
        let usage = json!({"input_tokens": 9, "output_tokens": 1});
        Reply::events([
            &json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            &json!({"type": "response.completed", "response": {"status": "completed", "output": [item], "usage": usage}}),
        ])
    });
    let chat = Run::task(&server, "task").config("models/default.yaml", "dialect: openai\nwire: chat\n");
    chat.run().success().stdout_is("done\n").stderr_has("Responses");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_server_of_ones_own_says_its_window() {
    let props = json!({"default_generation_settings": {"n_ctx": 16384}, "total_slots": 1});
    // Long enough for its answer to come between two steps.
    let server = Server::answering(|request, _| match request.tool_results().len() {
        12 => Reply::text("done"),
        read => Reply::call("read_file", &json!({"path": "a.txt", "offset": read + 1})),
    })
    .about("/props", &props);
    let lines = "line\n".repeat(20);
    let run = Run::task(&server, "task").file("a.txt", &lines).args(["-o", "jsonl"]);
    let output = run.env("AGENT_MODEL", "my-model").run().success();
    let told = |output: &Output| {
        output.events().of("warning").iter().any(|event| event["message"].to_string().contains("16384"))
    };
    assert!(told(&output), "{}", output.shown());
    assert_eq!(server.questions(), 7);
    let declared =
        Run::task(&server, "task").file("a.txt", "a").args(["-o", "jsonl"]).env("AGENT_MODEL", "my-model");
    let output = declared.config("models/default.yaml", "context_window: 32000\n").run().success();
    assert!(!told(&output), "a declared window is not asked for");
    assert_eq!(server.questions(), 7);

    let server = Server::always(Reply::text("done"));
    Run::task(&server, "task").env("AGENT_MODEL", "my-model").run().success();
    assert_eq!(server.questions(), 0, "a run of one request has no use for the answer");
}

#[test]
fn an_answer_that_comes_whole_has_a_clock_of_its_own_and_is_asked_for_once() {
    let server = Server::answering(|_, _| Reply::nothing(Act::Hang));
    let model = "capabilities: { streaming: false }\ntimeouts: { first_byte: 40ms }\n";
    let output = Run::task(&server, "task").config("models/default.yaml", model).run().exits(5);
    output.stderr_has("within 200ms").stderr_has("not sent again");
    assert_eq!(server.requests().len(), 1);
}
