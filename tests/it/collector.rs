//! The data of a run that an OpenTelemetry collector gets.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

use crate::plans::{self, Role};
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;
use crate::telemetry::conversation;

/// Takes whatever comes; what it got is binary, with names and texts readable in it.
pub struct Collector {
    pub url: String,
    got: Arc<Mutex<Vec<Export>>>,
}

/// Head and body of a request.
type Export = (String, Vec<u8>);

impl Collector {
    pub fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let got = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&got);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    while let Some((head, body)) = request(&mut reader) {
                        shared.lock().expect("no panic").push((head, body));
                        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                        let _ = reader.get_mut().write_all(answer.as_bytes());
                    }
                });
            }
        });
        Self { url, got }
    }

    /// All bodies that came to this path.
    pub fn bodies(&self, path: &str) -> Vec<u8> {
        let got = self.got.lock().expect("no panic");
        got.iter()
            .filter(|(head, _)| head.starts_with(&format!("POST {path} ")))
            .flat_map(|(_, body)| body.clone())
            .collect()
    }
}

fn request(reader: &mut impl BufRead) -> Option<Export> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

pub fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_collector_gets_spans_and_metrics_and_no_text() {
    let (server, collector) = (conversation(), Collector::start("200 OK"));
    let output = Run::task(&server, "the-task-itself")
        .file("a.txt", "the-content-itself\n")
        .args(["--approve", "all", "-o", "json"])
        .config(
            "agent.yaml",
            &format!(
                "telemetry:\n  otlp_endpoint: {}/\n  otlp_headers: {{ X-Tenant: tenant-0123456789 }}\n",
                collector.url
            ),
        )
        .run()
        .success()
        .stderr_lacks("telemetry");
    let spans = collector.bodies("/v1/traces");
    let id = output.json()["session_id"].as_str().expect("an id").to_owned();
    for part in [
        "invoke_agent default", "chat scripted-model", "execute_tool read_file", "execute_tool run_command",
        "gen_ai.operation.name", "gen_ai.conversation.id", &id, "gen_ai.usage.input_tokens",
        "gen_ai.tool.call.id", "error.type", "invalid_call", "service.name", "system@v2.1#",
    ] {
        assert!(has(&spans, part), "no {part} among the spans");
    }
    let metrics = collector.bodies("/v1/metrics");
    for part in [
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "gen_ai.execute_tool.duration",
        "gen_ai.invoke_agent.duration",
        "gen_ai.token.type",
    ] {
        assert!(has(&metrics, part), "no {part} among the metrics");
    }
    for text in ["the-task-itself", "the-content-itself", "missing.txt", "done"] {
        assert!(!has(&spans, text) && !has(&metrics, text), "{text} was exported");
    }
    let got = collector.got.lock().expect("no panic");
    assert!(got.iter().all(|(head, _)| head.to_ascii_lowercase().contains("x-tenant: tenant-0123456789")));
    assert!(server.requests().iter().all(|request| !request.raw.contains("tenant-0123456789")));
}

fn count(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
}

#[test]
fn every_request_is_a_span_with_its_own_provider() {
    let collector = Collector::start("200 OK");
    let setting = format!("telemetry.otlp_endpoint={}", collector.url);
    let steps = [plans::step(1, "explore", &json!({ "prompt": "look" }), &[])];
    let server =
        plans::roles(vec![(Role::Planner, vec![plans::plan(&steps)]), (Role::Reflector, vec![plans::accepted()])]);
    plans::run(&server, &["--set", &setting]).run().success();
    let spans = collector.bodies("/v1/traces");
    assert_eq!((count(&spans, "chat scripted-model"), server.requests().len()), (4, 4));
    for part in ["planner", "reflector", "closing", "explore#1"] {
        assert!(has(&spans, part), "no {part} among the spans");
    }

    let (collector, server) = (Collector::start("200 OK"), Server::always(Reply::error(401, "no")));
    Run::task(&server, "task")
        .config("models/default.yaml", "wire: anthropic\n")
        .args(["--set", &format!("telemetry.otlp_endpoint={}", collector.url)])
        .run()
        .exits(4);
    let spans = collector.bodies("/v1/traces");
    assert!(has(&spans, "anthropic") && has(&spans, "refused") && !has(&spans, "openai"));
}

