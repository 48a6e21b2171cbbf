//! `agent mcp serve`: what another program gets of the agent, in both eras of the protocol, and what it never gets.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::collector::{Collector, has};
use crate::reply::{Act, Reply};
use crate::run::{Place, Run};
use crate::server::Server;

const FORMS: &str = r#"{ "elicitation": { "form": {} } }"#;

/// A program that uses the agent.
struct Client {
    agent: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// What each request carries, in the era without a handshake.
    meta: Option<Value>,
    /// The questions of the old era, and what answers them.
    asked: Vec<Value>,
    answer: &'static str,
    progress: Vec<String>,
    number: u64,
}

impl Client {
    fn start(place: &Arc<Place>, server: &Server, capabilities: &str, is_modern: bool, args: &[&str]) -> Self {
        let run = Run::at(place).args(["mcp", "serve"]).args(args.iter().copied()).server(server);
        let mut command = run.command();
        let mut agent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (agent.stdin.take().expect("piped"), agent.stdout.take().expect("piped"));
        let capabilities: Value = serde_json::from_str(capabilities).expect("JSON");
        let about = json!({ "name": "test", "version": "1" });
        let meta = is_modern.then(|| {
            json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": about,
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            })
        });
        let output = BufReader::new(output);
        let (asked, progress) = (Vec::new(), Vec::new());
        let mut client = Self { agent, input, output, meta, asked, answer: "yes, once", progress, number: 0 };
        if is_modern {
            client.ask("server/discover", json!({}));
        } else {
            let hello =
                json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": about });
            client.ask("initialize", hello);
            client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        client
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("the agent reads");
    }

    fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.number += 1;
        params["_meta"] = self.meta.clone().unwrap_or_else(|| json!({}));
        params["_meta"]["progressToken"] = self.number.into();
        let request = json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params });
        self.write(&request);
        self.number
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let number = self.send(method, params);
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("it is text") > 0, "the agent is gone");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            match message["method"].as_str() {
                Some("elicitation/create") => {
                    let result = json!({ "action": "accept", "content": { "answer": self.answer } });
                    self.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
                    self.asked.push(message["params"].clone());
                }
                Some("notifications/progress") => {
                    self.progress.push(message["params"]["message"].as_str().unwrap_or_default().to_owned());
                }
                _ if message["id"] == number => {
                    let has_type = message["result"]["resultType"].is_string();
                    assert_eq!(has_type, self.meta.is_some() && message["error"].is_null(), "{message}");
                    return message;
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, name: &str, arguments: &Value) -> Value {
        self.ask("tools/call", json!({ "name": name, "arguments": arguments }))["result"].take()
    }

    /// Closes the client's end; the exit code of the agent.
    fn close(self) -> Option<i32> {
        let Self { mut agent, input, .. } = self;
        drop(input);
        agent.wait().expect("it ends").code()
    }
}

