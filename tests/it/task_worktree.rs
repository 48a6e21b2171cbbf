//! Helpers with their own git worktree: their changes come back as a branch.

use std::process::Command;
use std::sync::{Arc, Barrier};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::lifeline::Lifeline;
use crate::output::Output;
use crate::reply::{Gate, Reply};
use crate::run::{Place, Run};
use crate::server::{Request, Server};

const CODER: &str = "description: Changes files.\napproval: all\nisolation: worktree\n";

fn is_coder(request: &Request) -> bool {
    request.system().starts_with("You are coder")
}

/// Runs git in the workspace; its output.
fn git(place: &Place, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "safe.directory=*"])
        .args(args)
        .current_dir(place.workspace())
        .env("HOME", place.home())
        .output()
        .expect("git can be run");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A workspace that is a repository with one commit and hooks that tell when they run.
fn repository() -> Arc<Place> {
    let place = Place::new();
    std::fs::write(place.workspace().join("a.txt"), "old\n").expect("written");
    git(&place, &["init", "-q", "-b", "main"]);
    git(&place, &["add", "."]);
    git(&place, &["commit", "-q", "-m", "first"]);
    for hook in ["pre-commit", "post-commit", "post-checkout", "reference-transaction"] {
        let path = place.workspace().join(".git/hooks").join(hook);
        let text = format!("#!/bin/sh\ntouch {}\nexit 1\n", place.workspace().join("hook-ran").display());
        std::fs::write(&path, text).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("ours");
    }
    place
}

fn run(place: &Arc<Place>, server: &Server) -> Run {
    let run = Run::at(place).args(["run", "task", "--approve", "all"]).server(server);
    run.config("agents/coder.yaml", CODER)
}

fn task(prompt: &str) -> (&'static str, String) {
    ("task", json!({ "agent": "coder", "prompt": prompt }).to_string())
}

/// The branch that a report names.
fn branch_of(report: &str) -> String {
    let named = report.split_once("on the branch ");
    let (_, rest) = named.unwrap_or_else(|| panic!("no branch is named: {report}"));
    rest.split(',').next().unwrap_or_default().to_owned()
}

/// Nothing is left of worktrees but the branches.
fn assert_tidy(place: &Place) {
    assert_eq!(git(place, &["worktree", "list"]).lines().count(), 1);
    let left = place.home().join(".cache/agent/worktrees");
    assert_eq!(std::fs::read_dir(left).expect("it was made").count(), 0);
    assert!(!place.exists("hook-ran"), "no hook has run");
}

#[test]
fn what_helpers_change_comes_back_as_branches_and_nothing_is_merged() {
    // Both write before either ends: each has a tree of its own.
    let both = Arc::new(Barrier::new(2));
    let server = Server::answering(move |request, _| match (is_coder(request), request.tool_results().len()) {
        (false, 0) => Reply::calls(&[task("one"), task("two")]),
        (true, 0) => Reply::calls(&[
            ("read_file", json!({ "path": "a.txt" }).to_string()),
            ("write_file", json!({ "path": "a.txt", "content": format!("{}\n", request.user()) }).to_string()),
        ]),
        (true, _) => {
            both.wait();
            Reply::text("changed")
        }
        (false, _) => Reply::text("done"),
    });
    let place = repository();
    run(&place, &server).run().success().stdout_is("done\n");
    let requests = server.requests();
    let reports = requests.last().expect("a request").tool_results();
    assert_eq!(place.read("a.txt"), "old\n");
    assert_eq!(git(&place, &["log", "--format=%s", "main"]), "first\n");
    assert_eq!(git(&place, &["branch", "--show-current"]), "main\n");
    for ((_, report), content) in reports.iter().zip(["one\n", "two\n"]) {
        let branch = branch_of(report);
        assert!(report.contains("not merged"), "{report}");
        assert_eq!(git(&place, &["show", &format!("{branch}:a.txt")]), content);
        assert_eq!(git(&place, &["log", "--format=%s", &format!("main..{branch}")]).lines().count(), 1);
    }
    assert_tidy(&place);
}

#[test]
fn a_helper_that_changes_nothing_leaves_no_branch() {
    let server = Server::answering(move |request, _| match (is_coder(request), request.tool_results().len()) {
        (false, 0) => Reply::calls(&[task("one")]),
        (true, _) => Reply::text("nothing to do"),
        (false, _) => Reply::text("done"),
    });
    let place = repository();
    run(&place, &server).run().success();
    assert_eq!(git(&place, &["branch", "--format=%(refname:short)"]), "main\n");
    assert_tidy(&place);
}

