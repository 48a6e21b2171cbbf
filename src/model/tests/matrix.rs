//! Sessions that continue with another model: whatever wire a reply came by, the next request is valid on every other.

use serde_json::Value;

use super::super::written::WrittenResults;
use super::super::{anthropic, chat, gemini, ollama, responses};
use super::conversations::{Script, ScriptLine, tool};
use crate::base::yaml;
use crate::config::Wire;
use crate::conversation::message::{Item, Opaque, ReplyPart, Step};
use crate::model::{ModelRequest, ToolChoice};

/// A model of every wire and of every host with special rules.
const MODELS: [&str; 11] = [
    "{ model: gpt-6-sol, api_key: k }",
    "{ model: gpt-5-mini, api_key: k, wire: chat }",
    "{ model: claude-opus-5-5, base_url: https://api.anthropic.com/v1, wire: anthropic, capabilities: { vision: true } }",
    "{ model: claude-haiku-4-5, base_url: https://api.anthropic.com/v1, wire: anthropic, reasoning_effort: high }",
    "{ model: deepseek-v4-pro, base_url: https://api.deepseek.com/v1 }",
    "{ model: mistral-large-4, base_url: https://api.mistral.ai/v1 }",
    "{ model: gemini-4-argon, base_url: https://generativelanguage.googleapis.com/v1beta/openai, wire: chat, capabilities: { vision: true } }",
    "{ model: gemini-4-argon, base_url: https://generativelanguage.googleapis.com/v1beta, capabilities: { vision: true } }",
    "{ model: qwen3, base_url: http://localhost:11434/v1, capabilities: { vision: true } }",
    "{ model: anthropic/claude-sonnet-5-5, base_url: https://openrouter.ai/api/v1 }",
    "{ model: qwen3, base_url: http://127.0.0.1:9/v1 }",
];

/// Six turns as a wire delivers them: text, reasoning, parallel calls, a picture, a failure, a call that was cut off.
const SESSION: &str = r"
- user: one
- reply: [ { reasoning: hm, keeps: THINKS }, { text: Let me look., keeps: SAYS }, { call: read_file, id: IDa, keeps: CALLS, answer: A }, { call: read_file, id: IDb, answer: B, pictures: 1 } ]
- reply: [ { reasoning: '', keeps: THINKS }, { call: read_file, id: IDc, keeps: CALLS, answer: no, fails: true, pictures: 1 } ]
- reply: [ { text: 'Done.' } ]
- user: two
- reply: [ { reasoning: only thoughts, keeps: THINKS } ]
- user: three
- reply: [ { call: 'odd name!', id: 'IDd|x:0', arguments: '{', keeps: CALLS } ]
- user: four
- reply: [ { text: 'Fin.' } ]
- reply: [ { reasoning: late, keeps: THINKS }, { text: '  ' }, { call: read_file, id: IDe, answer: '' } ]
";

fn script(model: &str) -> Script {
    let mut script: Script = yaml::parse_document("items: []").expect("a script");
    script.model = yaml::parse_document(model).expect("a model");
    script
}

/// The session as a model of this wire left it.
fn session(wire: Wire) -> String {
    let (thinks, says, calls, id) = match wire {
        Wire::Chat => (
            "{ reasoning_details: [ { type: reasoning.text, text: hm, index: 0 } ], field: reasoning_content }",
            "null",
            "{ extra_content: { google: { thought_signature: c2ln } } }",
            "call_",
        ),
        Wire::Responses => (
            "{ type: reasoning, id: rs_N, summary: [], encrypted_content: gAAA }",
            "{ id: msg_N, phase: commentary }",
            "{ id: fc_N }",
            "call_|",
        ),
        Wire::Anthropic => ("{ type: thinking, thinking: hm, signature: AbC }", "null", "null", "toolu_"),
        Wire::Ollama => ("{ field: thinking }", "null", "null", "call_"),
        Wire::Gemini => (
            "{ thoughtSignature: gAAA }",
            "{ signatureBehind: AbC }",
            "{ thoughtSignature: c2ln, id: fc_N }",
            "call_",
        ),
    };
    let session = SESSION.replace("THINKS", thinks).replace("SAYS", says).replace("CALLS", calls);
    // No id comes twice.
    let mut parts = session.split("_N").enumerate();
    let first = parts.next().map_or("", |(_, part)| part).to_owned();
    parts.fold(first, |whole, (at, part)| format!("{whole}_{at}{part}")).replace("ID", id)
}

fn check(wire: Wire, body: &Value) -> Result<(), String> {
    match wire {
        Wire::Chat => chat::tests::valid::check(body),
        Wire::Responses => responses::tests::valid::check(body),
        Wire::Anthropic => anthropic::tests::valid::check(body),
        Wire::Ollama => ollama::tests::valid::check(body),
        Wire::Gemini => gemini::tests::valid::check(body),
    }
}