fn write_file(path: &str) -> Reply {
    Reply::call("write_file", &json!({ "path": path, "content": "new\n" }))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

#[test]
fn a_task_is_done_and_its_session_goes_on() {
    let server = Server::start([write_file("a.txt"), Reply::text("It is written."), Reply::text("Again.")]);
    let place = Place::new();
    let mut client = Client::start(&place, &server, FORMS, false, &[]);
    let result = client.call("run", &json!({ "task": "write a.txt" }));
    assert_eq!(text(&result), "It is written.");
    assert_eq!((&result["isError"], &result["structuredContent"]["exit_code"]), (&json!(false), &json!(0)));
    assert_eq!(place.read("a.txt"), "new\n");
    assert_eq!(client.progress, ["write_file a.txt"]);
    assert!(client.asked[0]["message"].as_str().is_some_and(|asked| asked.contains("+new")), "{:?}", client.asked);
    let session = result["structuredContent"]["session_id"].clone();
    let result = client.call("continue", &json!({ "session": session, "message": "and again" }));
    assert_eq!(text(&result), "Again.");
    assert_eq!(server.requests()[2].messages().len(), 6, "the conversation goes on");
    assert_eq!(client.close(), Some(0));
}

#[test]
fn a_collector_gets_its_runs_as_well() {
    let (server, collector) = (Server::start([Reply::text("done")]), Collector::start("200 OK"));
    let setting = format!("telemetry.otlp_endpoint={}", collector.url);
    let place = Place::new();
    let mut client = Client::start(&place, &server, "{}", false, &["--set", &setting]);
    let done = client.call("run", &json!({ "task": "do it" }));
    assert_eq!(text(&done), "done");
    assert!(has(&collector.bodies("/v1/traces"), "invoke_agent default"));
    assert_eq!(client.close(), Some(0));
}

#[test]
fn what_a_person_denies_is_not_done() {
    let server = Server::start([write_file("a.txt"), Reply::text("Then not.")]);
    let place = Place::new();
    let mut client = Client::start(&place, &server, FORMS, false, &[]);
    client.answer = "no";
    let result = client.call("run", &json!({ "task": "write a.txt" }));
    assert_eq!((text(&result), result["structuredContent"]["denied"].as_u64()), ("Then not.", Some(1)));
    assert!(!place.exists("a.txt"));
}

#[test]
fn a_client_that_cannot_ask_is_denied_what_would_be_asked() {
    let server = Server::start([write_file("a.txt"), Reply::text("I could not.")]);
    let place = Place::new();
    let mut client = Client::start(&place, &server, "{}", true, &[]);
    let result = client.call("run", &json!({ "task": "write a.txt" }));
    assert_eq!((&result["isError"], &result["structuredContent"]["exit_code"]), (&json!(true), &json!(7)));
    assert!(text(&result).starts_with("I could not.\n\n"), "{result}");
    assert!(!place.exists("a.txt"));
}

#[test]
fn in_the_new_era_a_question_is_a_result_and_the_call_goes_on_with_its_answer() {
    let server = Server::start([write_file("a.txt"), Reply::text("It is written.")]);
    let place = Place::new();
    let mut client = Client::start(&place, &server, FORMS, true, &[]);
    let asked = client.call("run", &json!({ "task": "write a.txt" }));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let choices = &asked["inputRequests"]["answer"]["params"]["requestedSchema"]["properties"]["answer"]["enum"];
    assert_eq!(choices[0], "yes, once", "{asked}");
    assert!(!place.exists("a.txt"), "nothing happens before the answer");
    let mut again = json!({ "name": "run", "arguments": { "task": "write a.txt" } });
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({ "answer": { "action": "accept", "content": { "answer": "yes, once" } } });
    let result = client.ask("tools/call", again.clone());
    assert_eq!(text(&result["result"]), "It is written.");
    assert_eq!(place.read("a.txt"), "new\n");
    let late = client.ask("tools/call", again);
    assert!(late["error"]["message"].as_str().is_some_and(|why| why.contains("waits for no answer")), "{late}");
}

#[test]
fn a_long_call_is_a_task_that_asks_and_can_be_cancelled() {
    let replies = [write_file("a.txt"), Reply::text("It is written."), Reply::nothing(Act::Hang)];
    let (server, place) = (Server::start(replies), Place::new());
    let tasks = r#"{ "elicitation": { "form": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} } }"#;
    let mut client = Client::start(&place, &server, tasks, true, &[]);
    let begun = client.call("run", &json!({ "task": "write a.txt" }));
    assert_eq!(begun["resultType"], "task", "{begun}");
    let id = begun["taskId"].clone();
    let until = |client: &mut Client, wanted: &str| loop {
        let task = client.ask("tasks/get", json!({ "taskId": id }))["result"].take();
        if task["status"] == wanted {
            return task;
        }
        assert_eq!(task["status"], "working", "{task}");
    };
    let task = until(&mut client, "input_required");
    assert!(task["inputRequests"]["answer"].is_object(), "{task}");
    let answers = json!({ "answer": { "action": "accept", "content": { "answer": "yes, once" } } });
    client.ask("tasks/update", json!({ "taskId": id, "inputResponses": answers }));
    let task = until(&mut client, "completed");
    assert_eq!(text(&task["result"]), "It is written.");
    let second = client.call("run", &json!({ "task": "wait" }))["taskId"].clone();
    client.ask("tasks/cancel", json!({ "taskId": second }));
    let task = client.ask("tasks/get", json!({ "taskId": second }));
    assert_eq!(task["result"]["status"], "cancelled", "{task}");
    assert_eq!(client.close(), Some(0), "a run that hangs does not outlive the client");
}

#[test]
fn a_run_ends_with_its_client_or_by_a_signal_and_its_call_is_answered() {
    for signal in [None, Some(Signal::SIGTERM)] {
        let (asked, is_asked) = std::sync::mpsc::channel();
        let server = Server::answering(move |_, _| {
            asked.send(()).expect("the test waits");
            Reply::nothing(Act::Hang)
        });
        let place = Place::new();
        let mut client = Client::start(&place, &server, FORMS, false, &[]);
        let number = client.send("tools/call", json!({ "name": "run", "arguments": { "task": "wait" } }));
        is_asked.recv().expect("the run asks");
        let Client { mut agent, input, output, .. } = client;
        let open = signal.map(|signal| {
            kill(Pid::from_raw(i32::try_from(agent.id()).expect("a process")), signal).expect("it runs");
            input
        });
        // It is told while the server of the model still hangs, which is before the time that others wait for answers.
        let mut lines =
            output.lines().map(|line| serde_json::from_str::<Value>(&line.expect("text")).expect("JSON"));
        let answer = lines.find(|message| message["id"] == number).expect("an answer");
        assert_eq!(answer["result"]["isError"], true, "{signal:?}: {answer}");
        assert_eq!(agent.wait().expect("it ends").code(), Some(if open.is_some() { 143 } else { 0 }));
        let log = place.session_logs();
        assert!(std::fs::read_to_string(&log[0]).is_ok_and(|log| log.contains("wait")), "the session is kept");
    }
}

#[test]
fn a_client_gets_no_more_than_the_server_was_started_with() {
    let server = Server::always(Reply::text("Fine."));
    let place = Place::new();
    std::fs::create_dir(place.workspace().join("below")).expect("a directory");
    let mut client = Client::start(&place, &server, FORMS, false, &["--approve", "edits"]);
    for (arguments, words) in [
        (json!({ "task": "x", "approve": "all" }), "may only narrow what the server was started with: edits"),
        (json!({ "task": "x", "approve": "sure" }), "`sure` is no way of approving"),
        (json!({ "task": "x", "workspace": "/" }), "is outside of"),
        (json!({ "task": "x", "workspace": "below/../.." }), "is outside of"),
        (json!({ "task": "x", "agent": "nobody" }), "nobody"),
    ] {
        let result = client.call("run", &arguments);
        assert!(result["isError"] == true && text(&result).contains(words), "{arguments}: {result}");
    }
    for (arguments, words) in [
        (json!({ "task": "x", "sandbox": "off" }), "unknown field `sandbox`"),
        (json!({ "task": " " }), "the task is empty"),
        (json!({}), "missing field `task`"),
        (json!({ "task": "x", "session": "s" }), "`continue` goes on with"),
    ] {
        let refused = client.ask("tools/call", json!({ "name": "run", "arguments": arguments }));
        assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains(words)), "{refused}");
    }
    assert!(server.requests().is_empty());
    let result = client.call("run", &json!({ "task": "x", "workspace": "below", "approve": "never" }));
    assert_eq!(text(&result), "Fine.");
}

