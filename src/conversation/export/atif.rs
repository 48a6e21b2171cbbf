//! A conversation as an ATIF 1.8 trajectory (Agent Trajectory Interchange Format, of Harbor and Terminal-Bench).

use serde_json::{Map, Value, json};

use super::{Exported, read_arguments};
use crate::conversation::message::{CallStatus, Item, ReplyPart, Step};

const VERSION: &str = "ATIF-v1.8";

pub(super) fn write_trajectory(exported: &Exported) -> Value {
    let mut steps: Vec<Map<String, Value>> = Vec::new();
    if !exported.system.is_empty() {
        steps.push(say("system", exported.system.clone()));
    }
    for item in &exported.items {
        steps.push(match item {
            Item::Said(said) => {
                let source = if said.author.is_person() { "user" } else { "system" };
                say(source, said.texts().collect::<Vec<_>>().join("\n\n"))
            }
            Item::Summary(summary) => say("system", summary.text.clone()),
            Item::Step(step) => write_step(step),
        });
    }
    for (number, step) in (1..).zip(&mut steps) {
        step.insert("step_id".to_owned(), Value::from(number));
    }
    let usage = &exported.usage;
    let count = steps.len();
    let mut trajectory = json!({
        "schema_version": VERSION,
        "session_id": exported.id,
        "trajectory_id": exported.id,
        "agent": {
            "name": "agent", "version": env!("CARGO_PKG_VERSION"), "model_name": exported.model,
            "extra": {"agent": exported.agent},
        },
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": usage.input_tokens,
            "total_completion_tokens": usage.output_tokens,
            "total_cached_tokens": usage.cached_input_tokens,
            "total_cost_usd": exported.cost_usd,
            "total_steps": count,
        },
    });
    if !exported.helpers.is_empty() {
        trajectory["subagent_trajectories"] = exported.helpers.iter().map(write_trajectory).collect();
    }
    trajectory
}

fn say(source: &str, message: String) -> Map<String, Value> {
    [("source", Value::from(source)), ("message", message.into())]
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
}

fn write_step(step: &Step) -> Map<String, Value> {
    let mut written = say("agent", step.text());
    let thoughts = step.parts.iter().filter_map(|part| match part {
        ReplyPart::Reasoning { text, .. } if !text.trim().is_empty() => Some(text.trim()),
        _ => None,
    });
    let thoughts = thoughts.collect::<Vec<_>>().join("\n\n");
    let mut set = |key: &str, value: Value| drop(written.insert(key.to_owned(), value));
    if !thoughts.is_empty() {
        set("reasoning_content", thoughts.into());
    }
    if step.has_calls() {
        let calls = step.calls().map(|call| {
            let request = &call.request;
            json!({"tool_call_id": request.id, "function_name": request.name, "arguments": read_arguments(request)})
        });
        set("tool_calls", calls.collect());
        let results = step.calls().filter_map(|call| {
            let answer = call.answer.as_ref()?;
            let mut result = json!({"source_call_id": call.request.id, "content": answer.content});
            // The form has no other place for it.
            if answer.status != CallStatus::Ok {
                result["extra"] = json!({"status": answer.status});
            }
            Some(result)
        });
        set("observation", json!({"results": results.collect::<Vec<_>>()}));
    }
    let usage = &step.usage;
    set(
        "metrics",
        json!({
            "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_input_tokens, "cost_usd": step.cost_usd,
        }),
    );
    written
}