/// Stops a helper that has changed a file and runs a command.
fn stopped_in_the_middle(signal: Signal) -> (Arc<Place>, Output) {
    let place = repository();
    let server = Server::answering(move |request, _| {
        if is_coder(request) {
            Reply::call("run_command", &json!({ "command": "echo new > b.txt; echo begun; sleep 60" }))
        } else {
            Reply::calls(&[task("one")])
        }
    });
    let running = run(&place, &server).args(["-o", "jsonl"]).spawn();
    running.wait_stdout("\"chunk\":\"begun");
    running.signal(signal);
    (place, running.wait())
}

#[test]
fn a_helper_that_is_cancelled_leaves_no_worktree() {
    let place = repository();
    let lifeline = Lifeline::new(&place.workspace());
    let script = Lifeline::COMMAND.replace("alive", &place.workspace().join("alive").display().to_string());
    std::fs::write(place.workspace().join("wait.sh"), script).expect("written");
    git(&place, &["add", "wait.sh"]);
    git(&place, &["-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "second"]);
    let server = Server::answering(move |request, _| {
        if is_coder(request) {
            Reply::call("run_command", &json!({ "command": "bash wait.sh" }))
        } else {
            Reply::calls(&[task("one")])
        }
    });
    // A worktree is another workspace: outside the sandbox the command reaches this one.
    let running = run(&place, &server).args(["--set", "sandbox.mode=off"]).spawn();
    lifeline.wait_started();
    running.signal(Signal::SIGTERM);
    running.wait().exits(143);
    lifeline.wait_dead();
    assert_tidy(&place);
}

/// What is on the branch that a line names.
fn kept_file(place: &Place, line: &str) -> String {
    let (_, rest) = line.split_once("is on the branch ").unwrap_or_else(|| panic!("no branch is named: {line}"));
    let branch = rest.split(',').next().unwrap_or_default();
    git(place, &["show", &format!("{branch}:b.txt")])
}

#[test]
fn what_a_cancelled_helper_changed_is_on_a_branch() {
    let (place, output) = stopped_in_the_middle(Signal::SIGTERM);
    let output = output.exits(143).stdout_has("what coder#1 changed so far is on the branch agent/coder-");
    assert_eq!(kept_file(&place, &output.stdout), "new\n");
    assert_tidy(&place);
}

#[test]
fn what_a_killed_helper_changed_is_on_a_branch_after_the_next_start() {
    let (place, _) = stopped_in_the_middle(Signal::SIGKILL);
    let server = Server::start([Reply::text("hello")]);
    let next = Run::at(&place).args(["run", "hello"]).server(&server).run().success();
    let next = next.stderr_has("what coder changed before it was killed is on the branch agent/coder-");
    assert_eq!(kept_file(&place, &next.stderr), "new\n");
    assert_tidy(&place);
    let again = Run::at(&place).args(["run", "hello"]).server(&Server::start([Reply::text("hello")])).run();
    assert!(!again.success().stderr.contains("is on the branch"), "it is told once");
}

#[test]
fn what_a_killed_map_changed_is_on_a_branch_after_the_next_one() {
    let (place, gate) = (repository(), Gate::new());
    let held = gate.clone();
    let server = Server::answering(move |request, _| match request.tool_results().len() {
        0 => Reply::call("write_file", &json!({ "path": "b.txt", "content": "new\n" })),
        _ => Reply::text("done").gate(&held, 0),
    });
    let map = |input: &str| {
        let words = ["map", "--isolate", "worktree", "--approve", "edits", "{{ item }}"];
        Run::at(&place).args(words).server(&server).stdin(input)
    };
    let running = map("one\n").spawn();
    gate.reached();
    running.signal(Signal::SIGKILL);
    running.wait();
    let trial =
        Run::at(&place).args(["run", "hello", "--trial"]).server(&Server::start([Reply::text("hello")])).run();
    assert!(!trial.success().stderr.contains("is on the branch"), "a copy goes with its branches");
    let next = map("").run().success();
    let next = next.stderr_has("what map changed before it was killed is on the branch agent/map-");
    assert_eq!(kept_file(&place, &next.stderr), "new\n");
    assert_tidy(&place);
}

#[test]
fn the_worktree_of_a_running_helper_is_left_alone() {
    let place = repository();
    let gate = Gate::new();
    let (held, at) = (gate.clone(), Arc::clone(&place));
    let server = Server::answering(move |request, _| match (is_coder(request), request.tool_results().len()) {
        (false, 0) => Reply::calls(&[task("one")]),
        (true, 0) => Reply::call("write_file", &json!({ "path": "b.txt", "content": "new\n" })),
        (true, _) => Reply::text("changed").gate(&held, 0),
        (false, _) => Reply::text("done"),
    });
    let running = run(&at, &server).spawn();
    gate.reached();
    let other = Run::at(&place).args(["run", "hello"]).server(&Server::start([Reply::text("hello")])).run();
    assert!(!other.success().stderr.contains("on the branch"), "another process works there");
    gate.open();
    running.wait().success();
    let requests = server.requests();
    let report = requests.last().expect("a request").last_result().to_owned();
    assert_eq!(git(&place, &["show", &format!("{}:b.txt", branch_of(&report))]), "new\n");
    assert_tidy(&place);
}

#[test]
fn where_no_branch_could_be_kept_it_is_said() {
    let refused = |place: &Arc<Place>, words: &[&str], why: &str| {
        let server = Server::answering(move |request, _| match request.tool_results().len() {
            0 => Reply::calls(&[task("one")]),
            _ => Reply::text("done"),
        });
        run(place, &server).args(words.iter().copied()).run().success();
        let requests = server.requests();
        let report = requests.last().expect("a request").last_result();
        assert!(report.contains(why), "{report}");
    };
    let place = Place::new();
    refused(&place, &[], "is not the root of a git repository");
    git(&place, &["init", "-q"]);
    refused(&place, &[], "has no commit yet");
    git(&place, &["commit", "-q", "--allow-empty", "-m", "one"]);
    // Nothing of a trial reaches the repository, its branches neither.
    refused(&place, &["--trial"], "a copy that goes with its branches");
}

#[test]
fn a_filter_of_the_repository_does_not_choose_what_is_removed() {
    for is_user in [false, true] {
        let server =
            Server::answering(move |request, _| match (is_coder(request), request.tool_results().len()) {
                (false, 0) => Reply::calls(&[task("one")]),
                (true, 0) => {
                    Reply::call("write_file", &json!({ "path": "a.txt", "content": "new\n", "overwrite": true }))
                }
                (true, _) => Reply::text("changed"),
                (false, _) => Reply::text("done"),
            });
        let place = repository();
        let precious = place.home().join("precious");
        std::fs::create_dir(&precious).expect("made");
        std::fs::write(precious.join("kept"), "").expect("written");
        std::fs::write(place.workspace().join(".gitattributes"), "*.txt filter=evil\n").expect("written");
        let smudge = format!("sh -c 'echo gitdir: {} > .git; cat'", precious.display());
        git(&place, &["config", "filter.evil.smudge", &smudge]);
        git(&place, &["add", "."]);
        git(&place, &["-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "second"]);
        let run = run(&place, &server);
        if is_user { run.ordinary_user() } else { run }.run().success();
        assert!(precious.join("kept").exists(), "another directory was removed");
        assert_tidy(&place);
    }
}

#[test]
fn what_a_rule_denies_stays_denied_to_a_helper_in_a_worktree() {
    let place = repository();
    std::fs::write(place.workspace().join(".env"), "SECRET=1\n").expect("written");
    let root = place.workspace().display().to_string();
    let server = Server::answering(move |request, _| match (is_coder(request), request.tool_results().len()) {
        (false, 0) => Reply::calls(&[task("one")]),
        (true, 0) => Reply::calls(&[
            ("read_file", json!({ "path": format!("{root}/.env") }).to_string()),
            ("run_command", json!({ "command": format!("cat {root}/.e*") }).to_string()),
        ]),
        _ => Reply::text("done"),
    });
    let rule = "permissions:\n  rules:\n    - { deny: read_file, path: \"**/.env\" }\n";
    run(&place, &server).config("agent.yaml", rule).run();
    let requests = server.requests();
    let of_coder = requests.iter().filter(|request| is_coder(request)).flat_map(Request::tool_results);
    let results: Vec<String> = of_coder.map(|(_, result)| result.to_owned()).collect();
    assert!(results.len() >= 2 && results[0].contains("deny: read_file"), "{results:?}");
    assert!(results.iter().all(|result| !result.contains("SECRET")), "{results:?}");
}