#[test]
fn a_collector_that_fails_changes_nothing_but_a_warning() {
    let refusing = Collector::start("503 Service Unavailable");
    // Takes connections and never answers.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let silent = format!("http://{}", silent.local_addr().expect("an address"));
    let gone = {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        format!("http://{}", listener.local_addr().expect("an address"))
    };
    for endpoint in [refusing.url, silent, gone] {
        let server = Server::start([Reply::text("the answer")]);
        Run::task(&server, "task")
            .args(["--set", &format!("telemetry.otlp_endpoint={endpoint}")])
            .run()
            .success()
            .stdout_is("the answer\n")
            .stderr_has("not all telemetry was exported: ");
        let server = Server::always(Reply::error(401, "no"));
        Run::task(&server, "task")
            .args(["--set", &format!("telemetry.otlp_endpoint={endpoint}")])
            .run()
            .exits(4)
            .stderr_lacks("exported");
    }
}

#[test]
fn the_endpoint_is_checked_and_a_project_cannot_set_it() {
    Run::new()
        .args(["config", "check"])
        .config("agent.yaml", "telemetry:\n  otlp_endpoint: localhost:4318\n")
        .run()
        .exits(3)
        .stderr_has("agent.yaml:2")
        .stderr_has("http://");
    Run::new()
        .args(["--trust", "config", "check"])
        .file(".agent/agent.yaml", "telemetry:\n  otlp_endpoint: http://elsewhere\n")
        .run()
        .success()
        .stderr_has("agent.yaml:1: `telemetry` is left out");
}

/// The traces that spans belong to: each begins with the ids of its trace (16 bytes) and of itself (8).
fn list_traces(spans: &[u8]) -> BTreeSet<&[u8]> {
    let begins = |part: &&[u8]| part.starts_with(&[0x0a, 16]) && part[18..].starts_with(&[0x12, 8]);
    // A name and its value may look like that.
    spans.windows(28).filter(begins).map(|part| &part[2..18]).filter(|id| !id.is_ascii()).collect()
}

#[test]
fn each_hook_is_a_span_in_the_trace_of_its_run() {
    let collector = Collector::start("200 OK");
    let server =
        Server::start([Reply::call("write_file", &json!({"path": "a", "content": "x"})), Reply::text("done")]);
    let hook = |on: &str, script: &str| format!("on: {on}\ncommand: [sh, -c, {script}]\n");
    Run::task(&server, "task")
        .args(["--set", &format!("telemetry.otlp_endpoint={}", collector.url), "--approve", "all"])
        .config("hooks/begins.yaml", &hook("session_start", "echo hello"))
        .config("hooks/hears.yaml", &hook("prompt", "'true'"))
        .config("hooks/refuses.yaml", &hook("before_tool", "echo no-such-files >&2; exit 2"))
        .config("hooks/fails.yaml", &hook("stop", "exit 1"))
        .config("hooks/ends.yaml", &hook("session_end", "'true'"))
        .run()
        .success();
    let spans = collector.bodies("/v1/traces");
    for part in ["hook begins", "hook hears", "hook refuses", "denied", "hook fails", "failed", "hook ends"] {
        assert!(has(&spans, part), "no {part} among the spans");
    }
    for event in ["session_start", "prompt", "before_tool", "stop", "session_end"] {
        assert!(has(&spans, event), "no {event} among the spans");
    }
    assert!(!has(&spans, "no-such-files"), "what a hook says was exported");
    assert_eq!(list_traces(&spans).len(), 1);
}

#[test]
fn a_hook_that_refuses_a_message_is_a_span_although_no_run_follows() {
    let collector = Collector::start("200 OK");
    let server = Server::start([]);
    Run::task(&server, "task")
        .args(["--set", &format!("telemetry.otlp_endpoint={}", collector.url)])
        .config("hooks/refuses.yaml", "on: prompt\ncommand: [sh, -c, 'exit 2']\n")
        .run()
        .exits(1);
    let spans = collector.bodies("/v1/traces");
    assert!(has(&spans, "hook refuses") && !has(&spans, "invoke_agent"));
}

#[test]
fn each_of_many_tasks_is_a_trace_of_its_own() {
    let collector = Collector::start("200 OK");
    let server = Server::answering(|_, _| Reply::text("done"));
    let setting = format!("telemetry.otlp_endpoint={}", collector.url);
    Run::new()
        .server(&server)
        .args(["map", "Do {{ item }}", "--set", &setting])
        .stdin("a\nb\nc\n")
        .run()
        .success();
    let spans = collector.bodies("/v1/traces");
    assert_eq!((count(&spans, "invoke_agent default"), list_traces(&spans).len()), (3, 3));
}
