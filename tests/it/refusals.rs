//! A part of the conversation that a provider refuses: it is left out, and the session goes on.

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::{Request, Server, assert_answered_once};

/// The text that the provider refuses, wherever it stands.
const BAD: &str = "FORBIDDEN-WORDS";

/// The number of the first message with the refused text.
fn find_bad(request: &Request) -> Option<usize> {
    request.messages().iter().position(|message| message.to_string().contains(BAD))
}

/// A server that reads `files` one after another, refuses the text with `refuse`, and then answers.
fn refuses(files: &'static [&'static str], refuse: fn(usize) -> String) -> Server {
    Server::answering(move |request, _| {
        let read = request.tool_results().len();
        match find_bad(request) {
            Some(at) => Reply::error(400, &refuse(at)),
            None if read < files.len() && request.body["tool_choice"] != "none" => {
                Reply::call("read_file", &json!({"path": files[read]}))
            }
            None => Reply::text(&format!("Answer to {}.", request.user().lines().last().unwrap_or_default())),
        }
    })
}

fn with_files(run: Run) -> Run {
    (run.file("good.txt", "all is well\n").file("bad.txt", format!("{BAD}\n")).file("other.txt", "other\n"))
        .args(["-o", "jsonl"])
}

/// The requests of a run, by status.
fn statuses(output: &Output) -> Vec<String> {
    let events = output.events();
    let of = |event: &&Value| event["status"].as_str().unwrap_or_default().to_owned();
    events.of("request.finished").iter().map(of).collect()
}

fn go_on(output: &Output, server: &Server, task: &str) -> Output {
    Run::at(&output.place).args(["run", "--continue", task, "-o", "jsonl"]).server(server).run()
}

#[test]
fn a_result_at_which_the_provider_points_is_left_out_and_the_session_goes_on() {
    let server =
        refuses(&["good.txt", "bad.txt", "other.txt"], |at| format!("Invalid 'messages[{at}].content': refused"));
    let output = with_files(Run::task(&server, "read")).run().success();
    assert_eq!(statuses(&output), ["ok", "ok", "refused", "ok", "ok"], "{}", output.shown());
    let told = output.events();
    let warning = told.one("warning")["message"].as_str().expect("words").to_owned();
    assert!(
        warning.contains("c3.1") && warning.contains("read_file") && warning.contains("HTTP 400"),
        "{warning}"
    );
    assert_eq!(told.one("context.compressed")["reason"], "refused");
    let requests = server.requests();
    let last = requests.last().expect("requests");
    assert_answered_once(last);
    let results = last.tool_results();
    assert!(results[0].1.contains("all is well"), "only what was refused is left out: {results:?}");
    assert!(results[1].1.contains("recall id=c3.1") && results[1].1.contains("HTTP 400"), "{results:?}");
    // The next run sends nothing that was refused, and the text is still there.
    let again = go_on(&output, &server, "more").success();
    assert_eq!(statuses(&again), ["ok"], "{}", again.shown());
    Run::at(&output.place).args(["session", "show", &id_of(&output)]).run().success().stdout_has(BAD);
}

#[test]
fn a_refused_field_is_remembered_until_the_model_is_checked() {
    let server = Server::answering(|request, _| match request.body.get("temperature") {
        Some(_) => Reply::error(400, "Unsupported parameter: 'temperature' is not supported with this model."),
        None => Reply::text("ok"),
    });
    let place = Place::new();
    let run = |words: &[&str]| Run::at(&place).args(words.to_vec()).server(&server).run();
    let set = "models.default.temperature=0.2";
    let first = run(&["run", "task", "--set", set]).success().stderr_has("takes no temperature");
    assert!(!first.stderr.contains("as learnt"), "{}", first.shown());
    assert_eq!(server.requests().len(), 2, "it was sent again without it");
    run(&["run", "task", "--set", set]).success().stderr_has("as learnt on 20");
    assert_eq!(server.requests().len(), 3, "the next run knows");
    run(&["run", "task", "--set", set, "-m", "another"]).success();
    assert_eq!(server.requests().len(), 5, "of another model nothing is known");
    run(&["model", "check"]).success().stdout_has("refused before").stdout_has("'temperature' is not supported");
    let before = server.requests().len();
    run(&["run", "task", "--set", set]).success();
    assert_eq!(server.requests().len(), before + 2, "the check forgot it");
}

