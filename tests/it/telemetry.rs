//! The cost of calls: in events, in the log, in `agent stats`, and never in a request.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// A command, a file that is there, one that is not, a tool that does not exist, and an answer.
pub fn conversation() -> Server {
    Server::start([
        Reply::calls(&[
            ("read_file", json!({"path": "a.txt"}).to_string()),
            ("read_file", json!({"path": "missing.txt"}).to_string()),
            ("no_such_tool", "{}".to_owned()),
        ])
        .counted(5000),
        Reply::call(
            "run_command",
            &json!({"command": "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3"}),
        )
        .counted(5100),
        Reply::text("done").counted(5200),
    ])
}

fn telemetry(output: &Output) -> Vec<Value> {
    output.events().of("tool.finished").iter().map(|event| event["telemetry"].clone()).collect()
}

#[test]
fn every_call_is_measured() {
    let server = conversation();
    let output = Run::task(&server, "task").file("a.txt", "A\n").args(["--approve", "all", "-o", "jsonl"]);
    let output = output.run().success();
    let calls = telemetry(&output);
    let [read, missing, unknown, command] = &calls[..] else { panic!("four calls: {calls:?}") };
    let ids: BTreeSet<_> = calls.iter().map(|call| call["execution_id"].as_str().expect("an id")).collect();
    assert_eq!(ids.len(), 4, "each call has an id of its own: {ids:?}");
    for (call, name, error) in [
        (read, "read_file", None),
        (missing, "read_file", Some("permanent")),
        (unknown, "no_such_tool", Some("invalid_call")),
        (command, "run_command", Some("exit")),
    ] {
        assert_eq!(call["tool_name"], name);
        assert_eq!(call["success"], error.is_none(), "{call}");
        assert_eq!(call["error_code"].as_str(), error, "{call}");
        assert_eq!(call["error_message"].is_string(), error.is_some(), "{call}");
        assert_eq!(call["tokens_estimated"], true);
        assert_eq!(call["retries"], 0);
        assert!(call["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{call}");
        assert!(call["output_tokens"].as_u64() > Some(0) && call["input_tokens"].as_u64() > Some(0), "{call}");
        let total = call["duration_ms"].as_f64().expect("a duration");
        assert!(call["latency_ms"].as_f64().unwrap_or(0.0) <= total, "{call}");
    }
    assert!(read["latency_ms"].is_number() && unknown["latency_ms"].is_null(), "only what ran has a latency");
    assert!(!read["tool_version"].as_str().unwrap_or_default().is_empty());
    assert_eq!(unknown["tool_version"], "");
    assert!(command["cpu_ms"].as_f64() > Some(0.0), "{command}");
    assert_eq!(command["metrics"], json!({"exit_code": 3.0}));
    assert!(read["cpu_ms"].is_null(), "only commands have processes");
}

#[test]
fn the_memory_of_a_command_is_its_own_or_is_not_told() {
    const BUFFER: u64 = 200 * 1024 * 1024;
    let peak = |command: &str| {
        let server =
            Server::start([Reply::call("run_command", &json!({"command": command})), Reply::text("done")]);
        let output = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]).run().success();
        (telemetry(&output).remove(0)["peak_memory_bytes"].clone(), output.shown())
    };
    assert_eq!(peak("cat /dev/null").0, Value::Null, "less than this program itself holds");
    let (large, shown) = peak(&format!("dd if=/dev/zero of=/dev/null bs={BUFFER} count=1"));
    assert!((BUFFER..2 * BUFFER).contains(&large.as_u64().unwrap_or_default()), "{shown}");
}

#[test]
fn what_was_not_allowed_did_not_run() {
    let server =
        Server::start([Reply::call("run_command", &json!({"command": "touch x"})), Reply::text("could not")]);
    let output = Run::task(&server, "task").args(["-o", "jsonl"]).run().exits(7);
    let call = telemetry(&output).remove(0);
    assert_eq!((&call["error_code"], &call["latency_ms"]), (&json!("denied"), &Value::Null));
}

