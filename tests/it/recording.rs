//! `--record` keeps what a model answered, and `--replay` gives it back without a model.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::{Reply, chunk, data, usage};
use crate::run::{Place, Run};
use crate::server::Server;

/// A model that has a command counted, and answers with its words.
fn counts() -> Server {
    Server::answering(|request, _| match request.messages().last() {
        Some(last) if last["role"] == "user" => {
            Reply::call("run_command", &json!({ "command": "date +%N; wc -l a.txt" }))
        }
        _ => Reply::text("It has two lines."),
    })
}

fn begin() -> Arc<Place> {
    let place = Place::new();
    fs::write(place.workspace().join("a.txt"), "one\ntwo\n").expect("written");
    place
}

fn record(place: &Arc<Place>, words: &[&str]) -> Output {
    let run = Run::at(place).args(["run", "--approve", "all", "--record", "../run.jsonl"]);
    run.args(words.to_vec()).server(&counts()).run().success()
}

/// The same run again. The server is asked nothing.
fn replay(place: &Arc<Place>, words: &[&str]) -> Output {
    let unasked = counts();
    let run = Run::at(place).args(["run", "--approve", "all", "--replay", "../run.jsonl"]);
    let done = run.args(words.to_vec()).server(&unasked).run();
    assert_eq!(unasked.requests().len(), 0);
    done
}

fn lines(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(place.workspace().join("../run.jsonl")).expect("a recording");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_recorded_run_is_given_back_without_a_model_and_its_calls_run_again() {
    let place = begin();
    let recorded = record(&place, &["How long is a.txt?"]);
    let kinds: Vec<Value> = lines(&place).iter().map(|line| line["type"].clone()).collect();
    assert_eq!(kinds, ["recording", "request", "request"]);
    let replayed = replay(&place, &["How long is a.txt?"]).success();
    assert_eq!(replayed.stdout, recorded.stdout);
    // The command ran again, at another time, so its result differs.
    replayed.stderr_has("this request differs from the recorded one: it has +1 −1 lines");
    replay(&place, &["--replay-strict", "How long is a.txt?"])
        .exits(1)
        .stderr_has("this request differs")
        .stderr_has("@@");
}

#[test]
fn what_a_failed_reply_took_is_given_back_too() {
    let place = begin();
    let mut begun = chunk(&json!({"content": "Hm."}));
    begun["usage"] = usage((20_000, 3000));
    let refusal = json!({"error": {"message": "no such thing", "type": "invalid_request_error", "code": 400}});
    let server = Server::always(Reply::sse([data(&begun), data(&refusal)].concat()));
    let run = Run::at(&place).args(["run", "--record", "../run.jsonl", "-o", "json", "hello"]);
    let recorded = run.server(&server).run().fails().json()["usage"].clone();
    assert_eq!(recorded["input_tokens"], 20_000);
    let replayed = replay(&place, &["-o", "json", "hello"]).fails().json()["usage"].clone();
    assert_eq!(replayed, recorded);
}

#[test]
fn results_of_calls_are_given_back_too_if_they_were_recorded() {
    let place = begin();
    record(&place, &["--record-tools", "How long is a.txt?"]);
    assert_eq!(lines(&place).iter().filter(|line| line["type"] == "call").count(), 1);
    fs::remove_file(place.workspace().join("a.txt")).expect("removed");
    let strict = replay(&place, &["--replay-strict", "How long is a.txt?"]).success();
    strict.stdout_is("It has two lines.\n").stderr_lacks("differs");
    replay(&place, &["--replay-strict", "How long is b.txt?"]).exits(1).stderr_has("+How long is b.txt?");
}

#[test]
fn a_recording_is_a_model_too() {
    let place = begin();
    record(&place, &["--record-tools", "How long is a.txt?"]);
    let recording = place.workspace().join("../run.jsonl").canonicalize().expect("there");
    let run = |model: &str| {
        let words = ["run", "--approve", "all", "-m", "again", "How long is a.txt?"];
        Run::at(&place).config("models/again.yaml", model).args(words).run()
    };
    run(&format!("provider: replay\nrecording: {}\n", recording.display()))
        .success()
        .stdout_is("It has two lines.\n");
    run("provider: replay\n").exits(3).stderr_has("the key `recording` is missing");
}

#[test]
fn a_session_is_a_recording_too() {
    let place = begin();
    Run::at(&place).args(["run", "--approve", "all", "How long is a.txt?"]).server(&counts()).run().success();
    let exported = Run::at(&place).args(["session", "export", "--as-recording"]).run().success();
    fs::write(place.workspace().join("../run.jsonl"), exported.stdout).expect("written");
    replay(&place, &["How long is a.txt?"]).success().stdout_is("It has two lines.\n");
}

#[test]
fn what_is_no_recording_is_refused_in_one_sentence() {
    let place = begin();
    let write = |text: &str| fs::write(place.workspace().join("../run.jsonl"), text).expect("written");
    for (text, why) in [
        ("", "is no recording: it is no conversation of a known form"),
        ("{\"type\":\"recording\",\"v\":9}\n", "version 9 of recordings is not known here, only 1"),
        ("{\"type\":\"recording\",\"v\":1}\n{\"type\":\"reque\n", "run.jsonl:2: this is no line of a recording"),
    ] {
        write(text);
        replay(&place, &["hello"]).exits(2).reason_has(why);
    }
    write("{\"type\":\"recording\",\"v\":1}\n");
    replay(&place, &["hello"]).exits(1).reason_has("has no further reply");
    // An earlier recording is not overwritten.
    let again = Run::at(&place).args(["run", "--record", "../run.jsonl", "hello"]).server(&counts()).run();
    again.exits(2).reason_has("--record ../run.jsonl");
}

#[test]
fn secrets_are_in_no_recording() {
    let place = begin();
    fs::write(place.workspace().join("a.txt"), "the key is sk-recorded-0123456789abcdef0123456789\n")
        .expect("written");
    let shows = Server::answering(|request, _| match request.messages().last() {
        Some(last) if last["role"] == "user" => Reply::call("run_command", &json!({ "command": "cat a.txt" })),
        _ => Reply::text("Done."),
    });
    let words = ["run", "--approve", "all", "--record", "../run.jsonl", "--record-tools", "show it"];
    Run::at(&place)
        .args(words)
        .env("SOME_API_KEY", "sk-recorded-0123456789abcdef0123456789")
        .server(&shows)
        .run()
        .success();
    let text = fs::read_to_string(place.workspace().join("../run.jsonl")).expect("a recording");
    assert!(text.contains("the key is") && !text.contains("sk-recorded-0123456789abcdef"), "{text}");
}

/// What another program recorded of a task.
const FOREIGN: &str = r#"{"trajectory_format": "mini-swe-agent-1.1", "messages": [
    {"role": "system", "content": "You are helpful."},
    {"role": "user", "content": "How long is a.txt? The key is sk-foreign-0123456789abcdef0123456789."},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function",
        "function": {"name": "bash", "arguments": "{\"cmd\": \"wc -l a.txt\"}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "2 a.txt"},
    {"role": "assistant", "content": "It has two lines."}]}"#;

