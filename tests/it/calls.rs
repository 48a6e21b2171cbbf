//! Calls on the wire: however a server spells them, each is run once, answered once, and never sent back malformed.

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::{Reply, USAGE, chunk, finish, usage_last};
use crate::run::Run;
use crate::server::{Request, Server, assert_answered_once, assert_append_only};

/// Plays `first`, then an answer; two small files lie in the workspace.
fn played(first: Reply, options: &[&str]) -> (Output, Vec<Request>) {
    let server = Server::start([first, Reply::text("done")]);
    let output = Run::task(&server, "task")
        .args(options.iter().copied())
        .file("a.txt", "content of a\n")
        .file("b.txt", "content of b\n")
        .run();
    (output, server.requests())
}

fn call(delta: &Value) -> Value {
    chunk(&json!({"tool_calls": [delta]}))
}

fn read(path: &str) -> String {
    json!({"path": path}).to_string()
}

#[test]
fn calls_are_understood_however_they_are_spelled() {
    let arguments = read("a.txt");
    let characters: Vec<Value> =
        arguments.chars().map(|c| call(&json!({"index": 0, "function": {"arguments": c.to_string()}}))).collect();
    let begun = call(
        &json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "read_file", "arguments": ""}}),
    );
    let end = [finish("tool_calls"), usage_last(USAGE)];
    let table: Vec<(&str, Vec<Value>)> = vec![
        (
            "in one piece",
            vec![call(
                &json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "read_file", "arguments": arguments}}),
            )],
        ),
        ("character by character", [vec![begun.clone()], characters].concat()),
        (
            "without index, role and type",
            vec![call(&json!({"id": "c1", "function": {"name": "read_file", "arguments": arguments}}))],
        ),
        (
            "without an id",
            vec![call(&json!({"index": 0, "function": {"name": "read_file", "arguments": arguments}}))],
        ),
        (
            "an id that is empty after the first piece",
            vec![begun.clone(), call(&json!({"index": 0, "id": "", "function": {"arguments": arguments}}))],
        ),
        (
            "an id that changes from piece to piece",
            vec![begun.clone(), call(&json!({"index": 0, "id": "c2", "function": {"arguments": arguments}}))],
        ),
        (
            "the name again in each piece",
            vec![
                begun.clone(),
                call(&json!({"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": arguments}})),
            ],
        ),
        (
            "the name null in later pieces",
            vec![
                begun.clone(),
                call(
                    &json!({"index": 0, "id": null, "type": null, "function": {"name": null, "arguments": arguments}}),
                ),
            ],
        ),
        (
            "the opening frame twice",
            vec![begun.clone(), begun.clone(), call(&json!({"index": 0, "function": {"arguments": arguments}}))],
        ),
        (
            "arguments as an object",
            vec![call(
                &json!({"index": 0, "id": "c1", "type": "", "function": {"name": "read_file", "arguments": {"path": "a.txt"}}}),
            )],
        ),
        (
            "words and a call",
            vec![
                chunk(&json!({"role": "assistant", "content": "Looking."})),
                call(&json!({"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": arguments}})),
            ],
        ),
    ];
    for (name, events) in table {
        let (output, requests) = played(Reply::events(events.iter().chain(&end)), &[]);
        assert!(output.code == 0 && requests.len() == 2, "{name}\n{}", output.shown());
        let results = requests[1].tool_results();
        assert_eq!(results.len(), 1, "{name}: {results:?}");
        assert!(results[0].1.contains("content of a"), "{name}: {results:?}");
        assert!(!results[0].0.is_empty(), "{name}: a call without an id is given one");
        assert_answered_once(&requests[1]);
    }
}

#[test]
fn calls_are_run_even_where_the_server_says_stop() {
    let reply = Reply::events(&[
        call(&json!({"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": read("a.txt")}})),
        finish("stop"),
    ]);
    let (output, requests) = played(reply, &[]);
    output.success();
    assert!(requests[1].last_result().contains("content of a"));
}

