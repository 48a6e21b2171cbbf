//! Servers of tools, by the Model Context Protocol: what models are sent of them, what their calls may do, and what
//! becomes of them when they misbehave. The server is `tests/examples/tool_server.rs`.

use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::{Act, Reply};
use crate::run::{Place, Run};
use crate::server::{Request, Server};

/// The program of the server.
pub fn program() -> String {
    let agent = PathBuf::from(env!("CARGO_BIN_EXE_agent"));
    let path = agent.parent().expect("a directory").join("examples/tool_server");
    assert!(path.exists(), "cargo test builds the examples");
    path.to_str().expect("text").to_owned()
}

/// The file of a server with these words as arguments.
pub fn file(words: &[&str], more: &str) -> String {
    let line: Vec<String> =
        std::iter::once(program()).chain(words.iter().map(|word| (*word).to_owned())).collect();
    format!("command: {}\n{more}", json!(line))
}

/// A run with one call of a server's tool, and the requests.
pub fn call(file: &str, args: &[&str], name: &str, arguments: &Value) -> (Output, Vec<Request>) {
    let server = Server::start([Reply::call(name, arguments), Reply::text("done")]);
    let run = Run::task(&server, "task").args(["-o", "jsonl"]).args(args.iter().copied());
    (run.config("mcp/t.yaml", file).run(), server.requests())
}

/// The result of that call, as the model read it.
pub fn result_of(file: &str, args: &[&str], name: &str, arguments: &Value) -> String {
    let (output, requests) = call(file, args, name, arguments);
    assert_eq!(requests.len(), 2, "{}", output.shown());
    requests[1].last_result().to_owned()
}

#[test]
fn the_tools_of_a_server_are_sent_with_legal_names_in_order_and_can_be_called() {
    for words in [&[][..], &["old"], &["new"], &["banner"]] {
        let few = file(words, "tools: [echo, shout, wipe, '*odd*']");
        let (output, requests) = call(&few, &["--approve", "all"], "t__shout", &json!({"text": "hi 中"}));
        output.success();
        let names = requests[0].tool_names();
        assert!(names.is_sorted(), "{names:?}");
        for name in ["t__echo", "t__wipe", "find_tools", "call_tool"] {
            assert!(names.contains(&name), "{name} of {names:?}");
        }
        let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(names.iter().all(|name| name.len() <= 64 && name.chars().all(is_legal)), "{names:?}");
        assert!(requests[1].last_result().contains("HI 中"), "{words:?}: {}", requests[1].last_result());
    }
}

#[test]
fn a_call_asks_unless_the_file_allows_it_and_what_destroys_asks_always() {
    #[rustfmt::skip]
    let table = [
        ("t__echo", "",                   "ask",   7),
        ("t__echo", "",                   "edits", 7),
        ("t__echo", "",                   "all",   0),
        ("t__shout", "",                  "ask",   7),
        ("t__echo", "permission: allow",  "ask",   0),
        ("t__wipe", "permission: allow",  "ask",   7),
    ];
    for (tool, more, mode, code) in table {
        let arguments = json!({"text": "x"});
        let (output, _) = call(&file(&[], more), &["--approve", mode], tool, &arguments);
        assert_eq!(output.code, code, "{tool} {more} --approve {mode}: {}", output.shown());
    }
}

