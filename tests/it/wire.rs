//! The wire as real servers speak it: one row per quirk, with the expected result.

use serde_json::{Value, json};

use crate::output::Events;
use crate::reply::{Act, DONE, Reply, USAGE, UsageAt, chunk, data, finish, usage, usage_last};
use crate::run::Run;
use crate::server::Server;

/// The expected answer of a stream that is odd but complete.
struct Quirk {
    name: &'static str,
    reply: Reply,
    answer: &'static str,
}

fn quirk(name: &'static str, reply: Reply, answer: &'static str) -> Quirk {
    Quirk { name, reply, answer }
}

/// The two halves of the usual answer, as deltas.
fn halves() -> [Value; 2] {
    [chunk(&json!({"content": "Hello, "})), chunk(&json!({"content": "world."}))]
}

/// The usual answer with every chunk changed by `edit`.
fn edited(edit: impl Fn(usize, &mut Value)) -> Reply {
    let [first, second] = halves();
    let mut events = [first, second, finish("stop"), usage_last(USAGE)];
    for (index, event) in events.iter_mut().enumerate() {
        edit(index, event);
    }
    Reply::events(&events)
}

/// The usual answer as bytes, without its end.
fn plain() -> String {
    let [first, second] = halves();
    [first, second, finish("stop")].iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table, a row a quirk")]
fn odd_but_whole_streams_give_the_whole_answer_at_once() {
    let [first, second] = halves();
    let table = [
        quirk("usage last, empty choices", Reply::text("Hello, world."), "Hello, world."),
        quirk(
            "usage last, a choice with it",
            Reply::text_with_usage("Hello, world.", UsageAt::LastWithChoice),
            "Hello, world.",
        ),
        quirk(
            "usage on the finish chunk",
            Reply::text_with_usage("Hello, world.", UsageAt::Finish),
            "Hello, world.",
        ),
        quirk("no usage at all", Reply::text_with_usage("Hello, world.", UsageAt::Never), "Hello, world."),
        quirk(
            "comments as keep-alive",
            Reply::sse(format!(": ping\n\n:\n\n{}: ping\n\n{DONE}", plain())),
            "Hello, world.",
        ),
        quirk("carriage returns", Reply::sse((plain() + DONE).replace('\n', "\r\n")), "Hello, world."),
        quirk("no space after data:", Reply::sse((plain() + DONE).replace("data: ", "data:")), "Hello, world."),
        quirk("a byte order mark", Reply::sse(format!("\u{feff}{}{DONE}", plain())), "Hello, world."),
        quirk(
            "other fields of the event stream",
            Reply::sse((plain() + DONE).replace("data: ", "event: x\nid: 7\nretry: 5\ndata: ")),
            "Hello, world.",
        ),
        quirk("a space after [DONE]", Reply::sse(format!("{}data: [DONE] \n\n", plain())), "Hello, world."),
        quirk("no [DONE], but a finish_reason", Reply::sse(plain()), "Hello, world."),
        quirk("[DONE], but no finish_reason", Reply::events([&first, &second]), "Hello, world."),
        quirk(
            "no blank line after the last event",
            Reply::sse((plain() + DONE).trim_end().to_owned()),
            "Hello, world.",
        ),
        quirk("the stream in single bytes", Reply::text("Grüße, 世界 👋🏽!").split(1), "Grüße, 世界 👋🏽!"),
        quirk("UTF-8 split across packets", Reply::text("Grüße, 世界 👋🏽!").split(7), "Grüße, 世界 👋🏽!"),
        quirk(
            "the finish frame twice",
            Reply::events([
                &first,
                &second,
                &finish("stop"),
                &finish("stop"),
                &usage_last(USAGE),
                &usage_last(USAGE),
            ]),
            "Hello, world.",
        ),
        quirk(
            "an id that changes",
            edited(|index, event| event["id"] = format!("other-{index}").into()),
            "Hello, world.",
        ),
        quirk(
            "id, created and object missing",
            edited(|_, event| {
                let event = event.as_object_mut().expect("a chunk is an object");
                event.retain(|key, _| key == "choices" || key == "usage");
            }),
            "Hello, world.",
        ),
        quirk(
            "id null, created a float",
            edited(|_, event| {
                event["id"] = Value::Null;
                event["created"] = json!(1.5e12);
            }),
            "Hello, world.",
        ),
        quirk(
            "a choice without index",
            edited(|_, event| {
                if let Some(choice) = event["choices"].get_mut(0).and_then(Value::as_object_mut) {
                    choice.remove("index");
                }
            }),
            "Hello, world.",
        ),
        quirk(
            "a role that is empty or odd",
            edited(|index, event| {
                if let Some(choice) = event["choices"].get_mut(0) {
                    choice["delta"]["role"] = ["", "model", "assistant", "assistant"][index].into();
                }
            }),
            "Hello, world.",
        ),
        quirk(
            "finish_reason empty until the end",
            edited(|index, event| {
                if let Some(choice) = event["choices"].get_mut(0).filter(|_| index < 2) {
                    choice["finish_reason"] = "".into();
                }
            }),
            "Hello, world.",
        ),
        quirk("a finish_reason nobody knows", Reply::events([&first, &second, &finish("eos")]), "Hello, world."),
        quirk(
            "choices null on the usage chunk",
            edited(|index, event| {
                if index == 3 {
                    event["choices"] = Value::Null;
                }
            }),
            "Hello, world.",
        ),
        quirk(
            "a chunk without choices first",
            Reply::events([&json!({"id": "x", "prompt_filter_results": []}), &first, &second, &finish("stop")]),
            "Hello, world.",
        ),
        quirk(
            "content null",
            Reply::events([
                &chunk(&json!({"role": "assistant", "content": null})),
                &first,
                &second,
                &finish("stop"),
            ]),
            "Hello, world.",
        ),
        quirk(
            "a delta missing at the finish",
            edited(|index, event| {
                if let Some(choice) =
                    event["choices"].get_mut(0).and_then(Value::as_object_mut).filter(|_| index == 2)
                {
                    choice.remove("delta");
                }
            }),
            "Hello, world.",
        ),
        quirk(
            "usage in floats",
            edited(|index, event| {
                if index == 3 {
                    event["usage"] = json!({"prompt_tokens": 100.0, "completion_tokens": 20.0});
                }
            }),
            "Hello, world.",
        ),
        quirk(
            "a service tier nobody knows",
            edited(|_, event| event["service_tier"] = "on_demand".into()),
            "Hello, world.",
        ),
        quirk(
            "content in parts",
            Reply::events([
                &chunk(&json!({"content": [{"type": "text", "text": "Hello, world."}]})),
                &finish("stop"),
            ]),
            "Hello, world.",
        ),
    ];
    for Quirk { name, reply, answer } in table {
        let server = Server::start([reply]);
        let output = Run::task(&server, "task").run();
        assert!(
            output.code == 0 && output.stdout == format!("{answer}\n") && server.requests().len() == 1,
            "{name}: {} requests\n{}",
            server.requests().len(),
            output.shown()
        );
    }
}

#[test]
fn usage_is_found_wherever_it_stands_and_estimated_where_it_does_not() {
    for (at, estimated) in [
        (UsageAt::Last, false),
        (UsageAt::LastWithChoice, false),
        (UsageAt::Finish, false),
        (UsageAt::Never, true),
    ] {
        let server = Server::start([Reply::text_with_usage("Hello, world.", at).counted(5000)]);
        let object = Run::task(&server, "task").args(["-o", "json"]).run().success().json();
        assert_eq!(object["usage"]["estimated"], estimated, "{object}");
        if estimated {
            assert!(object["usage"]["input_tokens"].as_u64() > Some(0), "{object}");
        } else {
            assert_eq!(object["usage"]["input_tokens"], 5000, "{object}");
            assert_eq!(object["usage"]["output_tokens"], 20, "{object}");
        }
    }
}

#[test]
fn cached_and_reasoning_tokens_are_read_in_every_dialect() {
    for details in [
        json!({"prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 7}}),
        json!({"prompt_cache_hit_tokens": 64, "completion_tokens_details": {"reasoning_tokens": 7}}),
    ] {
        let mut last = usage_last(USAGE);
        for (key, value) in details.as_object().expect("an object") {
            last["usage"][key] = value.clone();
        }
        let [first, second] = halves();
        let server = Server::start([Reply::events([&first, &second, &finish("stop"), &last])]);
        let object = Run::task(&server, "task").args(["-o", "json"]).run().success().json();
        assert_eq!(object["usage"]["cached_input_tokens"], 64, "{object}");
        assert_eq!(object["usage"]["reasoning_tokens"], 7, "{object}");
    }
}

#[test]
fn usage_that_counts_up_in_every_chunk_is_counted_once() {
    let server = Server::start([edited(|index, event| event["usage"] = usage((100, 5 * (index as u64 + 1))))]);
    let object = Run::task(&server, "task").args(["-o", "json"]).run().success().json();
    assert_eq!(object["usage"]["input_tokens"], 100, "{object}");
    assert_eq!(object["usage"]["output_tokens"], 20, "{object}");
}

#[test]
fn reasoning_is_read_shown_as_such_and_never_part_of_the_answer() {
    for field in ["reasoning_content", "reasoning"] {
        let [first, second] = halves();
        let mut thought = json!({});
        thought[field] = "Let me think.".into();
        let reply = Reply::events([&chunk(&thought), &first, &second, &finish("stop")]);
        let server = Server::start([reply.clone(), reply]);
        Run::task(&server, "task").run().success().stdout_is("Hello, world.\n");
        let events = Run::task(&server, "task").args(["-o", "jsonl"]).run().success().events();
        assert_eq!(events.text("reasoning.delta"), "Let me think.", "{field}");
        assert_eq!(events.text("text.delta"), "Hello, world.", "{field}");
    }
}

#[test]
fn broken_streams_are_retried_and_their_text_is_void() {
    let [first, second] = halves();
    let error = |code: Value| data(&json!({"error": {"message": "upstream trouble", "code": code}}));
    let with_error = |code: Value| Reply::sse([data(&first), error(code), DONE.into()].concat());
    let table = [
        ("the connection is reset", Reply::text("Hello, world.").then(2, Act::Reset)),
        ("the connection ends", Reply::text("Hello, world.").then(2, Act::Cut)),
        ("the body ends in order, the reply does not", Reply::sse([data(&first), data(&second)].concat())),
        ("cut inside an event", Reply::sse(format!("data: {first}\n\ndata: {{\"choices\": [{{\"del"))),
        (
            "an event that is not JSON",
            Reply::sse(format!("data: {first}\n\ndata: {{oops\n\ndata: {second}\n\n{DONE}")),
        ),
        ("an error with a number as code", with_error(json!(503))),
        ("an error with a string as code", with_error(json!("server_error"))),
        ("an error in words alone", Reply::sse([data(&first), data(&json!({"error": "overloaded"}))].concat())),
        ("nothing at all", Reply::sse("")),
        (
            "invalid UTF-8",
            Reply::sse(
                [data(&first), b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"}}]}\n\n".to_vec()]
                    .concat(),
            ),
        ),
        ("an answer to nothing", Reply::raw("")),
        ("no HTTP at all", Reply::raw("hello\r\n")),
    ];
    for (name, reply) in table {
        let server = Server::start([reply, Reply::text("Hello, world.")]);
        let output = Run::task(&server, "task").quick_retries().args(["-o", "jsonl"]).run();
        assert!(output.code == 0 && server.requests().len() == 2, "{name}\n{}", output.shown());
        let events = output.events();
        assert_eq!(events.of("retry").len(), 1, "{name}");
        assert_eq!(text_after_retry(&events), "Hello, world.", "{name}");
        assert_eq!(events.one("run.completed")["result"], "Hello, world.", "{name}");
        let [a, b] = &server.requests()[..] else { panic!("two requests") };
        assert_eq!(a.raw, b.raw, "{name}: a retry sends the same request");
    }
}

/// The deltas that a retry did not void.
fn text_after_retry(events: &Events) -> String {
    let mut text = String::new();
    for event in &events.0 {
        match event["type"].as_str() {
            Some("retry") => text.clear(),
            Some("text.delta") => text.push_str(event["text"].as_str().unwrap_or_default()),
            _ => {}
        }
    }
    text
}

#[test]
fn a_200_that_is_no_event_stream_is_never_success() {
    for (name, reply, words) in [
        ("HTML", Reply::body(200, "text/html", "<html><h1>Sign in to the proxy</h1></html>"), "Sign in"),
        (
            "a JSON error",
            Reply::json(200, &json!({"error": {"message": "model is loading", "code": 17}})),
            "model is loading",
        ),
        ("an empty body", Reply::body(200, "application/json", ""), ""),
    ] {
        let server = Server::always(reply);
        let output = Run::task(&server, "task").quick_retries().run();
        assert!(output.code == 5 && output.stdout.is_empty(), "{name}\n{}", output.shown());
        assert!(output.stderr.contains(words), "{name}: the server's own words are missing\n{}", output.shown());
    }
}

#[test]
fn a_whole_reply_where_a_stream_was_asked_is_read() {
    let server = Server::start([Reply::whole(&json!({"role": "assistant", "content": "Hello, world."}), "stop")]);
    Run::task(&server, "task").run().success().stdout_is("Hello, world.\n");
}

#[test]
fn without_streaming_whole_replies_are_asked_for() {
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"a.txt\"}"}}]});
    let server = Server::start([
        Reply::whole(&call, "tool_calls"),
        Reply::whole(&json!({"role": "assistant", "content": "Hello, world."}), "stop"),
    ]);
    Run::task(&server, "task")
        .config("models/default.yaml", "capabilities: { streaming: false }\n")
        .file("a.txt", "content of a")
        .run()
        .success()
        .stdout_is("Hello, world.\n");
    let requests = server.requests();
    assert!(
        requests[0].body["stream"] != true && requests[0].body["stream_options"].is_null(),
        "{}",
        requests[0].raw
    );
    assert!(requests[1].last_result().contains("content of a"));
}

#[test]
fn a_server_that_falls_silent_is_given_up_and_asked_again() {
    let server = Server::start([Reply::text("Hello, world.").then(2, Act::Hang), Reply::text("Hello, world.")]);
    Run::task(&server, "task")
        .config(
            "models/default.yaml",
            "timeouts: { idle: 100ms }\nretry: { attempts: 2, base_delay: 1ms, max_delay: 1ms }\n",
        )
        .run()
        .success()
        .stdout_is("Hello, world.\n");
}