fn id_of(output: &Output) -> String {
    output.events().0[0]["session_id"].as_str().expect("an id").to_owned()
}

#[test]
fn without_a_pointer_the_newest_results_are_left_out_one_by_one() {
    let files = &["bad.txt"];
    let server = refuses(files, |_| "The content was refused.".to_owned());
    let output = with_files(Run::task(&server, "read")).run().success();
    assert_eq!(statuses(&output), ["ok", "refused", "ok"], "{}", output.shown());
    assert_eq!(statuses(&go_on(&output, &server, "more").success()), ["ok"]);
    // Three at once, the oldest of which is refused.
    let server = Server::answering(|request, _| match (find_bad(request), request.tool_results().len()) {
        (Some(_), _) => Reply::error(422, "inappropriate content"),
        (None, 0) => {
            let call = |path: &str| ("read_file", json!({ "path": path }).to_string());
            Reply::calls(&["bad.txt", "good.txt", "other.txt"].map(call))
        }
        _ => Reply::text("done"),
    });
    let output = with_files(Run::task(&server, "read")).run().success();
    assert_eq!(statuses(&output), ["ok", "refused", "refused", "refused", "ok"], "{}", output.shown());
    assert_eq!(output.events().of("warning").len(), 1, "told in one line: {}", output.shown());
}

#[test]
fn what_was_not_at_fault_stays_in_the_conversation() {
    let server = Server::answering(|request, _| match request.tool_results().len() {
        0 => Reply::call("read_file", &json!({"path": "good.txt"})),
        _ => Reply::error(400, "this content type is not supported"),
    });
    let output = with_files(Run::task(&server, "read")).run().exits(5);
    assert_eq!(statuses(&output), ["ok", "refused", "refused"], "{}", output.shown());
    let well = Server::always(Reply::text("fine"));
    go_on(&output, &well, "more").success();
    assert!(well.only_request().last_result().contains("all is well"), "{}", well.only_request().raw);
}

#[test]
fn the_person_s_newest_message_stays_and_they_are_told() {
    for words in [|at: usize| format!("messages.{at}.content: refused"), |_: usize| "content refused".to_owned()] {
        let server = refuses(&[], words);
        let first = Run::task(&server, "hello").args(["-o", "jsonl"]).run().success();
        let refused = go_on(&first, &server, BAD).exits(5);
        assert_eq!(statuses(&refused), ["refused"], "{}", refused.shown());
        let points = words(1).contains("messages.");
        assert_eq!(refused.reason().contains("your message m3 was refused"), points, "{}", refused.reason());
        let again = go_on(&first, &server, "in other words").success();
        assert_eq!(statuses(&again), ["refused", "ok"], "{}", again.shown());
        assert!(again.stdout.contains("your message m3"), "{}", again.shown());
        assert_eq!(statuses(&go_on(&first, &server, "and more").success()), ["ok"]);
    }
}

#[test]
fn a_refusal_that_repeats_the_text_does_not_come_back_through_the_note() {
    let server = refuses(&["bad.txt"], |at| format!("messages[{at}].content says {BAD}, which is refused"));
    let output = with_files(Run::task(&server, "read")).run().success();
    assert_eq!(statuses(&output), ["ok", "refused", "refused", "ok"], "{}", output.shown());
    assert_eq!(statuses(&go_on(&output, &server, "more").success()), ["ok"]);
}

