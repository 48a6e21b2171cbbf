//! Calls that run without asking, and calls when nobody can be asked.

use serde_json::{Value, json};

use crate::kernel::has_landlock;
use crate::output::Output;
use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Server, assert_answered_once};

/// One call under `--approve MODE`; the output, and what the model read.
fn approved(mode: &str, tool: &str, arguments: &Value) -> (Output, String) {
    let server = Server::start([Reply::call(tool, arguments), Reply::text("done")]);
    let output = Run::task(&server, "task").args(["--approve", mode, "-o", "jsonl"]).file("a.txt", "a\n").run();
    let requests = server.requests();
    assert_answered_once(&requests[1]);
    (output, requests[1].last_result().to_owned())
}

#[test]
fn the_table_of_modes() {
    let write = json!({"path": "new.txt", "content": "x\n"});
    let outside = json!({"path": "../outside.txt", "content": "x\n"});
    let touch = json!({"command": "touch touched.txt"});
    let protect = json!({"command": "touch AGENTS.md"});
    let read = json!({"path": "a.txt"});
    #[rustfmt::skip]
    let table = [
        ("ask",   "read_file",   &read,    0, None),
        ("ask",   "write_file",  &write,   7, Some("new.txt")),
        ("ask",   "run_command", &touch,   7, Some("touched.txt")),
        ("edits", "write_file",  &write,   0, Some("new.txt")),
        ("edits", "write_file",  &outside, 7, Some("../outside.txt")),
        ("edits", "run_command", &touch,   0, Some("touched.txt")),
        ("edits", "run_command", &protect, 7, Some("AGENTS.md")),
        ("all",   "write_file",  &write,   0, Some("new.txt")),
        ("all",   "run_command", &touch,   0, Some("touched.txt")),
        ("all",   "run_command", &protect, 7, Some("AGENTS.md")),
        ("never", "read_file",   &read,    0, None),
        ("never", "write_file",  &write,   0, None),
        ("never", "run_command", &touch,   0, None),
    ];
    for (mode, tool, arguments, code, made) in table {
        let (output, told) = approved(mode, tool, arguments);
        assert!(output.code == code, "--approve {mode}, {tool} {arguments}: expected {code}\n{}", output.shown());
        // A refusal by the mode itself was the caller's choice: the run did as it was told.
        let refused = code == 7 || (mode == "never" && tool != "read_file");
        if let Some(path) = made {
            assert_eq!(output.place.exists(path), !refused, "--approve {mode}, {tool}: {path}");
        }
        let events = output.events();
        let status = if refused { "denied" } else { "ok" };
        assert_eq!(events.one("tool.finished")["status"], status, "--approve {mode}, {tool}");
        if refused {
            assert_eq!(events.one("run.completed")["denied"], 1);
            assert!(!told.is_empty(), "the model is told why");
        }
    }
}

#[test]
fn a_denial_by_nobody_is_an_event_with_its_reason() {
    let (output, _) = approved("ask", "write_file", &json!({"path": "new.txt", "content": "x"}));
    let events = output.events();
    assert_eq!(events.one("permission.requested")["name"], "write_file");
    let resolved = events.one("permission.resolved");
    assert_eq!((resolved["verdict"].clone(), resolved["by"].clone()), (json!("denied"), json!("nobody")));
}

#[test]
fn approval_in_the_users_configuration_holds_and_the_flag_beats_it() {
    let run = |extra: &[&str]| {
        let write = Reply::call("write_file", &json!({"path": "new.txt", "content": "x"}));
        let server = Server::start([write, Reply::text("done")]);
        let run = Run::task(&server, "task").args(extra.iter().copied());
        run.config("agents/default.yaml", "approval: edits\n").run()
    };
    assert!(run(&[]).success().place.exists("new.txt"));
    assert!(!run(&["--approve", "ask"]).exits(7).place.exists("new.txt"));
}

#[test]
fn a_command_that_usually_only_reads_needs_no_approval() {
    if !has_landlock() {
        return;
    }
    for mode in ["ask", "edits", "never"] {
        let (output, told) = approved(mode, "run_command", &json!({"command": "for f in *; do cat $f; done"}));
        assert_eq!(output.code, 0, "{}", output.shown());
        assert!(told.contains("exit 0\na"), "{told}");
    }
    for command in
        ["cat a.txt > b.txt", "cat a.txt; rm a.txt", "cat $(rm a.txt)", "find . -delete", "cat ../../secret"]
    {
        let (output, _) = approved("ask", "run_command", &json!({"command": command}));
        assert_eq!(output.code, 7, "`{command}` is not reading alone\n{}", output.shown());
    }
}

