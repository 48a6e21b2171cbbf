//! Oversized input: no message, answer or error ends a session. Whatever happened, a short message afterwards is
//! answered.

use std::sync::Arc;

use serde_json::json;

use crate::context::{tokens, with_files};
use crate::output::Output;
use crate::reply::{Act, Reply, chunk, data, finish, usage_last};
use crate::run::{Place, Run};
use crate::server::{Request, Server};

const WINDOW: u64 = 16_000;

/// A run in a window of 16,000 tokens.
fn small(run: Run) -> Run {
    let model = "context_window: 16000\nretry: { attempts: 2, base_delay: 1ms, max_delay: 5ms }\n";
    run.config("models/default.yaml", model)
}

/// The session goes on: `hello` is answered. Gives its request.
#[track_caller]
fn hello(place: &Arc<Place>) -> Request {
    let server = Server::always(Reply::text("Hello."));
    Run::at(place).args(["run", "--continue", "hello"]).server(&server).run().success().stdout_is("Hello.\n");
    let request = server.only_request();
    assert!(tokens(&request) < WINDOW * 3 / 4 && request.user().ends_with("hello"), "{}", request.raw);
    request
}

#[test]
fn a_message_that_is_too_large_leaves_no_trace() {
    let server = Server::always(Reply::text("First."));
    let first = small(Run::task(&server, "first")).run().success();
    let file = "A line that is read and refused.\n".repeat(3200);
    for (ending, task) in [("attached", vec!["-f", "big.txt", "Read this."]), ("said", vec!["said"])] {
        let run = Run::at(&first.place).args(["run", "--continue"]).server(&server).file("big.txt", &file);
        let run = if ending == "said" { run.arg(file.clone()).arg("--quiet") } else { run.args(task) };
        run.run().exits(9).stdout_is("").reason_has("the layer `input` has").reason_has("context.layers.input");
    }
    assert_eq!(server.requests().len(), 1, "nothing is sent that cannot be taken");
    let request = hello(&first.place);
    assert!(!request.raw.contains("read and refused") && !request.raw.contains("Read this."), "{}", request.raw);
    assert_eq!(request.messages().len(), 4, "the system prompt, first, its answer, hello");
}

#[test]
fn a_message_that_fills_what_is_left_is_shortened_last_of_all_with_a_handle() {
    let server = Server::always(Reply::text("Read."));
    let line = "    let line = reader.read_line(&mut buffer)?;\n";
    let task = format!("Begin here.\n{}End here.", line.repeat(900));
    small(Run::task(&server, &task)).args(["--set", "context.layers.input=1"]).run().success();
    let request = server.only_request();
    assert!(tokens(&request) < WINDOW * 3 / 4, "{}", tokens(&request));
    let said = request.user();
    assert!(said.starts_with("Begin here.") && said.ends_with("End here."), "{said}");
    assert!(said.contains("recall id=m1 "), "{said}");
}

/// An answer of so many tokens that a limit cut.
fn runs_on(tokens: usize, input: u64) -> Reply {
    let text = "and so on it goes ".repeat(tokens * 4 / 18);
    let delta = chunk(&json!({"content": text}));
    Reply::events(&[delta, finish("length"), usage_last((input, tokens as u64))])
}

#[test]
fn an_answer_that_fills_the_window_is_told_and_gives_way() {
    for (reply, why) in [
        (runs_on(11_000, 5000), "the answer ran on until the model's context window of 16000 tokens was full"),
        (runs_on(6000, 5000), "the model's output limit cut the answer (max_output_tokens)"),
    ] {
        let server = Server::always(reply);
        let first = small(Run::task(&server, "Go on.")).run().exits(8).stdout_has("and so on").reason_has(why);
        assert_eq!(server.requests().len(), 1, "{why}");
        hello(&first.place);
        hello(&first.place);
    }
}

#[test]
fn a_server_that_refuses_everything_ends_one_run_and_not_the_session() {
    let refuses =
        "This model's maximum context length is 100 tokens. However, your messages resulted in 5000 tokens.";
    let server = Server::always(Reply::error(400, refuses));
    let first = small(Run::task(&server, "Go on.")).run().exits(9).stderr_has("maximum context length");
    let again = Run::at(&first.place).args(["run", "--continue", "Again."]).server(&server).run().exits(9);
    again.stderr_has("maximum context length");
    let requests = server.requests();
    assert!(requests.len() >= 2, "the next run tries the declared budget again");
    let request = hello(&first.place);
    assert_eq!(request.messages().len(), 2, "what nobody answered is one message: {}", request.raw);
}

#[test]
fn what_cannot_be_made_smaller_is_sent_once_more_before_a_refusal_ends_the_run() {
    let refusal = || Reply::error(400, "This model's maximum context length is 8192 tokens.");
    let server = Server::start([refusal(), Reply::text("Hello.")]);
    Run::task(&server, "task").run().success().stdout_is("Hello.\n");
    let server = Server::always(refusal());
    Run::task(&server, "task").run().exits(9).stderr_has("maximum context length");
    assert_eq!(server.requests().len(), 2);
    let server = Server::start([refusal(), Reply::error(410, "gone")]);
    Run::task(&server, "task").run().exits(9).stderr_has("maximum context length");
}