#[test]
fn several_calls_in_one_delta_and_interleaved_pieces_stay_apart() {
    let (a, b) = (read("a.txt"), read("b.txt"));
    let both = json!({"tool_calls": [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "read_file", "arguments": a}},
        {"index": 1, "id": "c2", "type": "function", "function": {"name": "read_file", "arguments": b}},
    ]});
    let piece = |index: usize, text: &str| call(&json!({"index": index, "function": {"arguments": text}}));
    let begin = |index: usize, id: &str| {
        call(
            &json!({"index": index, "id": id, "type": "function", "function": {"name": "read_file", "arguments": ""}}),
        )
    };
    let unnumbered =
        |id: &str, text: &str| call(&json!({"id": id, "function": {"name": "read_file", "arguments": text}}));
    let table = [
        ("both in one delta", vec![chunk(&both)]),
        (
            "pieces by turns",
            vec![
                begin(0, "c1"),
                begin(1, "c2"),
                piece(0, &a[..4]),
                piece(1, &b[..4]),
                piece(0, &a[4..]),
                piece(1, &b[4..]),
            ],
        ),
        ("one after the other, without index", vec![unnumbered("c1", &a), unnumbered("c2", &b)]),
        (
            "both with index 0 and ids of their own",
            vec![
                call(&json!({"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": a}})),
                call(&json!({"index": 0, "id": "c2", "function": {"name": "read_file", "arguments": b}})),
            ],
        ),
    ];
    for (name, events) in table {
        let (output, requests) = played(Reply::events(events.iter().chain([&finish("tool_calls")])), &[]);
        assert!(output.code == 0, "{name}\n{}", output.shown());
        let results = requests[1].tool_results();
        assert_eq!(results.len(), 2, "{name}: {results:?}");
        assert!(
            results[0].1.contains("content of a") && results[1].1.contains("content of b"),
            "{name}: {results:?}"
        );
        assert_eq!((results[0].0, results[1].0), ("c1", "c2"), "{name}");
        assert_answered_once(&requests[1]);
    }
}

#[test]
fn a_call_that_the_output_limit_cut_is_not_run_and_the_model_is_told() {
    let cut = "{\"path\": \"new.txt\", \"content\": \"half of the te";
    let reply = Reply::events(&[
        call(&json!({"index": 0, "id": "c1", "function": {"name": "write_file", "arguments": cut}})),
        finish("length"),
    ]);
    let (output, requests) = played(reply, &["--approve", "all"]);
    assert!(!output.place.exists("new.txt"), "a call that was cut ran\n{}", output.shown());
    let output = output.success();
    assert!(requests[1].last_result().to_lowercase().contains("cut"), "{}\n{}", requests[1].raw, output.shown());
    assert_answered_once(&requests[1]);
}

#[test]
fn a_call_that_is_whole_json_but_was_cut_is_not_run_either() {
    let reply = Reply::events(&[
        call(
            &json!({"index": 0, "id": "c1", "function": {"name": "write_file", "arguments": "{\"path\":\"new.txt\",\"content\":\"x\"}"}}),
        ),
        finish("length"),
    ]);
    let (output, _) = played(reply, &["--approve", "all"]);
    assert!(!output.place.exists("new.txt"), "{}", output.shown());
}

#[test]
fn arguments_are_repaired_in_the_ways_that_models_break_them() {
    for broken in [
        "```json\n{\"path\": \"a.txt\"}\n```",
        "```\n{\"path\": \"a.txt\"}\n```",
        "Here you are: {\"path\": \"a.txt\"} I hope it helps.",
        "{\"path\": \"a.txt\",}",
        "{\"path\": \"a.txt\"}}",
        "{\"path\": \"a.txt\"}{\"path\": \"a.txt\"}",
        "\n\t {\"path\": \"a.txt\"} ",
    ] {
        let (output, requests) = played(Reply::calls(&[("read_file", broken.to_owned())]), &[]);
        assert!(
            output.code == 0 && requests[1].last_result().contains("content of a"),
            "{broken}\n{}",
            output.shown()
        );
        assert_answered_once(&requests[1]);
    }
}

#[test]
fn arguments_beyond_repair_are_an_error_for_the_model_and_never_an_empty_object() {
    for broken in ["", "not json", "{\"path\": \"a.t", "[1, 2]"] {
        let (output, requests) = played(Reply::calls(&[("list_dir", broken.to_owned())]), &[]);
        let text = requests[1].last_result();
        assert!(!text.contains("a.txt"), "{broken:?} was run as if it were {{}}: {text}");
        assert!(output.code == 0, "a tool cannot end a run\n{}", output.shown());
        assert_answered_once(&requests[1]);
        assert!(!requests[1].calls().is_empty());
    }
}

#[test]
fn no_arguments_at_all_is_an_empty_object_where_nothing_is_required() {
    // Groq writes `null` where a call has none.
    for none in ["{}", "null"] {
        let (output, requests) = played(Reply::calls(&[("list_dir", none.to_owned())]), &[]);
        output.success();
        assert!(requests[1].last_result().contains("a.txt"), "{none}");
    }
    let (_, requests) = played(Reply::calls(&[("read_file", "null".to_owned())]), &[]);
    assert!(requests[1].last_result().contains("path"), "what is required is still missing");
}