/// A line that only reads and says that it could not write.
const COULD_NOT_WRITE: &str = "printf 'x: Read-only file system\\n'; cat nothing";

#[test]
fn what_reads_and_could_not_write_is_asked_about_again() {
    if !has_landlock() {
        return;
    }
    let call = || Reply::call("run_command", &json!({ "command": COULD_NOT_WRITE }));
    let server = Server::start([call(), call(), Reply::text("Both are done.")]);
    let mut terminal = Terminal::start(&Run::new().arg("chat").server(&server));
    terminal.line("go");
    terminal.wait_for("and could not write; run it again");
    terminal.wait_for("Allow?");
    terminal.tell("not there");
    terminal.wait_until("the second question", |screen| {
        screen.matches("and could not write; run it again").count() == 2 && screen.contains("(y or n")
    });
    terminal.line("y");
    terminal.wait_for("Both are done.");
    let requests = server.requests();
    let refused = requests[1].last_output();
    assert!(refused.contains("only reads: it could write only in $TMPDIR"), "{refused}");
    assert!(refused.contains("It was not run again with the right to write") && refused.contains("not there"));
    let allowed = requests[2].last_output();
    assert!(!allowed.contains("only reads") && !allowed.contains("It was not run again"), "{allowed}");
}

#[test]
fn what_reads_and_could_not_write_is_denied_where_nobody_can_be_asked() {
    if !has_landlock() {
        return;
    }
    for (mode, code, said) in [("ask", 7, "nobody is there to allow it"), ("never", 0, "approval mode `never`")] {
        let (output, told) = approved(mode, "run_command", &json!({ "command": COULD_NOT_WRITE }));
        assert_eq!(output.code, code, "{}", output.shown());
        assert!(told.contains("It was not run again with the right to write") && told.contains(said), "{told}");
    }
    // Where it may write from the start, the words are only words.
    let (output, told) = approved("all", "run_command", &json!({ "command": COULD_NOT_WRITE }));
    assert!(output.code == 0 && !told.contains("It was not run again"), "{told}");
}

#[test]
fn what_a_program_says_is_no_reason_to_leave_the_sandbox() {
    if !has_landlock() {
        return;
    }
    let script = "#!/bin/sh\necho 'open /x: Permission denied' >&2\nexit 1\n";
    let lines = ["sh build.sh", "sh build.sh ../outside", "sh build.sh; curl -V; echo x >> ../outside"];
    let calls = lines.map(|line| Reply::call("run_command", &json!({ "command": line })));
    let server = Server::start(calls.into_iter().chain([Reply::text("Done.")]));
    let run = Run::new().arg("chat").args(["--approve", "all"]).file("build.sh", script).server(&server);
    let mut terminal = Terminal::start(&run);
    terminal.line("go");
    terminal.wait_for("Done.");
    assert!(!terminal.screen().contains("Allow?"), "{}", terminal.screen());
    for request in &server.requests()[1..] {
        assert!(request.last_output().contains("the sandbox may be the reason"), "{}", request.last_output());
    }
}

#[test]
fn a_page_is_asked_about_by_its_host_and_shown_whole() {
    let web = Server::always(Reply::body(200, "text/plain", "page".to_owned()));
    let fetch = |path: &str| Reply::call("fetch_url", &json!({"url": format!("{}/{path}", web.url())}));
    let server = Server::start([fetch("a?long=query"), fetch("b"), fetch("c"), Reply::text("Done.")]);
    let run = Run::new().arg("chat").server(&server).config("agent.yaml", "fetch: { allow: [127.0.0.1] }\n");
    let mut terminal = Terminal::start(&run.config("agents/default.yaml", "tools: [fetch_url]\n"));
    terminal.line("go");
    terminal.wait_for("it sends a request to 127.0.0.1:");
    terminal.wait_for("a?long=query");
    terminal.wait_for("Always: ");
    terminal.line("y");
    // The page has entered the conversation: what is granted from here on holds.
    terminal.wait_for("has entered this conversation");
    terminal.wait_until("the second question", |screen| {
        screen.contains("Allow? Yes, once") && screen.contains("(y or n")
    });
    terminal.pick("Always");
    terminal.wait_for("Done.");
    assert_eq!(web.requests().len(), 3, "the host is allowed for the session");
}