#[test]
fn no_field_of_telemetry_reaches_a_request() {
    // `duration_ms` is what `detailed` shows on purpose, and a tool's name is how it is called.
    const FIELDS: [&str; 14] = [
        "execution_id", "tool_version", "timestamp", "latency_ms", "input_tokens", "output_tokens",
        "tokens_estimated", "output_bytes", "error_code", "error_message", "retries", "cpu_ms",
        "peak_memory_bytes", "telemetry",
    ];
    for format in ["concise", "standard", "detailed", "raw"] {
        for encoding in ["text", "json", "yaml", "xml", "compact"] {
            let server = conversation();
            let output = Run::task(&server, "task")
                .file("a.txt", "A\n")
                .args(["--approve", "all", "-o", "jsonl"])
                .args(["--set", &format!("tool_output.format={format}")])
                .args(["--set", &format!("tool_output.encoding={encoding}")])
                .run()
                .success();
            let calls = telemetry(&output);
            assert_eq!(calls.len(), 4, "{}", output.shown());
            for request in server.requests() {
                let shown = || format!("{format} as {encoding}: {}", request.raw);
                for field in FIELDS {
                    assert!(!request.raw.contains(field), "{field} in {}", shown());
                }
                for value in calls.iter().flat_map(|call| [&call["execution_id"], &call["timestamp"]]) {
                    let value = value.as_str().expect("a text");
                    assert!(!request.raw.contains(value), "{value} in {}", shown());
                }
            }
        }
    }
}

#[test]
fn a_session_tells_what_it_cost() {
    let server = conversation();
    let first = Run::task(&server, "task").file("a.txt", "A\n").args(["--approve", "all"]).run().success();
    let place = &first.place;
    let report = Run::at(place).args(["stats", "-o", "json"]).run().success().json();
    assert_eq!(report["gen_ai.request.model"], "scripted-model");
    assert!(report["prompt"].as_str().is_some_and(|prompt| prompt.starts_with("system@v2.1#")), "{report}");
    assert_eq!(report["model"]["steps"], 3);
    assert_eq!(report["model"]["gen_ai.usage.input_tokens"], 15_300);
    assert_eq!(report["model"]["gen_ai.usage.output_tokens"], 60);
    let total = &report["total"];
    assert_eq!((&total["calls"], &total["errors"], &total["error_rate"]), (&json!(4), &json!(3), &json!(0.75)));
    assert!(total["latency_ms"]["p95"].as_f64() >= total["latency_ms"]["mean"].as_f64(), "{total}");
    let tools: Vec<_> = report["tools"].as_array().expect("a list").iter().collect();
    let names: Vec<_> = tools.iter().map(|tool| tool["gen_ai.tool.name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["no_such_tool", "read_file", "run_command"]);
    assert_eq!((&tools[1]["calls"], &tools[1]["errors"]), (&json!(2), &json!(1)));
    // The same session, by its id and by the beginning of it; and as a table.
    let id = report["gen_ai.conversation.id"].as_str().expect("an id");
    for id in [id, &id[..id.len() - 3]] {
        assert_eq!(Run::at(place).args(["stats", id, "-o", "json"]).run().success().json(), report);
    }
    let table = Run::at(place).arg("stats").run().success();
    for part in ["scripted-model: 3 steps", "300 tokens in", "read_file", "50%", "in all"] {
        assert!(table.stdout.contains(part), "{part}\n{}", table.shown());
    }
}

#[test]
fn a_session_that_goes_on_adds_up() {
    let server =
        Server::answering(
            |_, index| {
                if index % 2 == 0 { Reply::call("list_dir", &json!({})) } else { Reply::text("seen") }
            },
        );
    let first = Run::task(&server, "one").run().success();
    Run::at(&first.place).args(["run", "--continue", "two"]).server(&server).run().success();
    let report = Run::at(&first.place).args(["stats", "-o", "json"]).run().success().json();
    assert_eq!((&report["total"]["calls"], &report["model"]["steps"]), (&json!(2), &json!(4)));
}

#[test]
fn there_is_nothing_to_tell_of_no_session() {
    Run::new().arg("stats").run().exits(2).reason_has("no session in this workspace");
    Run::new().args(["stats", "nonsense"]).run().exits(2).reason_has("nonsense");
}
