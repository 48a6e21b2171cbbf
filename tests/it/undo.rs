//! `agent session undo`: the last message and what followed leave the conversation, and the log keeps them.

use std::sync::Arc;

use serde_json::json;

use crate::context::{only_log, run, summary, wants_summary};
use crate::output::Output;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::{Server, assert_answered_once};

fn undo(place: &Arc<Place>) -> Output {
    Run::at(place).args(["session", "undo"]).run()
}

fn go_on(place: &Arc<Place>, server: &Server, task: &str) -> Output {
    Run::at(place).args(["run", "--continue", task]).server(server).run().success()
}

#[test]
fn each_undo_goes_one_message_further_back() {
    let server = Server::answering(|request, _| match request.messages().last() {
        Some(last) if last["role"] == "user" && request.user().starts_with("read") => {
            Reply::call("read_file", &json!({"path": "a.txt"}))
        }
        _ => Reply::text(&format!("Answer to {}.", request.user())),
    });
    let first = Run::task(&server, "first task").file("a.txt", "marker\n").run().success();
    let place = &first.place;
    go_on(place, &server, "read a.txt");
    go_on(place, &server, "third task");
    let before = only_log(&first);
    undo(place).success().stdout_is("third task\n");
    assert!(only_log(&first).starts_with(&before), "a log is only ever added to");
    undo(place).success().stdout_is("read a.txt\n").stderr_has("Undone in session");
    let shown = Run::at(place).args(["session", "show", &id_of(place)]).run().success();
    assert!(shown.stdout.contains("Answer to first task."), "{}", shown.shown());
    for gone in ["read a.txt", "marker", "third task"] {
        assert!(!shown.stdout.contains(gone), "{gone}\n{}", shown.shown());
    }
    go_on(place, &server, "fourth task");
    let last = server.requests().pop().expect("requests");
    assert_answered_once(&last);
    assert_eq!(last.messages().len(), 4, "{}", last.raw);
    undo(place).success().stdout_is("fourth task\n");
    undo(place).success().stdout_is("first task\n");
    undo(place).exits(1).stdout_is("").reason_has("has no message of yours left to undo");
    go_on(place, &server, "anew");
    let last = server.requests().pop().expect("requests");
    assert_eq!((last.messages().len(), last.user()), (2, "anew"), "{}", last.raw);
    let listed = Run::at(place).args(["session", "list"]).run().success();
    assert!(listed.stdout.contains("anew") && !listed.stdout.contains("first task"), "{}", listed.shown());
}

#[test]
fn a_mistake_in_the_configuration_does_not_keep_anybody_from_undoing() {
    let server = Server::start([
        Reply::call("write_file", &json!({"path": "a.txt", "content": "new"})),
        Reply::text("Done."),
    ]);
    let run = Run::task(&server, "write").args(["--approve", "edits"]).run().success();
    let place = &run.place;
    let broken =
        |words: &[&str]| Run::at(place).config("models/x.yaml", "nonsense: 1\n").args(words.to_vec()).run();
    broken(&["session", "list"])
        .success()
        .stdout_has("write")
        .stderr_has("models/x.yaml:1:1: unknown key `nonsense`");
    broken(&["session", "show", &id_of(place)]).success().stdout_has("Done.");
    let undone = broken(&["session", "undo"]).success();
    undone.stdout_is("write\n").stderr_has("What can be read of it is used.");
    assert!(!place.exists("a.txt"));
    broken(&["session", "redo"]).success();
    assert_eq!(place.read("a.txt"), "new");
    // What would need all of it does not go on.
    broken(&["session", "prune", "--older-than", "0s"]).exits(3);
}

fn id_of(place: &Arc<Place>) -> String {
    place.session_logs()[0].file_stem().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn what_a_prompt_says_first_goes_with_the_first_message() {
    let server = Server::always(Reply::text("Answer."));
    let prompt = "---\nmessages:\n  - user: An example.\n  - assistant: Its answer.\n---\n";
    let first = Run::task(&server, "first").config("prompts/own/v1.0.md", prompt);
    let first = first.args(["--prompt", "own"]).run().success();
    assert!(server.only_request().raw.contains("An example."));
    undo(&first.place).success().stdout_is("first\n");
    undo(&first.place).exits(1);
}

#[test]
fn a_compression_after_the_message_is_undone_with_it() {
    let server = Server::answering(|request, index| match index {
        _ if wants_summary(request) => Reply::text(&summary("short")),
        0..=4 => Reply::text_and_calls(
            &format!("word-{index} {}", "I consider what this file may mean here. ".repeat(60)),
            &[("read_file", json!({"path": format!("f{index}.txt")}).to_string())],
        ),
        _ => Reply::text("Fini."),
    });
    let first = run(&server, "Read them.").run().success();
    let place = &first.place;
    let whole = server.requests().pop().expect("requests");
    go_on(place, &server, "and then");
    Run::at(place)
        .args(["session", "compact", &id_of(place)])
        .server(&server)
        .run()
        .success()
        .stderr_has("summarised");
    go_on(place, &server, "at last");
    let compressed = server.requests().pop().expect("requests");
    assert!(compressed.raw.contains("short goal") && !compressed.raw.contains("marker-0"), "{}", compressed.raw);
    // The compression came before this message.
    undo(place).success().stdout_is("at last\n");
    go_on(place, &server, "again");
    let again = server.requests().pop().expect("requests");
    assert!(again.raw.contains("short goal") && !again.raw.contains("at last"), "{}", again.raw);
    undo(place).success();
    undo(place).success().stdout_is("and then\n");
    go_on(place, &server, "once more");
    let verbatim = server.requests().pop().expect("requests");
    assert!(
        verbatim.prefix().0.starts_with(whole.prefix().0),
        "the view is that before the message: {}",
        verbatim.raw
    );
    assert!(!verbatim.raw.contains("and then") && !verbatim.raw.contains("short goal"), "{}", verbatim.raw);
    let whole_log = only_log(&first);
    assert!(whole_log.contains("and then") && whole_log.contains("short goal"), "the log keeps everything");
}

#[test]
fn without_a_session_there_is_nothing_to_undo() {
    Run::new().args(["session", "undo"]).run().exits(1).reason_has("no session to undo in");
    Run::new().args(["session", "undo", "nonsense"]).run().exits(2).reason_has("nonsense");
}