#[test]
fn nobody_is_asked_and_ask_user_is_not_offered_without_a_person() {
    let server = Server::start([Reply::text("done")]);
    Run::task(&server, "task").run().success();
    assert!(!server.only_request().tool_names().contains(&"ask_user"));
}

/// One call under these settings; the output, and what the model read.
fn under(settings: &str, mode: &str, tool: &str, arguments: &Value) -> (Output, String) {
    let server = Server::start([Reply::call(tool, arguments), Reply::text("done")]);
    let run = Run::task(&server, "task").args(["--approve", mode, "-o", "jsonl"]).file("a.txt", "a\n");
    let output = run.file("secrets/key", "s3cret\n").config("agent.yaml", settings).run();
    let told = server.requests()[1].last_result().to_owned();
    (output, told)
}

#[test]
fn rules_decide_and_the_events_and_the_model_say_so() {
    let settings = "permissions:\n  rules:\n    - { deny: \"*\", path: \"secrets/**\" }\n    \
                    - { ask: run_command, command: [touch, asked] }\n    \
                    - { allow: run_command, command: [touch, \"*\"] }\n";
    #[rustfmt::skip]
    let table = [
        ("all", "read_file",   json!({"path": "secrets/key"}),        0, "denied",  "rule"),
        ("all", "write_file",  json!({"path": "secrets/new", "content": "x"}), 0, "denied",  "rule"),
        ("all", "run_command", json!({"command": "echo x > secrets/new"}),     0, "denied",  "rule"),
        ("all", "run_command", json!({"command": "touch asked"}),     7, "denied",  "nobody"),
        ("ask", "run_command", json!({"command": "touch allowed && touch too | cat"}), 0, "allowed", "rule"),
        ("ask", "run_command", json!({"command": "touch x; rm x"}),   7, "denied",  "nobody"),
        ("never", "run_command", json!({"command": "rm a.txt"}),      0, "denied",  "policy"),
    ];
    for (mode, tool, arguments, code, verdict, by) in table {
        let (output, told) = under(settings, mode, tool, &arguments);
        assert_eq!(output.code, code, "{tool} {arguments}\n{}", output.shown());
        let events = output.events();
        let resolved = events.one("permission.resolved");
        assert_eq!(
            (resolved["verdict"].as_str(), resolved["by"].as_str()),
            (Some(verdict), Some(by)),
            "{arguments}"
        );
        assert_eq!(told.contains("deny: *, path: secrets/**"), by == "rule" && verdict == "denied", "{told}");
        assert!(!output.place.exists("secrets/new") && !output.place.exists("x") && !told.contains("s3cret"));
        assert!(output.place.exists("a.txt"));
        if by == "nobody" && arguments["command"] == "touch asked" {
            let why = events.one("permission.requested")["why"].as_str().unwrap_or_default().to_owned();
            assert!(why.contains("ask: run_command, command: [touch, asked]"), "{why}");
        }
    }
}

#[test]
fn a_tool_that_would_be_denied_in_every_case_is_not_offered_and_the_model_is_told() {
    let request = |args: &[&str], settings: &str| {
        let server = Server::start([Reply::text("done")]);
        let run = Run::task(&server, "task").config("agent.yaml", settings).args(args.iter().copied());
        run.run().success();
        server.only_request()
    };
    for mode in ["ask", "never"] {
        let asked = request(&["--approve", mode], "");
        assert!(
            !asked.tool_names().contains(&"write_file") && asked.tool_names().contains(&"run_command"),
            "{mode}"
        );
        assert!(asked.system().contains("what changes something is refused"), "{}", asked.system());
    }
    let allowed = "permissions: { rules: [ { allow: write_file, path: \"notes/**\" } ] }\n";
    let allowed = request(&["--approve", "ask"], allowed);
    assert!(allowed.tool_names().contains(&"write_file") && !allowed.tool_names().contains(&"edit_file"));
    let denied = request(&["--approve", "all"], "permissions: { rules: [ { deny: run_command } ] }\n");
    assert!(denied.tool_names().contains(&"write_file") && !denied.tool_names().contains(&"run_command"));
    assert!(denied.system().contains("so does almost everything else"), "{}", denied.system());
}

