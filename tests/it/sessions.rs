//! Sessions on disk: durable, private, continued, and repaired if a line was torn.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server, assert_answered_once};

#[test]
fn continue_extends_the_last_conversation_byte_for_byte() {
    let server = Server::start([
        Reply::call("read_file", &json!({"path": "a.txt"})),
        Reply::text("It says A."),
        Reply::text("You asked about a.txt."),
    ]);
    let first = Run::task(&server, "what is in a.txt?").file("a.txt", "A\n").run().success();
    Run::at(&first.place).args(["run", "--continue", "what did I ask?"]).server(&server).run().success();
    let requests = server.requests();
    crate::server::assert_append_only(&requests);
    assert_eq!(requests[2].user(), "what did I ask?");
    assert_answered_once(&requests[2]);
    assert_eq!(first.place.session_logs().len(), 1, "one conversation, one log");
}

#[test]
fn a_session_is_found_by_its_id_and_listed_and_shown() {
    let server = Server::always(Reply::text("The answer."));
    let first = Run::task(&server, "the first task").args(["-o", "json"]).run().success();
    let id = first.json()["session_id"].as_str().expect("an id").to_owned();
    let place = &first.place;
    Run::at(place).args(["run", "the second task"]).server(&server).run().success();
    Run::at(place).args(["run", "--session", &id, "and more"]).server(&server).run().success();
    let last = server.requests().pop().expect("a request");
    assert!(last.raw.contains("the first task") && !last.raw.contains("the second task"), "{}", last.raw);
    let listed = Run::at(place).args(["session", "list"]).run().success();
    assert!(listed.stdout.contains(&id) && listed.stdout.contains("the second task"), "{}", listed.shown());
    let shown = Run::at(place).args(["session", "show", &id]).run().success();
    for part in ["the first task", "The answer.", "and more"] {
        assert!(shown.stdout.contains(part), "{part}\n{}", shown.shown());
    }
    Run::at(place)
        .args(["run", "--session", "no-such-session", "x"])
        .server(&server)
        .run()
        .fails()
        .stderr_has("no-such-session");
    Run::at(place).args(["session", "show", "no-such-session"]).run().fails().stderr_has("no-such-session");
}

#[test]
fn a_long_log_shows_a_bar_while_it_is_read_and_only_on_a_terminal() {
    const LONG: usize = 24 << 20;
    let server = Server::always(Reply::text("The answer."));
    let first = Run::task(&server, "the task").run().success();
    let log = &first.place.session_logs()[0];
    let content = fs::read_to_string(log).expect("a log");
    let said = content.lines().find(|line| line.contains("the task")).expect("it is in the log");
    let lines = format!("{said}\n").repeat(LONG / said.len());
    fs::write(log, format!("{content}{lines}")).expect("written");
    let stats = ["stats"];
    let terminal = Terminal::start(&Run::at(&first.place).args(stats));
    let raw = terminal.raw_to_the_end();
    let bar = raw.find("MiB of the session").expect("a bar");
    assert!(raw.rfind(" step").is_some_and(|table| bar < table), "{raw:?}");
    assert!(!terminal.screen().contains("MiB of the session"), "{}", terminal.screen());
    Run::at(&first.place).args(stats).run().success().stderr_lacks("MiB");
}

#[test]
fn options_that_a_continued_session_cannot_honour_are_told() {
    let server = Server::always(Reply::text("ok"));
    let deploy = "---\nname: deploy\ndescription: How to deploy.\n---\nPush it.\n";
    let skill = |run: Run| run.config("skills/deploy/SKILL.md", deploy).args(["--skill", "deploy"]);
    let first = skill(Run::task(&server, "release it")).run().success().stderr_lacks("no effect");
    let again = skill(Run::at(&first.place).args(["run", "--continue", "again"]).server(&server)).run().success();
    again.stderr_has("warning: --skill deploy has no effect: this session has loaded it already");
    for kept in [&["--continue"][..], &["--session", "x"]] {
        let run = Run::at(&first.place).args(["run", "task", "--ephemeral"]).args(kept.to_vec()).server(&server);
        run.run().exits(2).stderr_has("--ephemeral");
    }
}

