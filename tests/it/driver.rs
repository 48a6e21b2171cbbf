//! Every face drives its runs in the same way: a dry run is the run up to its request, a wrong prompt comes before any
//! event and ends with 3, secrets are masked.

use serde_json::Value;

use crate::reply::Reply;
use crate::run::{KEY, Run};
use crate::server::Server;

/// A prompt that reads a variable which nothing defines.
const WRONG: &str =
    "---\nrequired_vars: [role]\nmessages:\n  - system: You are {{ role }}.\n  - user: Begin.\n---\n";

#[test]
fn a_dry_run_shows_the_request_that_the_run_sends() {
    for args in [
        &["--file", "notes.txt"][..],
        &["--schema", "schema.json"],
        &["--mode", "explore"],
        &["--mode", "plan"],
        &["--mode", "route"],
    ] {
        let server = Server::always(Reply::text("{}"));
        let first = Run::task(&server, "task")
            .file("notes.txt", "the notes\n")
            .file("schema.json", r#"{"type": "object"}"#)
            .args(args.iter().copied().chain(["--dry-run"]))
            .run()
            .success();
        assert!(server.requests().is_empty(), "{args:?} sent a request");
        Run::at(&first.place).args(["run", "task"]).args(args.iter().copied()).server(&server).run();
        let shown: Value = first.json();
        let sent = &server.requests()[0];
        assert_eq!(shown["messages"], Value::from(sent.messages()), "{args:?}");
    }
}

#[test]
fn a_dry_run_of_a_session_renders_its_prompt_again_if_the_run_would() {
    let server = Server::always(Reply::text("ok"));
    let first = Run::task(&server, "one").file("AGENTS.md", "Be brief.").run().success();
    let again = Run::at(&first.place).args(["run", "--continue", "two"]).server(&server);
    let dry = again.args(["--dry-run"]).file("AGENTS.md", "Be verbose.").run().success();
    dry.stdout_has("Be verbose.").stderr_has("the system prompt was rendered again: project instructions changed");
}

#[test]
fn a_dry_run_of_a_message_that_is_too_large_says_so() {
    let server = Server::start([]);
    let run = Run::task(&server, "task").file("long.txt", "a long text, ".repeat(40_000));
    run.args(["--file", "long.txt", "--dry-run", "--set", "context.budget=20000"])
        .run()
        .exits(9)
        .stdout_is("")
        .reason_has("your message");
}

#[test]
fn a_wrong_prompt_ends_every_face_with_the_same_code_and_leaves_no_session() {
    let server = Server::start([]);
    for args in [&["run", "--prompt", "wrong"][..], &["chat", "--prompt", "wrong"]] {
        let run = Run::new().server(&server).config("prompts/wrong/v1.0.md", WRONG);
        let output =
            run.args(args.iter().copied()).stdin("hello\n").run().exits(3).stdout_is("").stderr_has("`role`");
        assert!(output.place.session_logs().is_empty(), "{args:?} left a session");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_session_is_not_compacted_with_a_wrong_prompt() {
    let server = Server::always(Reply::text("ok"));
    let first = Run::task(&server, "one").run().success();
    let id = first.place.session_logs()[0].file_stem().expect("a name").to_string_lossy().into_owned();
    let wrong = "system_prompt: \"You are {{ vars.role }}.\"\n";
    for args in
        [&["session", "compact"][..], &["session", "compact", "--dry-run"], &["session", "show", "--context"]]
    {
        let run = Run::at(&first.place).args(args.iter().copied()).arg(&id).server(&server);
        run.config("agents/default.yaml", wrong).run().exits(3).stdout_is("").reason_has("role");
    }
}

#[test]
fn a_tested_prompt_sends_no_more_secrets_than_a_run() {
    let server = Server::always(Reply::text("ok"));
    let head =
        "---\nmessages:\n  - user: The key is {{ vars.word }}.\n  - assistant: Noted.\n  - user: Go on.\n---\n";
    let cases = format!("cases:\n- {{ name: one, vars: {{ word: {KEY} }}, runs: 1, assert: [equals: ok] }}\n");
    Run::new()
        .server(&server)
        .config("prompts/talk/v1.0.md", head)
        .config("prompts/talk/tests.yaml", &cases)
        .args(["prompt", "test", "talk"])
        .run()
        .success();
    assert!(!server.only_request().raw.contains(KEY), "{}", server.only_request().raw);
}