#[test]
fn messages_that_nobody_answered_are_joined() {
    let server = Server::always(Reply::error(500, "out of order"));
    let first = small(Run::task(&server, "one")).run().exits(5);
    for text in ["two", "three"] {
        Run::at(&first.place).args(["run", "--continue", text]).server(&server).run().exits(5);
    }
    let request = hello(&first.place);
    assert_eq!(request.messages().len(), 2, "{}", request.raw);
    assert_eq!(request.user(), "one\n\ntwo\n\nthree\n\nhello");
}

#[test]
fn a_window_below_what_prompt_and_tools_need_is_told_with_the_smallest_that_works() {
    let server = Server::always(Reply::text("Hello."));
    let run = |window: &str| {
        let model = format!("context_window: {window}\n");
        Run::task(&server, "hello").config("models/default.yaml", &model).run()
    };
    let output = run("3000").exits(9);
    let (_, rest) = output.reason().split_once("the smallest context window that works is ").expect("a window");
    let (smallest, _) = rest.split_once(" tokens").expect("its tokens");
    assert!(server.requests().is_empty(), "nothing is sent");
    run(smallest).success();
}

#[test]
fn in_the_smallest_window_work_goes_on() {
    let server = Server::answering(|_, index| match index {
        0..12 => Reply::call("read_file", &json!({"path": format!("f{index}.txt")})),
        _ => Reply::text("Fini."),
    });
    let run = with_files(Run::task(&server, "Read them all.")).config("agent.yaml", "");
    run.config("models/default.yaml", "context_window: 4096\n").run().success().stdout_is("Fini.\n");
    for request in server.requests() {
        assert!(tokens(&request) <= 4096 * 3 / 4, "{}", tokens(&request));
    }
}

#[test]
fn text_that_an_overflow_in_mid_stream_voids_is_told_by_an_event() {
    let overflow = json!({"error": {
        "message": "This model's maximum context length is 9000 tokens. However, your messages resulted in 9500 tokens.",
        "type": "invalid_request_error", "code": "context_length_exceeded",
    }});
    let mut cut = Reply::events(&[chunk(&json!({"content": "The first half"}))]);
    cut.acts.pop();
    cut.acts.push(Act::Send(data(&overflow)));
    let calls = (0..7).map(|index| Reply::call("read_file", &json!({"path": format!("f{index}.txt")})));
    let server = Server::start(calls.chain([cut]).chain(vec![Reply::text("The whole answer."); 3]));
    let output = with_files(Run::task(&server, "Read.")).args(["-o", "jsonl"]).run().success();
    let told = shown(&output);
    assert!(told.starts_with("The first half<retry>"), "{told}");
    assert!(told.ends_with("The whole answer."), "{told}");
    assert_eq!(output.events().one("run.completed")["result"], "The whole answer.");
}

#[test]
fn a_reply_limit_that_the_window_leaves_too_little_for_is_lowered_to_what_is_left() {
    const LIMIT: u64 = 12_000;
    let server = Server::answering(|request, _| {
        let (input, output) = (tokens(request), request.body["max_tokens"].as_u64().unwrap_or(0));
        if input + output > LIMIT {
            let words = format!(
                "'max_tokens' or 'max_completion_tokens' is too large: {output}. This model's maximum context length is \
                 {LIMIT} tokens and your request has {input} input tokens ({output} > {LIMIT} - {input})."
            );
            return Reply::error(400, &words);
        }
        match request.raw.matches("marker-").count() {
            _ if request.raw.contains("marker-19") => Reply::text("Fini."),
            _ => {
                let read = (0..20).rev().find(|index| request.raw.contains(&format!("f{index}.txt")));
                Reply::call("read_file", &json!({"path": format!("f{}.txt", read.map_or(0, |index| index + 1))}))
            }
        }
    });
    let run = with_files(Run::task(&server, "Read them all.")).config("agent.yaml", "");
    let model = "context_window: 32000\nmax_output_tokens: 4096\n";
    let output = run.config("models/default.yaml", model).args(["-o", "jsonl"]).run().success();
    assert_eq!(output.events().one("run.completed")["result"], "Fini.");
    let requests = server.requests();
    let refused =
        output.events().of("request.finished").iter().filter(|event| event["status"] == "refused").count();
    assert!((1..=6).contains(&refused), "{refused} of {} were refused", requests.len());
    let limits: Vec<u64> = requests.iter().filter_map(|request| request.body["max_tokens"].as_u64()).collect();
    assert!(limits.iter().any(|limit| *limit < 4096) && limits.iter().all(|limit| *limit >= 1024), "{limits:?}");
}

#[test]
fn one_report_that_is_too_high_does_not_end_a_small_session() {
    for window in [8192, 4096] {
        let server = Server::answering(move |request, index| {
            Reply::text("Well.").counted(if index == 0 { window * 9 / 10 } else { tokens(request) })
        });
        let model = format!("context_window: {window}\n");
        let first = Run::task(&server, "hello").config("models/default.yaml", &model).run().success();
        for _ in 0..3 {
            Run::at(&first.place).args(["run", "--continue", "more"]).server(&server).run().success();
        }
        assert_eq!(server.requests().len(), 4, "asked again by our own count");
    }
}

/// The text that was shown, with a mark where it was voided.
fn shown(output: &Output) -> String {
    let events = output.events();
    let told = events.0.iter().filter_map(|event| match event["type"].as_str() {
        Some("text.delta") => event["text"].as_str(),
        Some("retry") => Some("<retry>"),
        _ => None,
    });
    told.collect()
}