#[test]
fn continue_means_this_workspace_and_says_so_where_there_is_none() {
    let server = Server::always(Reply::text("ok"));
    let first = Run::task(&server, "here").file("other/x", "").run().success();
    let elsewhere =
        Run::at(&first.place).args(["-C", "other", "run", "--continue", "there"]).server(&server).run();
    assert!(elsewhere.code != 0, "another workspace has no session to continue\n{}", elsewhere.shown());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn continue_names_what_it_takes_and_what_it_leaves_out() {
    let server = Server::always(Reply::text("ok"));
    let first = Run::task(&server, "the \u{1b}[31mfirst\u{1b}[0m task").run().success().stderr_lacks("Continuing");
    let place = &first.place;
    let log = place.session_logs().remove(0);
    let newer = log.with_file_name("20990101-000000-aaaaaa.jsonl");
    fs::write(&newer, "{\"v\":9,\"type\":\"session\"}\n").expect("written");
    nix::unistd::mkfifo(&log.with_file_name("20990101-000000-bbbbbb.jsonl"), nix::sys::stat::Mode::S_IRWXU)
        .expect("a pipe");
    let goes_on = |args: &[&str]| Run::at(place).args(args.to_vec()).server(&server).run().success();
    let again = goes_on(&["run", "--continue", "go on"]).stderr_lacks("\u{1b}");
    for part in
        ["Continuing \"the ", "first", "task\", just now (session 2", "left out: ", "format 9", "regular file"]
    {
        assert!(again.stderr.contains(part), "{part}\n{}", again.shown());
    }
    goes_on(&["run", "--continue", "go on", "--quiet"]).stderr_lacks("Continuing");
    let id = log.file_stem().expect("a name").to_string_lossy().into_owned();
    goes_on(&["run", "--session", &id, "go on"]).stderr_lacks("Continuing").stderr_lacks("left out");
    Run::at(place)
        .args(["run", "--session", "20990101-000000-aaaaaa", "x"])
        .server(&server)
        .run()
        .exits(2)
        .reason_has("newer version of agent (format 9; this one reads 2 to 3): update agent");
    let listed = Run::at(place).args(["session", "list", "-o", "json"]).run().success().stderr_has("left out: ");
    let sessions: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!((sessions[0]["id"].as_str(), sessions[1].as_object()), (Some(&*id), None), "{sessions}");
    assert!(sessions[0]["title"].as_str().is_some_and(|title| title.contains("first")), "{sessions}");
}

#[test]
fn ephemeral_leaves_nothing_behind() {
    let server = Server::always(Reply::text("ok"));
    let output = Run::task(&server, "a secret question").arg("--ephemeral").run().success();
    for (path, text) in output.place.kept() {
        assert!(!text.contains("a secret question"), "{} holds the task", path.display());
    }
    assert!(output.place.session_logs().is_empty());
}

#[test]
fn logs_are_versioned_from_the_first_line_and_private() {
    let server = Server::always(Reply::text("ok"));
    let output = Run::task(&server, "task").run().success();
    let logs = output.place.session_logs();
    let [log] = &logs[..] else { panic!("one log, found {logs:?}") };
    assert_eq!(mode(log), 0o600, "{}", log.display());
    assert_eq!(mode(log.parent().expect("a directory")), 0o700);
    let text = fs::read_to_string(log).expect("a log is text");
    let first: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("a line is JSON");
    assert!(first["v"].is_number() || first["version"].is_number(), "no version in {first}");
    for line in text.lines() {
        serde_json::from_str::<Value>(line).expect("each line is JSON");
    }
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn a_torn_last_line_is_repaired_with_a_warning() {
    let server = Server::always(Reply::text("ok"));
    let first = Run::task(&server, "the first task").run().success();
    let log = first.place.session_logs().remove(0);
    let mut file = fs::OpenOptions::new().append(true).open(&log).expect("the log can be written");
    file.write_all(b"{\"type\":\"message\",\"role\":\"user\",\"cont").expect("the log can be written");
    drop(file);
    let second = Run::at(&first.place).args(["run", "--continue", "go on"]).server(&server).run().success();
    assert!(!second.stderr.is_empty(), "the repair was not reported\n{}", second.shown());
    let last = server.requests().pop().expect("a request");
    assert!(last.raw.contains("the first task") && last.raw.contains("go on"), "{}", last.raw);
    for line in fs::read_to_string(&log).expect("a log is text").lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error} in {line}"));
    }
    Run::at(&first.place).args(["run", "--continue", "again"]).server(&server).run().success();
}

#[test]
fn a_log_torn_between_a_call_and_its_answer_is_answered_on_the_way() {
    let server = Server::start([
        Reply::call("read_file", &json!({"path": "a.txt"})),
        Reply::text("A."),
        Reply::text("fine"),
    ]);
    let first = Run::task(&server, "task").file("a.txt", "A\n").run().success();
    let log = first.place.session_logs().remove(0);
    let text = fs::read_to_string(&log).expect("a log is text");
    // Up to the message that made the call.
    let kept: Vec<&str> = text.lines().take_while(|line| !line.contains("\"type\":\"answer\"")).collect();
    assert!(kept.len() < text.lines().count(), "the answer of the tool is in the log: {text}");
    fs::write(&log, kept.join("\n") + "\n").expect("the log can be written");
    Run::at(&first.place).args(["run", "--continue", "go on"]).server(&server).run().success();
    assert_answered_once(&server.requests()[2]);
}

