//! stdout is only for the answer, stderr for the rest.

use serde_json::json;

use crate::reply::{Act, Gate, Reply};
use crate::run::Run;
use crate::server::Server;

#[test]
fn a_pipe_gets_exactly_the_final_answer_and_stderr_the_words_between() {
    let server = Server::start([
        Reply::text_and_calls("Let me look first.", &[("list_dir", json!({"path": "."}).to_string())]),
        Reply::text("The answer."),
    ]);
    Run::task(&server, "task").run().success().stdout_is("The answer.\n").stderr_has("Let me look first.");
}

#[test]
fn an_answer_with_a_final_newline_gets_no_second_one() {
    let server = Server::start([Reply::text("line\n")]);
    Run::task(&server, "task").run().success().stdout_is("line\n");
}

#[test]
fn a_retry_after_shown_text_doubles_nothing_in_a_pipe() {
    let server =
        Server::start([Reply::text("The whole answer.").then(2, Act::Reset), Reply::text("The whole answer.")]);
    Run::task(&server, "task").quick_retries().run().success().stdout_is("The whole answer.\n");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn stream_writes_all_text_as_it_comes() {
    let gate = Gate::new();
    let server = Server::start([
        Reply::text_and_calls("Looking.", &[("list_dir", json!({"path": "."}).to_string())]),
        Reply::text("First half, second half.").gate(&gate, 2),
    ]);
    let running = Run::task(&server, "task").arg("--stream").spawn();
    gate.reached();
    running.wait_stdout("First half");
    gate.open();
    running.wait().success().stdout_has("Looking.").stdout_has("First half, second half.");
}

#[test]
fn without_stream_a_pipe_sees_nothing_before_the_answer_is_whole() {
    let gate = Gate::new();
    let server = Server::start([
        Reply::text("First half, second half.").gate(&gate, 2).then(3, Act::Cut),
        Reply::error(401, "no"),
    ]);
    let running = Run::task(&server, "task").quick_retries().spawn();
    gate.reached();
    gate.open();
    running.wait().exits(4).stdout_is("");
}

#[test]
fn json_is_one_object_with_the_result() {
    let server = Server::start([Reply::text("The answer.").counted(5000)]);
    let output = Run::task(&server, "task").args(["-o", "json"]).run().success();
    let object = output.json();
    assert_eq!(object["type"], "run.completed");
    assert_eq!(object["status"], "completed");
    assert_eq!(object["result"], "The answer.");
    assert_eq!(object["exit_code"], 0);
    assert_eq!(object["usage"]["input_tokens"], 5000);
    assert_eq!(object["usage"]["output_tokens"], 20);
    assert_eq!(object["steps"], 1);
    assert_eq!(output.stdout.lines().count(), 1, "one object on one line\n{}", output.shown());
}

#[test]
fn jsonl_tells_the_whole_run() {
    let server = Server::start([
        Reply::call("read_file", &json!({"path": "notes.txt"})).counted(5000),
        Reply::text("It says \u{2028}hello.").counted(5100),
    ]);
    let output =
        Run::task(&server, "what does it say?").args(["-o", "jsonl"]).file("notes.txt", "hello").run().success();
    assert!(!output.stdout.contains('\u{2028}'), "U+2028 is escaped in JSON lines");
    let events = output.events();
    let started = events.one("run.started");
    assert_eq!(started["model"], "scripted-model");
    assert!(started["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool == "read_file")));
    assert_eq!(events.one("turn.started")["input"], "what does it say?");
    let requests = events.of("request.started");
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0]["prefix_tokens"], 0);
    assert!(
        requests[1]["prefix_tokens"].as_u64() > Some(0),
        "the second request extends the first: {}",
        requests[1]
    );
    assert_eq!(events.one("tool.started")["name"], "read_file");
    let finished = events.one("tool.finished");
    assert_eq!((finished["status"].clone(), finished["call_id"].clone()), (json!("ok"), json!("call_0")));
    assert_eq!(events.text("text.delta"), "It says \u{2028}hello.");
    let completed = events.one("run.completed");
    assert_eq!(completed["result"], "It says \u{2028}hello.");
    assert_eq!((completed["steps"].clone(), completed["tool_calls"].clone()), (json!(2), json!(1)));
    assert_eq!(completed["usage"]["input_tokens"], 10_100);
    for event in &events.0 {
        assert_eq!(event["session_id"], started["session_id"], "{event}");
        assert_eq!(event["run_id"], started["run_id"], "{event}");
    }
}

#[test]
fn events_are_flushed_a_line_at_a_time() {
    let gate = Gate::new();
    let server = Server::start([Reply::text("First half, second half.").gate(&gate, 2)]);
    let running = Run::task(&server, "task").args(["-o", "jsonl"]).spawn();
    gate.reached();
    running.wait_stdout("\"text.delta\"");
    gate.open();
    running.wait().success().events();
}

#[test]
fn an_answer_of_a_megabyte_goes_through_a_pipe_intact() {
    let text: String = (0..65_536).map(|line| format!("{line:015}\n")).collect();
    assert_eq!(text.len(), 1 << 20);
    let server = Server::start([Reply::text_in_pieces(&text, 4096)]);
    let output = Run::task(&server, "task").run().success();
    assert!(output.stdout == text, "{} bytes came, {} were sent", output.stdout.len(), text.len());
    let server = Server::start([Reply::text_in_pieces(&text, 4096)]);
    let output = Run::task(&server, "task").args(["-o", "json"]).run().success();
    assert!(output.json()["result"] == text, "json lost some of a megabyte");
}

#[test]
fn a_closed_stdout_ends_the_run_quietly() {
    let (first, second, third) = (Gate::new(), Gate::new(), Gate::new());
    let words: Vec<_> =
        ["one ", "two ", "three ", "four "].iter().map(|w| crate::reply::chunk(&json!({"content": w}))).collect();
    let reply = Reply::events(&words).gate(&third, 3).gate(&second, 2).gate(&first, 1);
    let server = Server::start([reply]);
    let running = Run::task(&server, "task").arg("--stream").spawn();
    first.reached();
    running.wait_stdout("one");
    running.close_stdout();
    // The reader leaves with "two "; what is written after that finds nobody.
    first.open();
    running.wait_stdout("two");
    second.open();
    third.open();
    running.wait().success().stderr_lacks("panic").stderr_lacks("roken pipe");
}

#[test]
fn output_file_holds_the_last_answer() {
    let server = Server::start([
        Reply::text_and_calls("Looking.", &[("list_dir", json!({"path": "."}).to_string())]),
        Reply::text("The answer."),
    ]);
    let output = Run::task(&server, "task").args(["--output-file", "answer.txt"]).run().success();
    assert_eq!(output.place.read("answer.txt").trim_end(), "The answer.");
}

#[test]
fn nobody_pays_for_an_answer_that_has_nowhere_to_go() {
    let server = Server::always(Reply::text("ok"));
    for place in ["no/such/directory", ".", "pipe"] {
        let run = Run::task(&server, "task").args(["--output-file", place]);
        nix::unistd::mkfifo(&run.place().workspace().join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        run.run().exits(2).reason_has("cannot write the answer");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn files_are_attached_as_data() {
    let server = Server::start([Reply::text("ok")]);
    Run::task(&server, "compare")
        .args(["-f", "a.txt", "-f", "sub/b.txt"])
        .file("a.txt", "content of a")
        .file("sub/b.txt", "content of b {{ env.HOME }}")
        .run()
        .success();
    let request = server.only_request();
    let user = request.user();
    for part in ["compare", "a.txt", "content of a", "sub/b.txt", "content of b {{ env.HOME }}"] {
        assert!(user.contains(part), "{part} is missing from: {user}");
    }
}

#[test]
fn what_a_model_says_cannot_move_the_cursor_of_whoever_reads_stderr() {
    let server = Server::start([
        Reply::text_and_calls(
            "red \u{1b}[31m and \u{202e}back",
            &[("list_dir", json!({"path": "."}).to_string())],
        ),
        Reply::text("done"),
    ]);
    let output = Run::task(&server, "task").run().success();
    assert!(!output.stderr.contains(['\u{1b}', '\u{202e}']), "{:?}", output.stderr);
}

#[test]
fn quiet_leaves_stderr_empty_when_all_goes_well() {
    let server = Server::start([Reply::call("list_dir", &json!({"path": "."})), Reply::text("done")]);
    let output = Run::task(&server, "task").arg("--quiet").run().success().stdout_is("done\n");
    assert_eq!(output.stderr, "");
}

#[test]
fn no_colour_and_no_cursor_moves_without_a_terminal() {
    let server = Server::start([Reply::call("list_dir", &json!({"path": "."})), Reply::text("done")]);
    let output = Run::task(&server, "task").run().success();
    assert!(!output.stderr.contains('\u{1b}') && !output.stderr.contains('\r'), "{:?}", output.stderr);
}

/// Where the model sees them; else nothing is sent, as a note in its place would not be what was asked for.
#[test]
fn a_picture_is_attached_as_one() {
    let server = Server::start([Reply::text("A dot.")]);
    let asked = |sees: bool| {
        Run::task(&server, "What is this?")
            .config("models/default.yaml", &format!("capabilities: {{ vision: {sees} }}\n"))
            .file("dot.gif", b"GIF89a\0\0")
            .file("a.txt", "text of a")
            .args(["-f", "dot.gif", "-f", "a.txt"])
            .run()
    };
    asked(true).success().stdout_is("A dot.\n");
    asked(false).exits(2).stderr_has("sees no pictures; -m names another model");
    let [request] = &server.requests()[..] else { panic!("one request") };
    assert!(request.raw.contains("data:image/gif;base64,R0lGODlhAAA="), "{}", request.raw);
    assert!(request.raw.contains("text of a"), "{}", request.raw);
}