#[test]
fn another_agent_approves_no_more_than_that_of_the_server() {
    let server = Server::answering(|request, _| {
        if request.tool_results().is_empty() {
            Reply::call("run_command", &json!({ "command": "echo pwned > made.txt" }))
        } else {
            Reply::text("Done.")
        }
    });
    let place = Place::new();
    let prepare = Run::at(&place).config("agents/reader.yaml", "description: reads\napproval: ask\n");
    let _ = prepare.config("agents/builder.yaml", "description: builds\napproval: all\n").place();
    let mut client = Client::start(&place, &server, "{}", false, &["-a", "reader"]);
    let refused = client.call("run", &json!({ "task": "x", "agent": "builder" }));
    assert!(text(&refused).contains("started with -a reader"), "{refused}");
    let mut client = Client::start(&place, &server, "{}", false, &[]);
    client.call("run", &json!({ "task": "x", "agent": "builder" }));
    assert!(!place.exists("made.txt"));
}

#[test]
fn sessions_of_the_workspace_are_resources_and_own_commands_are_prompts() {
    let server = Server::always(Reply::text("Fine."));
    let place = Place::new();
    Run::at(&place)
        .config("commands/fix.md", "Fix issue $ARGUMENTS.\n")
        .server(&server)
        .args(["run", "one"])
        .run();
    let own = place.session_logs();
    let elsewhere = place.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let there = elsewhere.to_str().expect("text");
    Run::at(&place).server(&server).args(["-C", there, "run", "two"]).run().success();
    let foreign = place.session_logs().into_iter().find(|log| !own.contains(log)).expect("another session");
    let foreign = foreign.file_stem().and_then(|id| id.to_str()).expect("an id").to_owned();
    let mut client = Client::start(&place, &server, FORMS, false, &[]);
    let listed = client.ask("resources/list", json!({}));
    let resources = listed["result"]["resources"].as_array().expect("a list").clone();
    assert_eq!((resources.len(), &resources[0]["title"]), (1, &json!("one")));
    let read = client.ask("resources/read", json!({ "uri": resources[0]["uri"] }));
    assert!(read["result"]["contents"][0]["text"].as_str().is_some_and(|text| text.contains("Fine.")), "{read}");
    for uri in ["agent://sessions/../../x", "file:///etc/passwd", &format!("agent://sessions/{foreign}")] {
        assert!(client.ask("resources/read", json!({ "uri": uri }))["error"].is_object(), "{uri}");
    }
    let refused = client.call("continue", &json!({ "session": foreign, "message": "what was it about?" }));
    assert!(refused["isError"] == true && !text(&refused).contains("two"), "{refused}");
    let prompts = client.ask("prompts/list", json!({}));
    assert_eq!(prompts["result"]["prompts"][0]["name"], "fix", "{prompts}");
    let written = client.ask("prompts/get", json!({ "name": "fix", "arguments": { "arguments": "7" } }));
    assert_eq!(written["result"]["messages"][0]["content"]["text"], "Fix issue 7.", "{written}");
    assert!(client.ask("prompts/get", json!({ "name": "none" }))["error"].is_object());
}

#[test]
fn a_configuration_that_is_wrong_is_said_before_a_client_asks() {
    let run = Run::new().args(["mcp", "serve"]).config("agent.yaml", "ui:\n  theme: pink\n");
    run.run().exits(3).stderr_has("agent.yaml:2");
}
