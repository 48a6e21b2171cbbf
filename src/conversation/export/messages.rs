//! A conversation as JSON of our own, and as OpenAI's messages.

use serde_json::{Value, json};

use super::{Exported, read_arguments};
use crate::base::present;
use crate::conversation::message::{CallStatus, Item, Step};

/// The document that docs/sessions.md describes.
pub(super) fn write_json(exported: &Exported) -> Value {
    let messages: Vec<Value> = exported.items.iter().map(write_item).collect();
    let usage = &exported.usage;
    json!({
        "v": 1,
        "id": exported.id,
        "title": exported.title,
        "agent": exported.agent,
        "model": exported.model,
        "created_at": exported.created_at,
        "system": exported.system,
        "messages": messages,
        "usage": usage,
        "cost_usd": exported.cost_usd,
        "helpers": exported.helpers.iter().map(write_json).collect::<Vec<_>>(),
    })
}

fn write_item(item: &Item) -> Value {
    match item {
        Item::Said(said) => {
            let role = if said.author.is_person() { "user" } else { "program" };
            json!({"role": role, "text": said.texts().collect::<Vec<_>>().join("\n\n"), "images": said.images.len()})
        }
        Item::Summary(summary) => json!({"role": "summary", "text": summary.text}),
        Item::Step(step) => {
            let calls: Vec<Value> = step
                .calls()
                .map(|call| {
                    json!({
                        "id": call.request.id,
                        "name": call.request.name,
                        "arguments": read_arguments(&call.request),
                        "ok": call.answer.as_ref().map(|answer| answer.status == CallStatus::Ok),
                        "result": call.answer.as_ref().map(|answer| &answer.content),
                    })
                })
                .collect();
            json!({"role": "assistant", "text": step.text(), "calls": calls, "usage": step.usage})
        }
    }
}

/// The messages of chat completions.
pub(super) fn write_openai(exported: &Exported) -> Vec<Value> {
    let mut all = Vec::new();
    if !exported.system.is_empty() {
        all.push(json!({"role": "system", "content": exported.system}));
    }
    for item in &exported.items {
        match item {
            Item::Said(said) => {
                all.push(json!({"role": "user", "content": said.texts().collect::<Vec<_>>().join("\n\n")}));
            }
            Item::Summary(summary) => all.push(json!({"role": "user", "content": summary.text})),
            Item::Step(step) => add_step(step, &mut all),
        }
    }
    all
}

fn add_step(step: &Step, all: &mut Vec<Value>) {
    let calls: Vec<Value> = step
        .calls()
        .map(|call| {
            let function = json!({"name": call.request.name, "arguments": call.request.arguments});
            json!({"id": call.request.id, "type": "function", "function": function})
        })
        .collect();
    let text = step.text();
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    all.push(message);
    for call in step.calls() {
        let result = call
            .answer
            .as_ref()
            .map_or("".into(), |answer| present::show_failure(&call.request.name, answer.status, &answer.content));
        all.push(json!({"role": "tool", "tool_call_id": call.request.id, "content": result}));
    }
}
