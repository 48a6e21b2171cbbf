//! `agent model check`: a server is asked for each feature, and the answer is a table and a model file.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::{Act, Reply, UsageAt, chunk, finish};
use crate::run::{KEY, Place, Run};
use crate::server::{Request, Server};

/// A server that can all. The requests of a check are told apart by their words.
fn able(request: &Request) -> Reply {
    let weather = |city: &str| ("weather", json!({ "city": city }).to_string());
    match request.user() {
        words if words.starts_with("Count") => Reply::text("One, two, three, four, five."),
        words if words.starts_with("How is") => Reply::calls(&[weather("Paris"), weather("Oslo")]),
        words if words.starts_with("Which colour") => Reply::text(r#"{"colour_in_one_word":"blue"}"#),
        words if words.starts_with("Look") => Reply::call("view_picture", &json!({ "path": "picture.png" })),
        words if words.starts_with("Go on") => {
            let usage = json!({ "choices": [], "usage": { "prompt_tokens": 4400, "completion_tokens": 1,
                "total_tokens": 4401, "prompt_tokens_details": { "cached_tokens": 4096 } } });
            Reply::events([&chunk(&json!({ "content": "OK." })), &finish("stop"), &usage])
        }
        // The picture follows its result, in a message of parts.
        _ if request.raw.contains("data:image/png;base64,") => Reply::text("Red."),
        words => Reply::error(400, &format!("an unexpected question: {words}")),
    }
}

/// `agent model check` of the default model.
fn check(server: &Server, args: &[&str]) -> Run {
    Run::new().args(["model", "check"]).args(args.iter().copied()).server(server)
}

/// The outcome and the note of each feature of `agent model check -o json`.
fn findings(output: &Output) -> BTreeMap<String, (String, String)> {
    let json = output.json();
    let features = json["features"].as_array().expect("a list");
    let word = |finding: &Value, key: &str| finding[key].as_str().expect("a word").to_owned();
    features.iter().map(|it| (word(it, "feature"), (word(it, "outcome"), word(it, "note")))).collect()
}

#[test]
fn a_check_asks_for_every_feature_once_and_prints_the_file_that_fits() {
    let server = Server::answering(|request, _| able(request)).about(
        "/props",
        &json!({ "default_generation_settings": { "n_ctx": 16384 }, "modalities": { "vision": true } }),
    );
    let output = check(&server, &[]).run().success();
    let url = server.url();
    let output = output.stdout_is(&format!(
        "model           scripted-model\n\
         server          llama.cpp\n\
         window          16384     tokens, as llama.cpp runs it\n\
         answers         works\n\
         streaming       works\n\
         usage           works\n\
         tool calls      works\n\
         parallel calls  works\n\
         vision          works\n\
         schema          works\n\
         caching         works     4096 of 4400 tokens\n\
         \n\
         # the file that fits is models/default.yaml:\n\
         provider: openai\n\
         base_url: {url}\n\
         api_key: \"{{{{ env.OPENAI_API_KEY }}}}\"\n\
         model: scripted-model\n\
         context_window: 16384\n\
         capabilities: {{ vision: true }}\n"
    ));
    let requests = server.requests();
    let asked = requests.iter().filter(|request| request.path == "/v1/chat/completions").count();
    assert_eq!(asked, 7, "{}", output.shown());
    assert!(output.stderr.starts_with("7 requests to default"), "said beforehand: {}", output.shown());
    assert!(output.stderr.ends_with("cost unknown\n"), "{}", output.shown());
}

#[test]
fn the_file_of_a_check_is_the_model_that_was_checked() {
    let server = Server::answering(|request, _| able(request));
    let output = check(&server, &["-o", "json"]).run().success();
    let place = Place::new();
    let file = output.json()["file"].to_string();
    let again = Run::at(&place).config("models/mine.yaml", &file).env("OPENAI_API_KEY", KEY);
    let again = again.args(["model", "check", "mine", "-o", "json"]).run().success();
    assert_eq!(again.json()["file"]["capabilities"], json!({ "vision": true }), "{}", again.shown());
    Run::at(&place).args(["config", "check"]).run().success();
}

#[test]
fn what_a_server_refuses_stands_in_the_table_in_its_own_words() {
    let server = Server::answering(|request, _| match &request.body {
        body if body.get("tools").is_some() => Reply::error(400, "scripted-model does not support tools"),
        body if body.get("response_format").is_some() => Reply::error(400, "Unknown parameter: response_format"),
        body if body.get("stream_options").is_some() => Reply::error(400, "Unknown parameter: stream_options"),
        _ => able(request),
    });
    let output = check(&server, &["-o", "json"]).run().success();
    let findings = findings(&output);
    let of = |feature: &str| &findings[feature];
    assert_eq!(of("tool_calls").0, "does_not");
    assert!(of("tool_calls").1.contains("does not support tools"), "{findings:?}");
    assert_eq!((of("parallel_calls").0.as_str(), of("vision").0.as_str()), ("unknown", "unknown"));
    assert_eq!((of("schema").0.as_str(), of("caching").0.as_str()), ("does_not", "works"));
    assert!(of("schema").1.contains("response_format"), "{findings:?}");
    let capabilities = &output.json()["file"]["capabilities"];
    assert_eq!(capabilities, &json!({ "stream_usage": false, "tools": false, "structured_output": false }));
}

#[test]
fn a_failure_of_the_server_says_nothing_of_a_feature_and_ends_nothing() {
    let server = Server::answering(|request, _| match request.user() {
        words if words.starts_with("How is") => Reply::error(500, "out of order"),
        _ if request.raw.contains("data:image/png;base64,") => {
            Reply::error(500, "image input is not supported - hint: you may need to provide the mmproj")
        }
        "" => Reply::text("There is none."),
        _ => able(request),
    });
    let output = check(&server, &["-o", "json"]).run().success();
    let findings = findings(&output);
    assert_eq!(findings["parallel_calls"].0, "unknown", "{findings:?}");
    assert!(findings["parallel_calls"].1.contains("out of order"), "{findings:?}");
    assert_eq!(findings["vision"].0, "does_not", "{findings:?}");
    assert!(findings["vision"].1.contains("image input is not supported"), "{findings:?}");
    assert_eq!((findings["schema"].0.as_str(), findings["caching"].0.as_str()), ("works", "works"));
    assert_eq!(output.json()["file_is_needed"], false, "it would not be taken to see: {}", output.shown());
}

#[test]
fn what_is_not_seen_is_not_claimed() {
    let server = Server::answering(|request, _| match request.user() {
        words if words.starts_with("Look") => Reply::text("I see a picture."),
        _ => Reply::text_with_usage("Well.", UsageAt::Never),
    });
    let output = check(&server, &["-o", "json"]).run().success();
    let findings = findings(&output);
    for (feature, outcome, note) in [
        ("answers", "works", ""),
        ("usage", "does_not", "estimated"),
        ("tool_calls", "unknown", "I see a picture."),
        ("parallel_calls", "unknown", "Well."),
        ("vision", "unknown", "it answered: Well."),
        ("schema", "does_not", "Well."),
        ("caching", "unknown", "no tokens are reported"),
    ] {
        let (got, said) = &findings[feature];
        assert!(got == outcome && said.contains(note), "{feature}: {got}, {said}");
    }
    assert_eq!(output.json()["window"]["source"], "assumed");
}

#[test]
fn a_whole_answer_is_no_stream() {
    let server = Server::answering(|request, _| match &request.body["stream"] {
        Value::Bool(true) => Reply::error(400, "stream is not supported"),
        _ => Reply::whole(&json!({ "role": "assistant", "content": "Well." }), "stop"),
    });
    let output = check(&server, &["-o", "json"]).run().success();
    let findings = findings(&output);
    assert_eq!(findings["streaming"], ("does_not".to_owned(), "stream is not supported".to_owned()));
    assert_eq!(output.json()["file"]["capabilities"]["streaming"], false);
    let server = Server::always(Reply::whole(&json!({ "role": "assistant", "content": "Well." }), "stop"));
    let output = check(&server, &["-o", "json"]).run().success();
    assert_eq!(self::findings(&output)["streaming"].0, "does_not", "{}", output.shown());
}

#[test]
fn a_check_without_an_answer_ends_as_a_run_would() {
    for (reply, code, why) in [
        (Reply::error(401, "wrong key"), 4, "wrong key"),
        (Reply::error(404, "no such model"), 5, "no such model"),
        (Reply::error(429, "slow down"), 6, "slow down"),
        (Reply::nothing(Act::Reset), 5, "the connection to"),
    ] {
        let server = Server::always(reply);
        let output = check(&server, &[]).run().exits(code).reason_has(why);
        assert_eq!(output.stdout, "", "{}", output.shown());
        assert_eq!(server.requests().len(), 1, "one attempt: {}", output.shown());
    }
    let output = Run::new().args(["model", "check", "anthropic/claude-sonnet-5-5"]).run();
    output.exits(4).reason_has("ANTHROPIC_API_KEY");
    Run::new().args(["model", "check", "demo"]).run().exits(2).reason_has("is a script");
}

#[test]
fn a_check_stops_where_the_next_question_would_fail_too() {
    let server = Server::answering(|request, number| match number {
        0..=1 => able(request),
        _ => Reply::error(429, "that was all for today"),
    });
    let output = check(&server, &["-o", "json"]).run().success();
    assert_eq!(server.requests().len(), 3, "{}", output.shown());
    let findings = findings(&output);
    assert!(findings["parallel_calls"].1.contains("all for today"), "{findings:?}");
    assert!(findings["caching"].1.contains("not asked"), "{findings:?}");
    assert_eq!(output.json()["file_is_needed"], false);
}