/// The items as a compression leaves them: the first ones summarised, and nothing kept that was valid only before.
fn compressed(items: &[Item]) -> Vec<Item> {
    let summary: Vec<ScriptLine> = yaml::parse_document("- summary: '## Goal'").expect("a summary");
    let origin =
        crate::conversation::message::Origin { wire: String::new(), host: String::new(), model: String::new() };
    let mut rest: Vec<Item> = summary.iter().map(|line| line.item(&origin)).collect();
    rest.extend(items[2..].iter().cloned());
    for item in &mut rest {
        let Item::Step(step) = item else { continue };
        for part in &mut step.parts {
            if let ReplyPart::Reasoning { opaque, .. } = part {
                *opaque = opaque.take().filter(|opaque: &Opaque| !opaque.bound);
            }
        }
    }
    rest
}

#[test]
fn a_session_goes_on_with_every_other_model() {
    let tools = [tool("read_file")];
    for from in MODELS {
        let source = script(from).model().expect("a model").plan();
        let lines: Vec<ScriptLine> = yaml::parse_document(&session(source.wire)).expect("a session");
        let items: Vec<Item> = lines.iter().map(|line| line.item(&source.origin())).collect();
        for to in MODELS {
            let target = script(to).model().expect("a model").plan();
            let same = source.origin() == target.origin();
            for (how, items) in [("whole", items.clone()), ("compressed", compressed(&items))] {
                for length in 1..=items.len() {
                    let items = &items[..length];
                    let whole = ModelRequest {
                        system: "s",
                        tools: &tools,
                        tool_choice: ToolChoice::Auto,
                        ..ModelRequest::from_items(items, "s")
                    };
                    let closing = ModelRequest { tool_choice: ToolChoice::None, aside: Some("Sum up."), ..whole };
                    for request in [whole, closing] {
                        // Nobody asks a model that has just spoken.
                        if request.aside.is_none() && !ends_open(items) {
                            continue;
                        }
                        let (body, _) = target.encode(&request, &WrittenResults::default());
                        let body: Value = serde_json::from_slice(&body).expect("JSON");
                        let said = format!("{from}\n-> {to} ({how}, {length} items)");
                        check(target.wire, &body).unwrap_or_else(|why| panic!("{said}\n{why}\n{body:#}"));
                        if !same {
                            let text = body.to_string();
                            for foreign in ["gAAA", "AbC", "c2ln", "only thoughts"] {
                                assert!(!text.contains(foreign), "{said}\n{foreign} is foreign\n{body:#}");
                            }
                        }
                    }
                }
            }
        }
    }
}

/// True if it is the model's turn: after a user's message or after results.
fn ends_open(items: &[Item]) -> bool {
    items.last().is_some_and(|item| item.as_step().is_none_or(Step::has_calls))
}

#[test]
fn every_request_extends_the_one_before_it() {
    let tools = [tool("read_file")];
    for model in MODELS {
        let plan = script(model).model().expect("a model").plan();
        let lines: Vec<ScriptLine> = yaml::parse_document(&session(plan.wire)).expect("a session");
        let items: Vec<Item> = lines.iter().map(|line| line.item(&plan.origin())).collect();
        let mut before: Option<(Vec<Value>, Value)> = None;
        for length in (1..=items.len()).filter(|length| ends_open(&items[..*length])) {
            let request = ModelRequest {
                system: "s",
                tools: &tools,
                tool_choice: ToolChoice::Auto,
                ..ModelRequest::from_items(&items[..length], "s")
            };
            let (body, _) = plan.encode(&request, &WrittenResults::default());
            let mut body: Value = serde_json::from_slice(&body).expect("JSON");
            unmark(&mut body);
            // It is not expected of a turn that another model began.
            body["thinking"].take();
            let field = ["input", "contents", "messages"].into_iter().find(|field| body.get(field).is_some());
            let field = field.expect("a list of messages");
            let Value::Array(messages) = body[field].take() else { panic!("{model}: {body}") };
            if let Some((earlier, rest)) = before.replace((messages.clone(), body.clone())) {
                assert_eq!(rest, body, "{model}: {length} items");
                // A user's text may continue in the last message.
                let kept = earlier.len() - 1;
                assert_eq!(earlier[..kept], messages[..kept], "{model}: {length} items");
            }
        }
    }
}

/// Removes the cache marks, which move.
fn unmark(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.shift_remove("cache_control");
            object.values_mut().for_each(unmark);
        }
        Value::Array(list) => list.iter_mut().for_each(unmark),
        _ => {}
    }
}
