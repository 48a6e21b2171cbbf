//! The command line itself: help, version, wrong usage, completions, the manual, `init`, `prompt`, the demo model.

use serde_json::Value;

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

#[test]
fn the_version_needs_nothing() {
    Run::new().arg("--version").run().success().stdout_has(env!("CARGO_PKG_VERSION"));
}

/// `INSTA_UPDATE=always cargo test` rewrites the snapshot; the difference is then part of the change.
#[test]
fn the_help_of_every_command() {
    insta::assert_snapshot!(help(&[]));
}

/// The help of a command, then that of each of its own commands.
fn help(command: &[&str]) -> String {
    let text = Run::new().args(command.iter().copied()).arg("--help").run().success().stdout;
    let (_, listed) = text.split_once("\nCommands:\n").unwrap_or_default();
    let names = listed.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let inner: String = names.map(|name| help(&[command, &[name]].concat())).collect();
    format!("$ agent {}\n{text}\n{inner}", [command, &["--help"]].concat().join(" "))
}

#[test]
fn wrong_usage_ends_with_2_and_a_reason() {
    for args in [
        vec!["--no-such-option"],
        vec!["run", "--output", "xml", "task"],
        vec!["run", "--max-turns", "many", "task"],
        vec!["run", "--max-time", "soon", "task"],
        vec!["run", "--approve", "maybe", "task"],
        vec!["run", "--set", "no-equals-sign", "task"],
        vec!["run", "--continue", "--ephemeral", "task"],
        vec!["no-such-command"],
        vec!["completions", "no-such-shell"],
    ] {
        let output = Run::new().args(args).run().exits(2).stdout_is("");
        assert!(!output.reason().is_empty(), "no reason given\n{}", output.shown());
    }
}

#[test]
fn a_mistyped_option_is_met_with_the_right_one() {
    Run::new().args(["run", "--max-turn", "3", "task"]).run().exits(2).stderr_has("--max-turns");
}

#[test]
fn a_missing_workspace_or_file_is_named() {
    let server = Server::start([]);
    Run::new().args(["-C", "not-there", "run", "task"]).server(&server).run().fails().stderr_has("not-there");
    Run::task(&server, "task").args(["-f", "not-there.txt"]).run().fails().stderr_has("not-there.txt");
    Run::new()
        .args(["--config", "not-there", "run", "task"])
        .server(&server)
        .run()
        .fails()
        .stderr_has("not-there");
    assert!(server.requests().is_empty(), "nothing is sent when the command line is wrong");
}

#[test]
fn the_manual_is_a_page_of_roff() {
    Run::new().arg("man").run().success().stdout_has(".TH").stdout_has("agent");
}

#[test]
fn init_writes_files_that_work_and_overwrites_nothing() {
    let first = Run::new().args(["init", "conf", "--all"]).file("conf/agent.yaml", "default_agent: default\n");
    let place = first.place();
    first.run().success();
    assert_eq!(place.read("conf/agent.yaml"), "default_agent: default\n", "init overwrote a file");
    for path in ["conf/models/default.yaml", "conf/agents/default.yaml"] {
        assert!(place.exists(path), "init did not write {path}");
    }
    Run::at(&place).args(["--config", "conf", "config", "check"]).env("OPENAI_API_KEY", "k").run().success();
    let server = Server::start([Reply::text("fine")]);
    let run = Run::at(&place).args(["--config", "conf", "run", "--ephemeral", "task"]).server(&server).run();
    run.success().stdout_is("fine\n");
}

#[test]
fn prompts_can_be_listed_shown_and_rendered() {
    Run::new().args(["prompt", "list"]).run().success().stdout_has("system").stdout_has("termination");
    Run::new().args(["prompt", "show", "system"]).run().success().stdout_has("{{");
    let rendered = Run::new().args(["prompt", "render", "system@production"]).run().success();
    assert!(!rendered.stdout.contains("{{") && !rendered.stdout.contains("{%"), "{}", rendered.shown());
    Run::new().args(["prompt", "show", "no-such-prompt"]).run().fails().stderr_has("no-such-prompt");
}

#[test]
fn the_demo_model_makes_a_real_run_without_key_network_terminal_or_approval() {
    let output = Run::new()
        .args(["run", "-m", "demo", "what is in this directory?"])
        .file("notes.txt", "some notes")
        .run()
        .success();
    assert!(!output.stdout.trim().is_empty(), "no answer\n{}", output.shown());
    assert!(
        format!("{}{}", output.stdout, output.stderr).contains("script"),
        "the run does not say that its replies are scripted\n{}",
        output.shown()
    );
}

