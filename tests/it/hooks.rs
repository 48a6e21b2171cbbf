//! Hooks: commands that run at events of a run, and may have their say.

use serde_json::{Value, json};

use crate::kernel::has_walls;
use crate::repl::start;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;

fn write(path: &str) -> Reply {
    Reply::call("write_file", &json!({ "path": path, "content": "x\n" }))
}

fn hook(on: &str, rest: &str, script: &str) -> String {
    format!("on: {on}\n{rest}command: [sh, -c, {}]\n", json!(script))
}

/// A run with one hook, whose model makes one call.
fn with_hook(call: Reply, hook: &str) -> (Server, Run) {
    let server = Server::start([call, Reply::text("done"), Reply::text("done again")]);
    let run = Run::task(&server, "task").args(["--approve", "all"]).config("hooks/mine.yaml", hook);
    (server, run)
}

#[test]
fn a_hook_denies_a_call_with_its_reason() {
    let denies =
        hook("before_tool", "match: {tool: \"write_*\", path: \"*.txt\"}\n", "echo 'no texts' >&2; exit 2");
    let (server, run) = with_hook(write("a.txt"), &denies);
    let output = run.run().success();
    assert!(!output.place.exists("a.txt"));
    server.requests()[1]
        .last_result()
        .contains("the hook `mine` says: no texts")
        .then_some(())
        .expect("the reason");
    let (_server, run) = with_hook(write("a.md"), &denies);
    assert!(run.run().success().place.exists("a.md"), "it is about other files");
}

#[test]
fn a_hook_reads_the_call_and_replaces_its_arguments() {
    let script = r#"cat > seen.json; echo '{"arguments": {"path": "b.txt", "content": "y"}}'"#;
    let (server, run) = with_hook(write("a.txt"), &hook("PreToolUse", "", script));
    let output = run.run().success();
    assert_eq!((output.place.exists("a.txt"), output.place.read("b.txt").as_str()), (false, "y"));
    let seen: Value = serde_json::from_str(&output.place.read("seen.json")).expect("JSON");
    assert_eq!((&seen["event"], &seen["hook_event_name"]), (&json!("before_tool"), &json!("PreToolUse")));
    assert_eq!((&seen["tool_name"], &seen["tool_input"]["path"]), (&json!("write_file"), &json!("a.txt")));
    assert!(server.requests()[1].last_result().contains("a hook changed the arguments"));
}

#[test]
fn a_hook_that_was_written_for_claude_code_reads_and_gives_its_names() {
    let script = r#"cat > seen.json; echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"file_path": "b.txt", "content": "theirs"}}}'"#;
    let (_server, run) = with_hook(write("a.txt"), &hook("PreToolUse", "speaks: claude\n", script));
    let done = run.run().success();
    let seen: Value = serde_json::from_str(&done.place.read("seen.json")).expect("JSON");
    assert_eq!(seen["tool_name"], "Write");
    assert!(seen["tool_input"]["file_path"] == "a.txt" && seen["tool_input"]["path"].is_null(), "{seen}");
    assert_eq!((done.place.read("b.txt"), done.place.exists("a.txt")), ("theirs".to_owned(), false));
}