#[test]
fn a_tool_above_the_level_is_not_shown() {
    let names = |settings: &str, agent: &str| {
        let server = Server::start([Reply::text("done")]);
        let run = Run::task(&server, "task").config("agent.yaml", settings).config("agents/default.yaml", agent);
        run.args(["--approve", "edits"]).run().success();
        server.only_request().tool_names().iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
    };
    let read = "permissions: { max: read }\n";
    let all = names("", "");
    assert!(all.contains(&"write_file".to_owned()));
    let shown = names(read, "");
    assert!(shown.contains(&"read_file".to_owned()));
    assert!(
        !shown.iter().any(|name| ["write_file", "edit_file", "run_command"].contains(&name.as_str())),
        "{shown:?}"
    );
    assert_eq!(names("", read), shown, "an agent's own");
    assert_eq!(names(read, "permissions: { max: admin }\n"), all, "beats the settings'");
}

#[test]
fn a_rule_about_a_tool_that_does_not_exist_is_a_mistake() {
    let rule = "permissions:\n  rules: [ { deny: write_fiel } ]\n";
    let check = Run::new().args(["config", "check"]).config("agent.yaml", rule).env("OPENAI_API_KEY", "k").run();
    check.exits(3).stderr_has("agent.yaml:2:20").stderr_has("write_file");
}

#[test]
fn a_rule_that_would_mean_nothing_stops_the_run() {
    #[rustfmt::skip]
    let table = [
        ("{ deny: write_fiel }",                       "agent.yaml:2:20", "did you mean `write_file`"),
        ("{ deny: \"write_fiel*\" }",                  "agent.yaml:2:20", "there is no tool `write_fiel*`"),
        ("{ allow: run_command, comand: [ls] }",       "agent.yaml:2:",   "command"),
        ("{ deny: run_command, ask: run_command }",    "agent.yaml:2:",   "a rule has one of"),
        ("{ allow: run_command, command: cargo }",     "agent.yaml:2:",   "list"),
        ("{ deny: files__delete }",                    "",                ""),
        ("{ deny: mine }",                             "",                ""),
    ];
    for (rule, place, said) in table {
        let server = Server::start([Reply::text("done")]);
        let settings = format!("permissions:\n  rules: [ {rule} ]\n");
        let run = Run::task(&server, "task").config("agent.yaml", &settings);
        let output = run.config("tools/mine.yaml", "description: Mine.\ncommand: [echo]\n").run();
        match said {
            "" => drop(output.success()),
            said => drop(output.exits(3).stderr_has(place).stderr_has(said)),
        }
    }
}

#[test]
fn always_holds_for_the_session_and_for_no_more_than_it_said() {
    let touch = |path: &str| Reply::call("run_command", &json!({ "command": format!("touch {path}") }));
    let server = Server::start([
        touch("one"),
        touch("one"),
        touch("two"),
        Reply::text("First."),
        touch("one"),
        Reply::text("Second."),
    ]);
    let run = Run::new().server(&server);
    let place = run.place();
    let mut terminal = Terminal::start(&run);
    terminal.line("go");
    terminal.wait_for("Always: run_command `touch one`");
    terminal.wait_for("Always: ");
    terminal.pick("Always");
    // The second call of the same words is not asked about; the third is another.
    // Text typed before the question appears does not answer it.
    terminal.wait_until("the second question", |screen| {
        screen.contains("Allow? Always: ") && screen.contains("(y or n")
    });
    terminal.line("n");
    terminal.wait_for("First.");
    terminal.line("again");
    terminal.wait_for("Second.");
    assert!(place.exists("one") && !place.exists("two"));
    assert!(server.requests()[3].last_result().contains("did not allow"));
}

#[test]
fn in_a_run_a_person_may_say_always_too() {
    let touch = || Reply::call("run_command", &json!({"command": "touch one"}));
    let server = Server::start([touch(), touch(), Reply::text("Done.")]);
    let run = Run::task(&server, "task");
    let place = run.place();
    let mut terminal = Terminal::start(&run);
    terminal.wait_for("Always: ");
    terminal.pick("Always");
    terminal.wait_for("Done.");
    assert_eq!(terminal.exit_code(), 0);
    assert!(place.exists("one"));
}