#[test]
fn invalid_arguments_are_answered_with_path_expected_and_given() {
    let (output, requests) = played(Reply::call("read_file", &json!({"path": "a.txt", "limit": "many"})), &[]);
    output.success();
    let text = requests[1].last_result();
    for part in ["limit", "integer", "many"] {
        assert!(text.contains(part), "{part} is missing from: {text}");
    }
    let (_, requests) = played(Reply::call("read_file", &json!({"file": "a.txt"})), &[]);
    let text = requests[1].last_result();
    assert!(text.contains("path") && text.contains("file"), "what is missing and what is unknown: {text}");
}

#[test]
fn an_unknown_tool_is_answered_with_the_nearest_names() {
    let (output, requests) = played(Reply::call("raed_file", &json!({"path": "a.txt"})), &[]);
    output.success();
    let text = requests[1].last_result();
    assert!(text.contains("raed_file") && text.contains("read_file"), "{text}");
    assert_answered_once(&requests[1]);
}

#[test]
fn results_return_in_the_order_of_the_calls() {
    let calls: Vec<(&str, String)> = ["a.txt", "missing.txt", "b.txt", "a.txt", "b.txt", "a.txt"]
        .iter()
        .map(|path| ("read_file", read(path)))
        .collect();
    let (output, requests) = played(Reply::calls(&calls), &[]);
    output.success();
    let results = requests[1].tool_results();
    let ids: Vec<&str> = results.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, ["call_0", "call_1", "call_2", "call_3", "call_4", "call_5"]);
    assert!(results[0].1.contains("content of a") && results[2].1.contains("content of b"), "{results:?}");
    assert!(results[1].1.contains("missing.txt"), "{results:?}");
}

#[test]
fn reading_and_writing_in_one_reply_keep_their_order() {
    let calls = [
        ("read_file", read("a.txt")),
        ("write_file", json!({"path": "a.txt", "content": "changed\n"}).to_string()),
        ("read_file", read("a.txt")),
    ];
    let (output, requests) = played(Reply::calls(&calls), &["--approve", "edits"]);
    output.success();
    let results = requests[1].tool_results();
    assert!(results[0].1.contains("content of a"), "{results:?}");
    assert!(results[2].1.contains("changed"), "{results:?}");
}

/// The events and the telemetry say `ok` of a call only if it was done. The model reads the same as ever: the exit of
/// the command comes first.
#[test]
fn a_command_that_failed_is_not_ok() {
    let table = [
        ("true", "ok", Value::Null, "exit 0, no output"),
        ("echo out; exit 3", "error", json!("exit"), "exit 3\nout"),
        ("kill -KILL $$", "error", json!("signal"), "killed by SIGKILL, no output"),
    ];
    let commands: Vec<(&str, String)> =
        table.iter().map(|(line, ..)| ("run_command", json!({"command": line}).to_string())).collect();
    let (output, requests) = played(Reply::calls(&commands), &["--approve", "all", "-o", "jsonl"]);
    let output = output.success();
    let events = output.events();
    let results = requests[1].tool_results();
    for ((event, (_, shown)), (line, status, code, told)) in
        events.of("tool.finished").iter().zip(&results).zip(&table)
    {
        assert_eq!(event["status"], *status, "{line}");
        assert_eq!(
            (&event["telemetry"]["error_code"], &event["telemetry"]["success"]),
            (code, &json!(*code == Value::Null))
        );
        assert_eq!(
            shown.trim_end(),
            format!("<result tool=\"run_command\" untrusted>\n{told}\n</result>"),
            "{line}"
        );
    }
}

#[test]
fn a_loop_keeps_one_connection_and_only_ever_adds_to_its_request() {
    let server = Server::answering(|_, index| match index {
        0..20 => Reply::call("read_file", &json!({"path": format!("f{index}.txt")})),
        _ => Reply::text("done"),
    });
    let mut run = Run::task(&server, "read them all");
    for index in 0..20 {
        run = run.file(&format!("f{index}.txt"), format!("content {index}\n"));
    }
    run.run().success().stdout_is("done\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 21);
    assert_eq!(server.connections(), 1, "a loop needs one connection");
    assert_append_only(&requests);
    for request in &requests {
        assert_answered_once(request);
    }
    assert!(requests[20].last_result().contains("content 19"));
}