#[test]
fn a_hook_may_ask_but_not_allow() {
    let asks = hook("before_tool", "", r#"echo '{"decision": "ask", "reason": "sure?"}'"#);
    let (_server, run) = with_hook(write("a.txt"), &asks);
    assert!(!run.run().exits(7).place.exists("a.txt"), "nobody is there to be asked");
    let allows = r#"echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}'"#;
    let server = Server::start([write("a.txt"), Reply::text("done")]);
    let run = Run::task(&server, "task").config("hooks/mine.yaml", &hook("before_tool", "", allows));
    assert!(!run.run().exits(7).place.exists("a.txt"));
}

#[test]
fn what_a_hook_wants_to_be_asked_is_asked_each_time_with_its_reason() {
    let runs = || Reply::call("run_command", &json!({ "command": "echo x >> a.txt" }));
    let server = Server::start([runs(), runs(), Reply::text("done")]);
    let asks = hook("before_tool", "", r#"echo '{"decision": "ask", "reason": "sure of it?"}'"#);
    let run =
        Run::at(&Place::new()).server(&server).args(["chat", "--approve", "ask"]).config("hooks/mine.yaml", &asks);
    let place = run.place();
    let mut terminal = start(&run);
    terminal.line("write it");
    terminal.wait_for("sure of it?");
    assert!(!terminal.screen().contains("Always"), "{}", terminal.screen());
    terminal.line("y");
    terminal.wait_until("a second question", |screen| {
        screen
            .split_once("exit 0")
            .is_some_and(|(_, rest)| rest.contains("sure of it?") && rest.contains("Yes, once"))
    });
    terminal.line("n");
    terminal.wait_for("done");
    assert_eq!(place.read("a.txt"), "x\n");
}

#[test]
fn what_a_hook_replaced_is_not_recalled() {
    let prints = json!({ "command": "seq 100000; echo the-secret-word" });
    let server = Server::start([
        Reply::call("run_command", &prints),
        Reply::call("recall", &json!({ "query": "the-secret-word" })),
        Reply::text("done"),
    ]);
    let replaces =
        hook("after_tool", "match: {tool: run_command}\n", r#"echo '{"result": "hidden by the hook"}'"#);
    let run = Run::task(&server, "task").args(["--approve", "all"]).config("hooks/mine.yaml", &replaces);
    run.run().success();
    let requests = server.requests();
    let results: Vec<&str> = requests[2].tool_results().iter().map(|result| result.1).collect();
    assert!(results[0].contains("hidden by the hook"), "{}", results[0]);
    assert!(!results[1].contains("r1:"), "{}", results[1]);
}

#[test]
fn a_hook_formats_what_was_written_and_adds_to_the_result() {
    let script = r#"echo formatted >> a.txt; echo '{"context": "two lines now"}'"#;
    let (server, run) = with_hook(write("a.txt"), &hook("after_tool", "match: {path: \"**/*.txt\"}\n", script));
    let output = run.run().success();
    assert_eq!(output.place.read("a.txt"), "x\nformatted\n");
    assert!(server.requests()[1].last_result().contains("[two lines now]"));
    Run::at(&output.place).args(["session", "undo"]).run().success();
    assert!(!output.place.exists("a.txt"), "the undo takes it back with the call");
}

#[test]
fn a_hook_adds_to_a_message_or_refuses_it() {
    let server = Server::always(Reply::text("done"));
    let starts = hook("session_start", "", "echo 'The branch is main.'");
    let prompts = hook("prompt", "", "grep -q secret && { echo 'not that' >&2; exit 2; }; echo 'It is Friday.'");
    let run = |task: &str| {
        let run = Run::task(&server, task).config("hooks/a.yaml", &starts).config("hooks/b.yaml", &prompts);
        run.run()
    };
    run("hello").success();
    let user = server.only_request().user().to_owned();
    assert!(
        user.starts_with("hello") && user.contains("The branch is main.") && user.contains("It is Friday."),
        "{user}"
    );
    run("the secret").exits(1).reason_has("the hook `b` says: not that");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_hook_has_the_agent_go_on() {
    let server = Server::start([Reply::text("Finished."), Reply::text("Really finished.")]);
    let script = "test -e tested || { touch tested; echo 'run the tests first' >&2; exit 2; }";
    let output = Run::task(&server, "task").config("hooks/t.yaml", &hook("stop", "", script)).run().success();
    assert_eq!(output.stdout, "Really finished.\n");
    assert!(server.requests()[1].user().contains("run the tests first"));
}

#[test]
fn a_hook_of_claude_code_reads_the_conversation_in_its_format() {
    let call = Reply::text_and_calls(
        "I write.",
        &[("write_file", json!({ "path": "a.txt", "content": "x" }).to_string())],
    );
    let server = Server::start([call, Reply::text("Finished."), Reply::text("Really finished.")]);
    // It goes on until the last text of the agent has the promise.
    let script = r#"python3 -c '
import json, os, sys
given = json.load(sys.stdin)
lines = [json.loads(line) for line in open(given["transcript_path"])]
parts = [part for line in lines if line["type"] == "assistant" for part in line["message"]["content"]]
tools = [(part["name"], part["input"]["file_path"]) for part in parts if part["type"] == "tool_use"]
texts = [part["text"] for part in parts if part["type"] == "text"]
assert lines[0]["message"] == {"role": "user", "content": "task"}, lines[0]
assert tools == [("Write", "a.txt")], tools
assert given["session_id"] == lines[0]["sessionId"]
if texts[-1] != "Really finished.":
    print("not yet: " + texts[-1], file=sys.stderr)
    sys.exit(2)
'"#;
    let hook = hook("stop", "speaks: claude\n", script);
    let output =
        Run::task(&server, "task").args(["--approve", "all"]).config("hooks/t.yaml", &hook).run().success();
    assert_eq!(output.stdout, "Really finished.\n", "{}", output.stderr);
    assert!(server.requests()[2].user().contains("not yet: Finished."), "{}", server.requests()[2].user());
}

#[test]
fn a_hook_that_fails_has_no_say_and_is_named() {
    for (script, limit, why) in [
        ("exit 1", "", "it ended with 1"),
        ("echo '{broken'", "", "is no JSON object"),
        ("sleep 60", "time_limit: 300ms\n", "it took longer than 300ms"),
        ("yes | head -c 3000000", "", "printed more than"),
        ("kill -9 $PPID; kill -9 $$", "", "it was ended by"),
    ] {
        let (_server, run) = with_hook(write("a.txt"), &hook("before_tool", limit, script));
        let output = run.run().success().stderr_has("the hook `mine` had no say").stderr_has(why);
        assert!(output.place.exists("a.txt"), "{script}");
    }
    for trust in ["", "trusted: true\n"] {
        let (_server, run) =
            with_hook(write("a.txt"), &format!("on: before_tool\n{trust}command: [no-such-thing]\n"));
        run.run().success().stderr_has("had no say").stderr_has("no-such-thing");
    }
}

#[test]
fn what_a_hook_leaves_behind_does_not_hold_up_its_say() {
    for trust in ["", "trusted: true\n"] {
        let leaves = hook("before_tool", trust, "sleep 1000 & (setsid sleep 1001 &); echo 'not this' >&2; exit 2");
        let (server, run) = with_hook(write("a.txt"), &leaves);
        assert!(!run.run().success().place.exists("a.txt"), "{trust}");
        assert!(server.requests()[1].last_result().contains("the hook `mine` says: not this"));
    }
}

#[test]
fn a_hook_cannot_write_outside_the_workspace() {
    if !has_walls() {
        return;
    }
    let script = "echo x > \"$HOME/escaped\"";
    let (_server, run) = with_hook(write("a.txt"), &hook("before_tool", "", script));
    assert!(!run.run().place.home().join("escaped").exists());
    let (_server, run) = with_hook(write("a.txt"), &hook("before_tool", "trusted: true\n", script));
    assert!(run.run().place.home().join("escaped").exists());
}

#[test]
fn hooks_of_a_project_wait_for_trust_and_stay_inside_the_walls() {
    let brought = hook("before_tool", "trusted: true\n", "echo 'no' >&2; exit 2");
    let server = Server::start([write("a.txt"), Reply::text("done"), write("a.txt"), Reply::text("done")]);
    let run = |flags: &[&str]| {
        let run = Run::task(&server, "task").args(["--approve", "all"]).args(flags.to_vec());
        run.file(".agent/hooks/evil.yaml", &brought).run()
    };
    assert!(run(&[]).place.exists("a.txt"), "it does not run untrusted");
    let trusted = run(&["--trust"]).stderr_has("`trusted` is left out");
    assert!(!trusted.place.exists("a.txt"));
}

#[test]
fn a_wrong_file_is_told_with_its_place() {
    let server = Server::always(Reply::text("done"));
    let run = |text: &str| Run::task(&server, "task").config("hooks/w.yaml", text).run().exits(3);
    run("on: never\ncommand: [x]\n").stderr_has("hooks/w.yaml:1");
    run("on: stop\nmatch: {tool: x}\ncommand: [x]\n").stderr_has("`match` is for");
    run("on: stop\ncommand: []\n").stderr_has("names no program");
    run("on: stop\ncommand: [x]\ntime_limit: 1h\n").stderr_has("at most 10m");
}

#[test]
fn a_hook_reads_no_secret_and_one_that_fails_early_is_told_in_the_run() {
    let server = Server::start([Reply::call("read_file", &json!({ "path": "notes" })), Reply::text("done")]);
    let run = Run::task(&server, "task").args(["-o", "jsonl"]).env("DEPLOY_TOKEN", "tok-4f9a8b7c6d5e");
    let run = run
        .file("notes", "it is tok-4f9a8b7c6d5e\n")
        .config("hooks/a.yaml", &hook("after_tool", "", "cat > seen"));
    let output = run.config("hooks/b.yaml", &hook("prompt", "", "exit 1")).run().success();
    let seen = output.place.read("seen");
    assert!(seen.contains("it is ") && !seen.contains("4f9a8b7c6d5e"), "{seen}");
    let first: Value = serde_json::from_str(output.stdout.lines().next().expect("an event")).expect("JSON");
    assert_eq!(first["type"], "run.started");
    let seen: Value = serde_json::from_str(&seen).expect("JSON");
    assert_eq!(seen["session_id"], first["session_id"]);
    output.stderr_has("the hook `b` had no say");
}

#[test]
fn hooks_hear_of_questions_and_of_the_end() {
    // The file appears whole: the answer to the question ends a hook that still writes.
    let note = |on: &str| hook(on, "", &format!("cat > {on}.part; mv {on}.part {on}.json"));
    let place = Place::new();
    let server = Server::start([write("a.txt"), Reply::text("Denied.")]);
    let run =
        Run::at(&place).config("hooks/n.yaml", &note("Notification")).config("hooks/e.yaml", &note("session_end"));
    let mut terminal = start(&run.arg("chat").server(&server));
    terminal.line("write it");
    terminal.wait_for("Allow?");
    terminal.wait_until("the hook to have run", |_| place.exists("Notification.json"));
    terminal.line("n");
    terminal.wait_for("Denied.");
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    let seen = |on: &str| serde_json::from_str::<Value>(&place.read(&format!("{on}.json"))).expect(on);
    assert_eq!(
        (&seen("Notification")["event"], &seen("session_end")["reason"]),
        (&json!("notify"), &json!("exit"))
    );
    assert!(seen("Notification")["message"].as_str().is_some_and(|text| text.contains("write_file asks")));
}

#[test]
fn hooks_hear_which_conversation_a_person_leaves_and_why() {
    let place = Place::new();
    let server = Server::always(Reply::text("Fine."));
    let ends = hook("session_end", "", "cat >> ends.jsonl; echo >> ends.jsonl");
    let run = Run::at(&place).config("hooks/e.yaml", &ends).arg("chat").server(&server);
    run.stdin("one\n/clear\ntwo\n/fork\n/exit\n").run().success();
    let ends: Vec<Value> =
        place.read("ends.jsonl").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let reasons: Vec<&str> = ends.iter().filter_map(|end| end["reason"].as_str()).collect();
    assert_eq!(reasons, ["clear", "resume", "exit"]);
    assert!(ends[0]["session_id"] != ends[1]["session_id"] && ends[1]["session_id"] != ends[2]["session_id"]);
}

#[test]
fn a_guard_names_tools_as_claude_code_does_and_no_tool_that_is_not_there() {
    let denies = hook("PreToolUse", "speaks: claude\nmatch: { tool: \"Bash|Write\" }\n", "echo no >&2; exit 2");
    let (server, run) = with_hook(write("a.txt"), &denies);
    let output = run.run().success();
    assert!(!output.place.exists("a.txt"), "{}", server.requests()[1].last_result());
    for (rest, code) in [
        ("speaks: claude\nmatch: { tool: \"Bash|Edit\" }\n", 0),
        ("match: { tool: \"write_*|files__delete\" }\n", 0),
        ("speaks: claude\nmatch: { tool: mcp__git__push }\n", 0),
        ("match: { tool: Bash }\n", 3),
        ("match: { tool: \"write_file|run_comand\" }\n", 3),
    ] {
        let file = hook("PreToolUse", rest, "true");
        let checked = Run::new().args(["config", "check"]).config("hooks/mine.yaml", &file).run();
        assert_eq!(checked.code, code, "{file}: {}", checked.shown());
        assert_eq!(checked.stderr.contains("there is no tool"), code == 3, "{}", checked.shown());
    }
}
