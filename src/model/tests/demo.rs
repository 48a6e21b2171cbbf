//! The built-in demo, walked through with results as the tools give them.

use serde_json::{Value, json};

use super::super::{Surroundings, connect_model};
use crate::base::builtin;
use crate::base::yaml;
use crate::config::ModelConfig;
use crate::conversation::message::{Call, CallAnswer, CallStatus, Item, ReplyPart, Step, UserText};
use crate::model::{CallRecord, ChatModel, Delta, ModelRequest, ToolChoice};

#[test]
fn a_workspace_with_files() {
    let (calls, answer) = run("list the files", &|name| match name {
        "list_dir" => Some(json!({"path": ".", "total": 3, "entries": [
            {"name": "src", "kind": "dir", "size": 0},
            {"name": "Cargo.toml", "kind": "file", "size": 10},
            {"name": "README.md", "kind": "file", "size": 20},
        ]})),
        "read_file" => Some(
            json!({"path": "README.md", "text": "intro\n# The agent\n", "first_line": 1, "lines": 2, "total_lines": 2}),
        ),
        "run_command" => Some(json!({"exit_code": 0, "output": "total 8\n-rw-r--r-- 1 a a 20 README.md\n"})),
        _ => Some(json!({"name": "workspace-tour"})),
    });
    assert_eq!(
        calls,
        [
            r#"load_skill {"name":"workspace-tour"}"#,
            r#"list_dir {"path":"."}"#,
            r#"read_file {"path":"README.md","limit":40}"#,
            r#"run_command {"command":"ls -l"}"#,
        ]
    );
    insta::assert_snapshot!(answer, @r#"
    **A scripted demo** (no model wrote this). You asked: "list the files"

    What the tools found:

    - Skill: `workspace-tour` is loaded.
    - Workspace: 2 files and 1 directory: `src`, `Cargo.toml`, `README.md`.
    - `README.md`: 2 lines, first heading "The agent".
    - `ls -l`: exit code 0, 2 lines, the last: `-rw-r--r-- 1 a a 20 README.md`.

    To ask a real model, set its provider's key (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, …), or run `agent init`.
    "#);
}

#[test]
fn an_empty_workspace() {
    let (calls, answer) = run("", &|name| match name {
        "list_dir" => Some(json!({"path": ".", "total": 0, "entries": []})),
        "run_command" => Some(json!({"exit_code": 0, "stdout": "total 0\n", "stderr": ""})),
        _ => None,
    });
    assert_eq!(calls.last().map(String::as_str), Some(r#"run_command {"command":"ls -l"}"#));
    insta::assert_snapshot!(answer, @r#"
    **A scripted demo** (no model wrote this). You asked: ""

    What the tools found:

    - Skill: `workspace-tour` could not be loaded.
    - Workspace: it is empty.
    - `ls -l`: exit code 0, 1 line, the last: `total 0`.

    To ask a real model, set its provider's key (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, …), or run `agent init`.
    "#);
}

#[test]
fn nothing_works() {
    let (_, answer) = run("a\nb", &|_| None);
    insta::assert_snapshot!(answer, @r#"
    **A scripted demo** (no model wrote this). You asked: "a"

    What the tools found:

    - Skill: `workspace-tour` could not be loaded.
    - Workspace: it could not be listed.
    - `ls -l`: did not run (error).

    To ask a real model, set its provider's key (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, …), or run `agent init`.
    "#);
}

/// Goes through the demo: the calls it makes, and its answer. `result` is what a tool returns; `None`: it failed.
fn run(task: &str, result: &dyn Fn(&str) -> Option<Value>) -> (Vec<String>, String) {
    let file = builtin::CONFIGS.get_file("models/demo.yaml").expect("the demo is built in");
    let config: ModelConfig = yaml::parse_document(file.contents_utf8().expect("text")).expect("a model");
    let model = connect_model(&config, &Surroundings::default()).expect("a script");
    assert!(model.info().scripted);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(walk(model.as_ref(), task, result))
}

async fn walk(model: &dyn ChatModel, task: &str, result: &dyn Fn(&str) -> Option<Value>) -> (Vec<String>, String) {
    let mut messages = vec![Item::Said(UserText::by_person(task))];
    let (mut results, mut calls) = (Vec::new(), Vec::new());
    loop {
        let tool_choice = ToolChoice::Auto;
        let request = ModelRequest { tool_choice, results: &results, ..ModelRequest::from_items(&messages, "s") };
        let mut reply = model.ask(request).await.expect("a reply");
        let mut text = String::new();
        let end = loop {
            match reply.next().await.expect("a delta") {
                Delta::Text(piece) => text.push_str(&piece),
                Delta::Finished(end) => break end,
                Delta::Reasoning(_) | Delta::CallBegun(_) | Delta::Notice(_) | Delta::Searched(_) => {}
            }
        };
        if end.calls().next().is_none() {
            return (calls, text);
        }
        let mut step = Step::of_text(text, end.finish);
        for call in end.calls().cloned() {
            calls.push(format!("{} {}", call.name, call.arguments));
            let data = result(&call.name);
            let status = if data.is_some() { CallStatus::Ok } else { CallStatus::Error };
            let name = call.name.clone();
            let answer = Some(CallAnswer::of_text("what the model reads", status));
            step.parts.push(ReplyPart::Call(Call { request: call, opaque: None, answer }));
            results.push(CallRecord {
                name,
                arguments: Value::Null,
                status,
                result: data.unwrap_or(Value::Null),
                observation: String::new(),
            });
        }
        messages.push(Item::Step(step));
    }
}