#[test]
fn the_demo_run_uses_a_skill_reads_the_workspace_and_runs_a_command() {
    let output = Run::new()
        .args(["run", "-m", "demo", "-o", "jsonl", "look around"])
        .file("notes.txt", "some notes")
        .run()
        .success();
    let events = output.events();
    assert_eq!(events.one("run.started")["scripted"], true);
    let started = events.of("tool.started");
    let tools: Vec<&str> = started.iter().filter_map(|event| event["name"].as_str()).collect();
    for tool in ["load_skill", "list_dir", "read_file", "run_command"] {
        assert!(tools.contains(&tool), "the demo does not use {tool}: {tools:?}");
    }
    for event in events.of("tool.finished") {
        assert_eq!(event["status"], "ok", "{event}");
    }
}

#[test]
fn loader_paths_into_the_workspace_do_not_reach_commands() {
    // cargo sets such a path for whatever it runs.
    let demo = Run::new();
    let workspace = demo.place().workspace();
    let library = |path: &str| workspace.join(path).display().to_string();
    let path = format!("{}:/opt/lib:target/debug:", library("target/debug/deps"));
    demo.args(["run", "-m", "demo", "Show me around this workspace."])
        .env("LD_LIBRARY_PATH", path)
        .env("LD_PRELOAD", library("y.so"))
        .file("notes.txt", "some notes")
        .run()
        .success();
    let shown = Run::new()
        .args(["tool", "call", "run_command", r#"{"command": "env"}"#, "--approve", "all"])
        .args(["--set", "sandbox.mode=off", "--set", "sandbox.env=[LD_LIBRARY_PATH, LD_AUDIT, LD_BIND_NOW]"])
        .env("LD_LIBRARY_PATH", "/opt/lib:target/debug:")
        .env("LD_AUDIT", "./audit.so")
        .env("DYLD_LIBRARY_PATH", "target/debug")
        .env("LD_BIND_NOW", "1")
        .run()
        .success()
        .stdout_has("LD_LIBRARY_PATH=/opt/lib\n")
        .stdout_has("LD_BIND_NOW=1\n");
    assert!(!shown.stdout.contains("AUDIT") && !shown.stdout.contains("DYLD"), "{}", shown.shown());
}

#[test]
fn a_dry_run_prints_the_request_and_sends_nothing() {
    let server = Server::start([]);
    let output = Run::task(&server, "the task").args(["--dry-run"]).file("AGENTS.md", "Be brief.").run().success();
    let body: Value = output.json();
    let body = if body["messages"].is_array() { body } else { body["body"].clone() };
    assert_eq!(body["model"], "scripted-model", "{}", output.shown());
    assert_eq!(body["messages"][1]["content"], "the task", "{}", output.shown());
    assert!(body["tools"].as_array().is_some_and(|tools| tools.len() > 5), "{}", output.shown());
    assert!(server.requests().is_empty(), "a dry run sent a request");
    assert!(output.place.session_logs().is_empty(), "a dry run left a session behind");
}

#[test]
fn scripted_models_read_the_real_results_of_their_calls() {
    let script = r#"
name: offline
provider: scripted
script:
  - { when: { user_contains: hello }, text: "Hello {{ session.user_id }}." }
  - { tool_calls: [ { name: list_dir, arguments: { path: "." } } ] }
  - { text: "There are {{ results[-1].result.entries | length }} entries." }
"#;
    let run = |task: &str| {
        Run::new()
            .args(["run", "-m", "offline", task])
            .env("AGENT_USER", "Ada")
            .config("models/offline.yaml", script)
            .file("a.txt", "a")
            .file("b.txt", "b")
            .run()
            .success()
    };
    run("say hello").stdout_is("Hello Ada.\n");
    run("count").stdout_is("There are 2 entries.\n");
}

#[test]
fn a_scripted_error_ends_as_the_real_one_would() {
    for (status, code) in [(401, 4), (429, 6), (402, 6), (500, 5), (400, 5)] {
        let script = format!(
            "name: broken\nprovider: scripted\nretry: {{ attempts: 2, base_delay: 1ms, max_delay: 1ms }}\nscript:\n  \
             - error: {{ status: {status}, message: scripted trouble }}\n  \
             - error: {{ status: {status}, message: scripted trouble }}\n"
        );
        Run::new()
            .args(["run", "-m", "broken", "task"])
            .config("models/broken.yaml", &script)
            .run()
            .exits(code)
            .stdout_is("")
            .stderr_has("scripted trouble");
    }
}