#[test]
fn every_result_at_which_the_provider_points_is_left_out() {
    let server = Server::answering(|request, _| match (find_bad(request), request.tool_results().len()) {
        (Some(at), _) => Reply::error(400, &format!("messages.{at}.content: no")),
        (None, 0) => Reply::calls(&[0; 5].map(|_| ("read_file", json!({"path": "bad.txt"}).to_string()))),
        _ => Reply::text("done"),
    });
    let output = with_files(Run::task(&server, "read")).run().success();
    assert_eq!(server.requests().len(), 7, "{}", output.shown());
    assert_eq!(statuses(&go_on(&output, &server, "more").success()), ["ok"]);
}

#[test]
fn a_refused_message_does_not_end_a_session_that_is_compressed_after_it() {
    for refuse in [|at: usize| format!("messages[{at}].content: refused"), |_: usize| "refused content".to_owned()]
    {
        let server =
            Server::answering(move |request, _| match (find_bad(request), request.tool_results().len()) {
                (Some(at), _) => Reply::error(400, &refuse(at)),
                (None, read) if read < 5 && request.body["tool_choice"] != "none" => crate::context::read(read),
                _ => Reply::text("Well."),
            });
        let first = crate::context::run(&server, "read").args(["-o", "jsonl"]).run().success();
        go_on(&first, &server, BAD).exits(5);
        for task in ["more", "and more"] {
            Run::at(&first.place).args(["session", "compact", &id_of(&first)]).server(&server).run().success();
            go_on(&first, &server, task).success();
        }
        let requests = server.requests();
        assert!(find_bad(requests.last().expect("requests")).is_none());
    }
}

#[test]
fn a_field_that_the_model_file_or_a_dialect_added_is_left_out_once_it_is_refused() {
    let names = ["tool_stream", "reasoning_split", "top_k", "chat_template_kwargs"];
    let refuse = |name: &str| match name {
        "tool_stream" => {
            json!({"error": {"message": "Unknown parameter: 'tool_stream'.", "param": "tool_stream"}})
        }
        "top_k" => json!({"object": "error", "message": {"detail": [{"type": "extra_forbidden",
            "loc": ["body", "top_k"], "msg": "Extra inputs are not permitted"}]}}),
        name => json!({"error": {"message": format!("property '{name}' is unsupported")}}),
    };
    let server = Server::answering(move |request, _| {
        match names.into_iter().find(|name| request.body.get(*name).is_some()) {
            Some(name) => Reply::body(422, "application/json", refuse(name).to_string()),
            None => Reply::text("done"),
        }
    });
    let extra = "extra_body: { tool_stream: true, reasoning_split: true, top_k: 5, \
        chat_template_kwargs: { a: 1 }, seed: 7 }\n";
    let output = Run::task(&server, "hello").config("models/default.yaml", extra).run().success();
    output.stderr_has("does not take tool_stream: it is not sent");
    assert_eq!(server.requests().len(), names.len() + 1);
    assert_eq!(server.requests()[names.len()].body["seed"], 7, "what was not refused stays");
}

#[test]
fn a_server_that_names_the_responses_path_is_asked_there() {
    let server = Server::answering(|request, _| match request.path.as_str() {
        "/v1/responses" => Reply::error(400, "reached"),
        _ => Reply::error(400, "This model is only supported in v1/responses and not in v1/chat/completions."),
    });
    Run::task(&server, "hello").run().exits(5).reason_has("reached");
}

#[test]
fn a_tool_whose_schema_is_refused_is_left_out_alone() {
    let server =
        Server::answering(|request, _| match request.tool_names().iter().position(|name| *name == "odd") {
            Some(at) => Reply::error(400, &format!("tools.{at}.custom.input_schema: JSON schema is invalid")),
            None => Reply::text("ok"),
        });
    let tool = "description: Odd.\nparameters: { type: object }\ncommand: [\"true\"]\npermission: read\n";
    let output = Run::task(&server, "task").config("tools/odd.yaml", &format!("name: odd\n{tool}")).run();
    output.success().stderr_has("odd is not offered to it");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].tool_names().contains(&"read_file"));
}