#[test]
fn results_are_shown_for_what_they_are() {
    let all = &["--approve", "all"][..];
    let result = |tool: &str| result_of(&file(&[], ""), all, tool, &json!({}));
    assert!(result("t__sum").contains(r#"{"sum":3}"#));
    assert!(result("t__fail").contains("status: error") && result("t__fail").contains("the disk is full"));
    assert!(result("t__lie").contains("broke the schema of its own result"));
    assert!(result("t__far").contains("far"), "a schema that is elsewhere is not fetched, and checks nothing");
    let variables = result("t__variables");
    assert!(!variables.contains("OPENAI_API_KEY") && variables.contains("PATH="), "{variables}");
}

#[test]
fn variables_are_those_of_the_file() {
    let file = file(&[], "env: { LEVEL: info, OWN_TOKEN: \"{{ env.SECRET_TOKEN }}\" }");
    let server = Server::start([Reply::call("t__variables", &json!({})), Reply::text("done")]);
    let run = Run::task(&server, "task").args(["--approve", "all"]).env("SECRET_TOKEN", "sesame-4711-opensesame");
    run.config("mcp/t.yaml", &file).run().success();
    let requests = server.requests();
    let result = requests[1].last_result();
    assert!(result.contains("LEVEL=info") && !result.contains("SECRET_TOKEN="), "{result}");
    assert!(result.contains("OWN_TOKEN=") && !result.contains("sesame-4711"), "the server has it, nobody sees it");
}

#[test]
fn the_next_session_begins_with_the_same_bytes() {
    let place = Place::new();
    let few = |words: &[&str]| file(words, "tools: [echo, shout]");
    let first = |words: &[&str]| {
        let server = Server::start([Reply::text("done")]);
        Run::at(&place).server(&server).args(["run", "task"]).config("mcp/t.yaml", &few(words)).run().success();
        server.requests()[0].body["tools"].to_string()
    };
    let known = first(&[]);
    assert!(known.contains("t__echo"), "{known}");
    assert_eq!(first(&[]), known);
}

#[test]
fn tools_that_come_late_are_found_and_called() {
    let place = Place::new();
    let gate = place.home().join("gate");
    mkfifo(&gate, Mode::S_IRWXU).expect("a pipe");
    let word = format!("gate={}", gate.display());
    // The server begins once the first request was sent.
    let server = Server::answering(move |_, number| match number {
        0 => {
            let gate = gate.clone();
            std::thread::spawn(move || std::fs::write(gate, "go"));
            Reply::call("find_tools", &json!({"query": "t__echo"}))
        }
        1 => Reply::call("call_tool", &json!({"name": "t__echo", "arguments": {"text": "late"}})),
        _ => Reply::text("done"),
    });
    let run = Run::at(&place).server(&server).args(["run", "task", "--approve", "all"]);
    run.config("mcp/t.yaml", &file(&[&word], "")).run().success();
    let requests = server.requests();
    assert!(
        requests[0].system().contains("t__*: the tools of a server that is not up yet"),
        "{}",
        requests[0].system()
    );
    assert!(requests[1].last_result().contains("t__echo: Says the text."), "{}", requests[1].last_result());
    assert!(requests[2].last_result().contains("late"), "{}", requests[2].last_result());
    assert_eq!(requests[0].body["tools"], requests[2].body["tools"], "the prefix stays");
}

#[test]
fn a_tool_that_a_server_gets_meanwhile_is_found_and_called() {
    for words in [&["old"], &["new"]] {
        let server = Server::start([
            Reply::call("t__grow", &json!({})),
            Reply::call("t__echo", &json!({"text": "meanwhile"})),
            Reply::call("find_tools", &json!({"query": "t__grown"})),
            Reply::call("call_tool", &json!({"name": "t__grown", "arguments": {}})),
            Reply::text("done"),
        ]);
        let few = file(words, "permission: allow\n");
        Run::task(&server, "task").args(["--approve", "all"]).config("mcp/t.yaml", &few).run().success();
        let requests = server.requests();
        assert!(
            requests[3].last_result().contains("t__grown: Is new."),
            "{words:?}: {}",
            requests[3].last_result()
        );
        assert!(requests[4].last_result().contains("the new one"), "{words:?}: {}", requests[4].last_result());
        assert_eq!(requests[0].body["tools"], requests[4].body["tools"], "the prefix stays");
    }
}

#[test]
fn of_many_tools_the_servers_are_listed() {
    let server =
        Server::start([Reply::call("find_tools", &json!({"query": "work number 77"})), Reply::text("done")]);
    Run::task(&server, "task").config("mcp/t.yaml", &file(&["many=1000"], "")).run().success();
    let requests = server.requests();
    assert!(!requests[0].tool_names().iter().any(|name| name.starts_with("t__")));
    assert!(requests[0].system().contains("t__*: 1017 tools of the server `t`"), "{}", requests[0].system());
    assert!(requests[1].last_result().contains("t__tool_77: "), "{}", requests[1].last_result());
}

#[test]
fn a_definition_that_changed_asks_again_and_shows_the_difference() {
    let place = Place::new();
    let words = place.home().join("words");
    // The same command line, so it is the same server, which reads its words from a file.
    let script = format!("exec '{}' $(cat '{}')", program(), words.display());
    let changing = format!("command: {}\npermission: allow\ntools: [echo]\n", json!(["sh", "-c", script]));
    let run = |words_now: &str, replies: Vec<Reply>| {
        std::fs::write(&words, words_now).expect("written");
        let server = Server::start(replies);
        let run = Run::at(&place).server(&server).args(["run", "task"]).config("mcp/t.yaml", &changing);
        (run.run(), server.requests())
    };
    let say = || Reply::call("t__echo", &json!({"text": "hi"}));
    let (output, requests) = run("", vec![say(), Reply::text("done")]);
    assert_eq!(output.code, 0, "{}", output.shown());
    assert!(requests[1].last_result().contains("hi"));
    let (output, requests) = run("changed", vec![say(), say(), Reply::text("done")]);
    // The server may be up before the first call is judged, or after it.
    let (first, second) = (requests[1].last_result(), requests[2].last_result());
    let is_refused =
        |result: &str| result.contains("its server describes it otherwise than when it was last allowed");
    let is_shown = first.contains("+  \"description\": \"Sends the text to evil.example.");
    assert!(is_shown || is_refused(first), "{first}");
    assert!(is_refused(second), "{second}");
    assert_eq!(output.code, 7, "{}", output.shown());
    assert!(requests[0].body["tools"].to_string().contains("Says the text."), "what was allowed is what is sent");
}

#[test]
fn a_server_that_fails_is_one_line_and_the_turn_goes_on() {
    let all = &["--approve", "all"][..];
    let died = result_of(&file(&["dies"], ""), all, "t__echo", &json!({"text": "x"}));
    assert!(died.contains("went away during the call") && died.contains("out of memory"), "{died}");
    for (text, why) in [
        ("command: [no-such-program-here]".to_owned(), "cannot be started: "),
        ("command: [no-such-program-here]\nsandbox: {}".to_owned(), "cannot be started: there is no program"),
        ("command: [sh, -c, 'echo boom >&2; exit 3']".to_owned(), "ended with code 3 before it answered: boom"),
        (file(&["circle"], ""), "in a circle"),
        (file(&["many=3000"], ""), "more than 2000 tools"),
        ("url: http://127.0.0.1:9/mcp".to_owned(), "cannot be reached"),
    ] {
        let checked = Run::new().args(["mcp", "check"]).config("mcp/t.yaml", &text).run();
        assert_eq!(checked.code, 11, "{}", checked.shown());
        assert!(checked.stdout.contains(why), "{}", checked.shown());
        let called = Run::new().args(["mcp", "call", "t__echo", "{}"]).config("mcp/t.yaml", &text).run();
        called.exits(11).reason_has(why);
        let server = Server::start([Reply::text("done")]);
        Run::task(&server, "task").config("mcp/t.yaml", &text).run().success();
    }
}

#[test]
fn a_server_inside_the_walls_writes_only_where_commands_may() {
    let walls = file(&[], "sandbox: { write: [], network: [] }");
    let write = |to: &str| result_of(&walls, &["--approve", "all"], "t__write", &json!({"to": to}));
    assert!(write("made.txt").contains("written"));
    assert!(write("/usr/made.txt").contains("not written"));
}

#[test]
fn a_server_ends_with_the_agent_whatever_ends_that() {
    let server = Server::start([Reply::call("t__echo", &json!({"text": "x"})), Reply::nothing(Act::Hang)]);
    let run = Run::task(&server, "task").args(["--approve", "all"]).config("mcp/t.yaml", &file(&["alone"], ""));
    let running = run.spawn();
    running.wait_stderr("t__echo");
    let servers = || {
        let listed = Command::new("pgrep").args(["-f", "tool_server alone"]).output().expect("pgrep");
        String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let before = servers();
    assert!(!before.is_empty());
    running.signal(Signal::SIGKILL);
    running.wait();
    for process in before {
        let wait = format!("while grep -q '^State:.[RSD]' /proc/{process}/status 2>/dev/null; do :; done");
        let ended = Command::new("timeout").args(["20", "sh", "-c", &wait]).status().expect("timeout");
        assert!(ended.success(), "{process} still runs");
    }
}

#[test]
fn what_a_workspace_brings_is_used_only_with_trust_and_gets_no_secret() {
    let servers = json!({ "mcpServers": { "t": {
        "command": program(), "args": ["${WORD:-old}"], "env": { "KEY": "${MY_TOKEN}", "LEVEL": "${LEVEL}" }
    } } });
    let run = |trust: &[&str]| {
        let server = Server::start([Reply::call("t__variables", &json!({})), Reply::text("done")]);
        let run = Run::task(&server, "task").args(["--approve", "all"]).args(trust.iter().copied());
        let run =
            run.file(".mcp.json", servers.to_string()).env("MY_TOKEN", "sesame-open-1234").env("LEVEL", "high");
        (run.run().success(), server.requests())
    };
    let (output, requests) = run(&[]);
    assert!(output.stderr.contains(".mcp.json is not trusted and was left out"), "{}", output.shown());
    assert!(
        requests[1].last_result().contains("There is no tool `t__variables`"),
        "{}",
        requests[1].last_result()
    );
    let (output, requests) = run(&["--trust"]);
    assert!(output.stderr.contains("`MY_TOKEN` looks like a secret"), "{}", output.shown());
    let result = requests[1].last_result();
    assert!(result.contains("LEVEL=high") && result.lines().any(|line| line == "KEY="), "{result}");
}

#[test]
fn a_server_goes_on_when_the_agent_of_a_chat_changes() {
    let process = || Reply::call("t__process", &json!({}));
    let server = Server::start([process(), Reply::text("one"), process(), Reply::text("two")]);
    let lines = "first\n/set limits.max_turns=30\nsecond\n";
    let run = Run::new().server(&server).args(["chat", "--approve", "all"]).stdin(lines);
    run.config("mcp/t.yaml", &file(&[], "")).run().success();
    let requests = server.requests();
    let said = |request: &Request| {
        let result = request.last_result();
        result[result.find("process ").expect("it says so")..].to_owned()
    };
    assert_eq!(said(&requests[1]), said(&requests[3]));
}

#[test]
fn an_agent_gets_only_the_tools_that_its_list_takes() {
    let place = Place::new();
    let gate = place.home().join("gate");
    mkfifo(&gate, Mode::S_IRWXU).expect("a pipe");
    for words in [String::new(), format!("gate={}", gate.display())] {
        let opened = gate.clone();
        let server = Server::answering(move |_, number| match number {
            0 => {
                let opened = opened.clone();
                // A server that nobody started does not open it.
                std::thread::spawn(move || std::fs::write(opened, "go"));
                Reply::call("call_tool", &json!({"name": "t__echo", "arguments": {"text": "hi"}}))
            }
            1 => Reply::call("t__echo", &json!({"text": "hi"})),
            _ => Reply::text("done"),
        });
        let run = Run::at(&place).server(&server).args(["run", "task", "--approve", "all"]);
        let run = run.config("agents/default.yaml", "tools: [read_file, list_dir]\n");
        run.config("mcp/t.yaml", &file(&[&words], "")).run().success();
        let requests = server.requests();
        assert_eq!(requests[0].tool_names(), ["list_dir", "read_file"]);
        for request in &requests[1..] {
            assert!(request.last_result().contains("There is no tool"), "{}", request.last_result());
        }
    }
}

#[test]
fn a_person_takes_resources_and_prompts_of_a_server_by_their_names() {
    for words in [&["old"][..], &["new"]] {
        let server = Server::always(Reply::text("Fine."));
        let chat = |line: &str| {
            let run = Run::new().server(&server).arg("chat").config("mcp/t.yaml", &file(words, ""));
            run.stdin(format!("{line}\n")).run()
        };
        chat("What is on @t:note://today?").success();
        let request = server.requests().pop().expect("a request");
        assert!(request.user().starts_with("What is on"), "{}", request.user());
        assert!(request.user().contains("Buy milk."), "{}", request.user());
        chat("/t:tidy desk  very well ").success();
        assert_eq!(server.requests().pop().expect("a request").user(), "Tidy desk very well.");
        let asked = server.requests().len();
        for (line, why) in
            [("/t:none", "there is no prompt `none`; it has tidy"), ("/x:tidy", "there is no server `x` (t)")]
        {
            chat(line).stderr_has(why);
        }
        assert_eq!(server.requests().len(), asked, "nothing was sent");
        chat("Read @t:note://gone, @t:note://long and @x:note://today")
            .success()
            .stderr_has("there is no such note");
        let request = server.requests().pop().expect("a request");
        assert_eq!(request.user(), "Read @t:note://gone, @t:note://long and @x:note://today");
    }
}

#[test]
fn a_server_that_fails_is_told_once_and_no_key_is_shown() {
    let place = Place::new();
    let words = r#"command: [sh, -c, "echo no database for $0 >&2; exit 3", "{{ env.MY_API_TOKEN }}"]"#;
    let server = Server::start([Reply::call("todo", &json!({ "items": [] })), Reply::text("done")]);
    let at = |server: &Server| Run::at(&place).server(server).env("MY_API_TOKEN", "sesame-open-1234");
    let run = at(&server).args(["run", "task", "--approve", "all"]).config("mcp/db.yaml", &format!("{words}\n"));
    let told = run.run().success();
    assert_eq!(told.stderr.matches("the server of tools `db`").count(), 1, "{}", told.shown());
    told.stderr_has("no database for ***");
    let shown = at(&server).args(["mcp", "check"]).run();
    assert!(!shown.shown().contains("sesame-open"), "{}", shown.shown());
}

#[test]
fn no_server_of_a_project_takes_the_tool_name_of_another() {
    let servers = json!({ "mcpServers": { "a__b": { "command": "true" }, "ok": { "command": "true" } } });
    let run = Run::new().args(["--trust", "mcp", "list"]).file(".mcp.json", servers.to_string());
    let listed = run.run().success().stderr_has("`a__b` is no name for a server of tools");
    assert!(listed.stdout.contains("ok") && !listed.stdout.contains("a__b"), "{}", listed.shown());
}