#[test]
fn a_conversation_of_another_program_goes_on_here() {
    let place = begin();
    fs::write(place.workspace().join("theirs.json"), FOREIGN).expect("written");
    let import = Run::at(&place)
        .args(["session", "import", "theirs.json"])
        .env("A_KEY", "sk-foreign-0123456789abcdef0123456789");
    let id =
        import.run().success().stderr_has("theirs.json: 3 messages of mini-swe-agent").stdout.trim().to_owned();
    let listed = Run::at(&place).args(["session", "list"]).run().success().stdout_has("How long is a.txt?");
    assert!(!listed.stdout.contains("sk-foreign"));
    let server = Server::answering(|_, _| Reply::text("As I said."));
    Run::at(&place).args(["run", "--session", &id, "Are you sure?"]).server(&server).run().success();
    let sent = server.requests().pop().expect("a request").raw;
    assert!(sent.contains("wc -l a.txt") && sent.contains("2 a.txt") && !sent.contains("sk-foreign"), "{sent}");
    Run::at(&place)
        .args(["session", "import", "a.txt"])
        .run()
        .exits(2)
        .reason_has("it is no conversation of a known form");
    let both = Run::at(&place).args(["session", "import", "theirs.json", "none.json"]).run();
    both.exits(2).reason_has("none.json: there is no such file").stdout_is("");
}

#[test]
fn a_conversation_of_another_program_is_a_recording_if_its_tools_are_named() {
    let place = begin();
    fs::write(place.workspace().join("../run.jsonl"), FOREIGN).expect("written");
    let done = replay(&place, &["--map", "bash=run_command:command", "How long?"]).success();
    done.stdout_is("It has two lines.\n").stderr_has("run_command wc -l a.txt").stderr_lacks("differs");
    replay(&place, &["--map", "bash", "How long?"]).exits(2).stderr_has("THEIRS=OURS");
}

#[test]
fn the_session_of_a_helper_is_no_difference() {
    let place = Place::new();
    let helper = json!({ "agent": "explore", "prompt": "look" }).to_string();
    let server = Server::answering(move |request, _| match request.user() {
        "look" => Reply::text("seen"),
        _ if request.tool_results().is_empty() => Reply::calls(&[("task", helper.clone())]),
        _ => Reply::text("done"),
    });
    let run = |words: &[&str]| Run::at(&place).server(&server).arg("run").args(words.to_vec()).run();
    run(&["--record", "../rec.jsonl", "begin"]).success();
    run(&["--replay", "../rec.jsonl", "--replay-strict", "begin"]).success().stdout_is("done\n");
}