#[test]
fn the_system_prompt_is_rendered_again_where_what_it_was_made_from_changed_and_only_there() {
    let server = Server::always(Reply::text("ok"));
    let first = Run::task(&server, "task").file("AGENTS.md", "Be brief.").run().success();
    let go_on = || Run::at(&first.place).args(["run", "--continue", "more"]).server(&server);
    go_on().run().success().stderr_lacks("rendered again");
    let changed = go_on().file("AGENTS.md", "Be verbose.").run().success();
    assert_eq!(
        changed.stderr.matches("the system prompt was rendered again: project instructions changed").count(),
        1
    );
    go_on()
        .args(["--var", "x=1"])
        .run()
        .success()
        .stderr_has("the system prompt was rendered again: variables changed");
    let requests = server.requests();
    assert_eq!(requests[0].system(), requests[1].system());
    assert!(requests[2].system().contains("Be verbose."), "{}", requests[2].system());
    assert_eq!(requests[2].system(), requests[3].system(), "no variable is read");
}

#[test]
fn a_dry_run_of_a_session_shows_its_history_and_adds_nothing_to_it() {
    let server = Server::start([Reply::text("first answer")]);
    let first = Run::task(&server, "first task").run().success();
    let dry = Run::at(&first.place)
        .args(["run", "second task", "--continue", "--dry-run"])
        .server(&server)
        .run()
        .success();
    let body = dry.json().to_string();
    for said in ["first task", "first answer", "second task"] {
        assert!(body.contains(said), "{said} in {body}");
    }
    assert_eq!(server.requests().len(), 1, "nothing was sent");
    let shown = Run::at(&first.place).args(["session", "show", "2"]).run().success();
    assert!(!shown.stdout.contains("second task"), "{}", shown.stdout);
}

#[test]
fn a_session_that_is_resumed_goes_on_from_the_size_that_its_server_counted() {
    // A server that counts twice what any estimate would.
    let counts = |request: &Request, reply: Reply| reply.counted(request.raw.len() as u64 / 2);
    let server = Server::answering(move |request, index| match index {
        0 => counts(request, Reply::call("read_file", &json!({"path": "a.txt"}))),
        _ => counts(request, Reply::text("A.")),
    });
    let first =
        Run::task(&server, "task").args(["-o", "jsonl"]).file("a.txt", "a line\n".repeat(300)).run().success();
    let reported =
        first.events().of("message").iter().filter_map(|m| m["usage"]["input_tokens"].as_u64()).next_back();
    let reported = reported.expect("a reply");
    let again = Run::at(&first.place).args(["run", "--continue", "hello", "-o", "jsonl"]).server(&server);
    let started = again.run().success().events().of("request.started")[0].clone();
    let estimated = started["input_tokens"].as_u64().expect("a number");
    assert!((reported..reported + 100).contains(&estimated), "{estimated} after {reported}");
    assert_eq!(started["prefix_tokens"], reported);
}

#[test]
fn what_a_killed_write_left_behind_is_gone_after_the_next_start() {
    let server = Server::always(Reply::text("ok"));
    let first = Run::task(&server, "task").file("src/.agent-abcdefgh.tmp", "half").run().success();
    let place = &first.place;
    let temporary = place.workspace().join("src/.agent-abcdefgh.tmp");
    assert!(temporary.exists(), "nobody noted it");
    let notes = place.home().join(".local/state/agent/writes");
    fs::create_dir_all(&notes).expect("made");
    let path = temporary.canonicalize().expect("it exists");
    fs::write(notes.join("gone"), format!("{}\0", path.display())).expect("written");
    Run::at(place).args(["run", "again"]).server(&server).run().success();
    assert!(!temporary.exists() && !notes.join("gone").exists());
}

#[test]
fn a_write_is_noted_before_its_temporary_file_exists() {
    let call = Reply::call("write_file", &json!({"path": "new/a.txt", "content": "A\n"}));
    let server = Server::start([call, Reply::text("done")]);
    let output = Run::task(&server, "write").args(["--approve", "edits"]).run().success();
    let notes = fs::read_dir(output.place.home().join(".local/state/agent/writes")).expect("there are notes");
    let notes: Vec<_> =
        notes.map(|entry| fs::read_to_string(entry.expect("listed").path()).expect("text")).collect();
    let root = output.place.workspace().canonicalize().expect("it exists");
    let begins = format!("{}/new/.agent-", root.display());
    assert!(notes.len() == 1 && notes[0].starts_with(&begins) && notes[0].ends_with(".tmp\0"), "{notes:?}");
}
