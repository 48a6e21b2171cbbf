//! The forms in which programs keep conversations, each taken apart to the same parts.

use serde_json::Value;

use crate::base::present;
use crate::conversation::message::CallStatus;

/// A part of a conversation, in the order in which it was recorded.
#[derive(Debug, PartialEq)]
pub(super) enum ForeignPart {
    /// The person's words.
    Said(String),
    Text(String),
    Thought(String),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    Result {
        id: String,
        text: String,
        status: CallStatus,
    },
}

#[derive(Debug, Default)]
pub(super) struct ForeignLog {
    pub source: &'static str,
    pub model: Option<String>,
    pub parts: Vec<ForeignPart>,
    /// Lines that are no JSON.
    pub damaged: usize,
}

/// Texts that codex puts in the person's place.
const BY_CODEX: [&str; 4] =
    ["<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>"];
/// Texts that Claude Code puts in the person's place.
const BY_CLAUDE: [&str; 4] =
    ["<command-name>", "<local-command-", "<command-message>", "Caveat: The messages below"];

/// Takes a file apart.
///
/// # Errors
/// It has none of the known forms.
pub(super) fn read_parts(text: &str) -> Result<ForeignLog, String> {
    let text = text.trim_start_matches('\u{feff}');
    if let Ok(whole) = serde_json::from_str::<Value>(text) {
        return read_document(&whole);
    }
    let lines: Vec<Option<Value>> =
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| serde_json::from_str(line).ok()).collect();
    let damaged = lines.iter().filter(|line| line.is_none()).count();
    let lines: Vec<Value> = lines.into_iter().flatten().collect();
    let has = |kind: &str| lines.iter().any(|line| line["type"] == kind);
    let log = if has("session_meta") || has("response_item") {
        read_codex(&lines)
    } else if has("session") && has("message") {
        read_pi(&lines)
    } else if lines.iter().any(|line| line["message"]["role"].is_string()) {
        read_claude(&lines)
    } else if let [only] = lines.as_slice() {
        read_document(only)?
    } else {
        return Err(UNKNOWN.to_owned());
    };
    Ok(ForeignLog { damaged, ..log })
}

const UNKNOWN: &str = "it is no conversation of a known form: `agent session export --to json`, ATIF, `messages` of chat \
                       completions or mini-swe-agent, a log of Claude Code, codex or pi";

/// A file with one JSON document.
fn read_document(whole: &Value) -> Result<ForeignLog, String> {
    if whole["schema_version"].as_str().is_some_and(|version| version.starts_with("ATIF")) {
        return Ok(read_atif(whole));
    }
    let Some(messages) = whole["messages"].as_array() else { return Err(UNKNOWN.to_owned()) };
    let is_swe = whole["trajectory_format"].as_str().is_some_and(|form| form.starts_with("mini-swe"));
    let is_own = whole["v"].is_u64();
    let source = if is_swe {
        "mini-swe-agent"
    } else if is_own {
        "agent"
    } else {
        "chat completions"
    };
    let mut parts = Vec::new();
    for message in messages {
        add_message(message, &mut parts);
    }
    Ok(ForeignLog { source, model: text_of(&whole["model"]), parts, damaged: 0 })
}

fn read_claude(lines: &[Value]) -> ForeignLog {
    let mut log = ForeignLog { source: "Claude Code", ..ForeignLog::default() };
    let is_meant = |line: &&Value| line["isSidechain"] != true && line["isMeta"] != true;
    for line in lines.iter().filter(is_meant) {
        let message = &line["message"];
        log.model = text_of(&message["model"]).filter(|model| !model.starts_with('<')).or(log.model);
        add_message(message, &mut log.parts);
    }
    log.parts.retain(|part| !is_by_program(part, &BY_CLAUDE));
    log
}

fn read_pi(lines: &[Value]) -> ForeignLog {
    let mut log = ForeignLog { source: "pi", ..ForeignLog::default() };
    for line in choose_branch(lines) {
        let message = &line["message"];
        log.model = text_of(&message["model"]).or(log.model);
        add_message(message, &mut log.parts);
    }
    log
}

/// The messages of the branch that was written last; all of them where they form no tree.
fn choose_branch(lines: &[Value]) -> Vec<&Value> {
    let Some(last) = lines.iter().rposition(|line| line["id"].is_string() && line["parentId"].is_string()) else {
        return lines.iter().collect();
    };
    let mut branch = Vec::new();
    let mut wanted = lines[last]["id"].as_str();
    // A parent stands before its children, so no circle comes back here.
    for line in lines[..=last].iter().rev() {
        if wanted.is_some() && line["id"].as_str() == wanted {
            branch.push(line);
            wanted = line["parentId"].as_str();
        }
    }
    branch.reverse();
    branch
}

fn read_codex(lines: &[Value]) -> ForeignLog {
    let mut log = ForeignLog { source: "codex", ..ForeignLog::default() };
    for line in lines {
        let payload = &line["payload"];
        match (line["type"].as_str(), payload["type"].as_str()) {
            (Some("turn_context"), _) => log.model = text_of(&payload["model"]).or(log.model),
            (Some("response_item"), Some("message")) => add_message(payload, &mut log.parts),
            (Some("response_item"), Some("reasoning")) => {
                log.parts.push(ForeignPart::Thought(join_texts(&payload["summary"])));
            }
            (Some("response_item"), Some("function_call" | "custom_tool_call" | "local_shell_call")) => {
                let arguments = ["arguments", "input", "action"].iter().map(|key| &payload[*key]);
                let arguments = arguments.into_iter().find(|value| !value.is_null()).unwrap_or(&Value::Null);
                let name = text_of(&payload["name"]).unwrap_or_else(|| "shell".to_owned());
                log.parts.push(call(&payload["call_id"], name, arguments));
            }
            (Some("response_item"), Some("function_call_output" | "custom_tool_call_output")) => {
                log.parts.push(result(&payload["call_id"], &payload["output"], false));
            }
            _ => {}
        }
    }
    log.parts.retain(|part| !is_by_program(part, &BY_CODEX));
    log
}

fn read_atif(whole: &Value) -> ForeignLog {
    let mut parts = Vec::new();
    for step in whole["steps"].as_array().into_iter().flatten() {
        let message = join_texts(&step["message"]);
        match step["source"].as_str() {
            Some("user") => parts.push(ForeignPart::Said(message)),
            Some("agent") => {
                parts.push(ForeignPart::Thought(join_texts(&step["reasoning_content"])));
                parts.push(ForeignPart::Text(message));
                for called in step["tool_calls"].as_array().into_iter().flatten() {
                    let name = text_of(&called["function_name"]).unwrap_or_default();
                    parts.push(call(&called["tool_call_id"], name, &called["arguments"]));
                }
                for found in step["observation"]["results"].as_array().into_iter().flatten() {
                    let failed = found["extra"]["status"].as_str().is_some_and(|status| status != "ok");
                    parts.push(result(&found["source_call_id"], &found["content"], failed));
                }
            }
            _ => {}
        }
    }
    ForeignLog { source: "ATIF", model: text_of(&whole["agent"]["model_name"]), parts, damaged: 0 }
}

/// A message with a role, whose content is a text or a list of blocks.
fn add_message(message: &Value, parts: &mut Vec<ForeignPart>) {
    let content = if message["content"].is_null() { &message["text"] } else { &message["content"] };
    match message["role"].as_str() {
        Some("user") => {
            let results = blocks(content).filter(|block| block["type"] == "tool_result");
            parts.extend(
                results.map(|block| result(&block["tool_use_id"], &block["content"], block["is_error"] == true)),
            );
            parts.push(ForeignPart::Said(join_texts(content)));
        }
        Some("tool" | "toolResult") => {
            let id = ["tool_call_id", "toolCallId"].map(|key| &message[key]);
            let id = id.into_iter().find(|id| id.is_string()).unwrap_or(&Value::Null);
            parts.push(result(id, content, message["isError"] == true));
        }
        Some("assistant") => add_reply(message, content, parts),
        _ => {}
    }
}

fn add_reply(message: &Value, content: &Value, parts: &mut Vec<ForeignPart>) {
    parts.push(ForeignPart::Thought(join_texts(&message["reasoning_content"])));
    if content.is_string() {
        parts.push(ForeignPart::Text(join_texts(content)));
    }
    for block in blocks(content) {
        match block["type"].as_str() {
            Some("text" | "output_text") => parts.push(ForeignPart::Text(join_texts(&block["text"]))),
            Some("thinking") => parts.push(ForeignPart::Thought(join_texts(&block["thinking"]))),
            Some("tool_use" | "toolCall") => {
                let arguments = if block["input"].is_null() { &block["arguments"] } else { &block["input"] };
                parts.push(call(&block["id"], text_of(&block["name"]).unwrap_or_default(), arguments));
            }
            _ => {}
        }
    }
    for called in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &called["function"];
        parts.push(call(&called["id"], text_of(&function["name"]).unwrap_or_default(), &function["arguments"]));
    }
    // Our own form has the results beside the calls.
    for called in message["calls"].as_array().into_iter().flatten() {
        parts.push(call(&called["id"], text_of(&called["name"]).unwrap_or_default(), &called["arguments"]));
    }
    for called in message["calls"].as_array().into_iter().flatten().filter(|called| !called["result"].is_null()) {
        parts.push(result(&called["id"], &called["result"], called["ok"] == false));
    }
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

fn call(id: &Value, name: String, arguments: &Value) -> ForeignPart {
    let arguments = match arguments {
        Value::String(text) => text.clone(),
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    };
    ForeignPart::Call { id: text_of(id).unwrap_or_default(), name, arguments }
}

fn result(id: &Value, content: &Value, is_error: bool) -> ForeignPart {
    let text = if content.is_object() { content.to_string() } else { join_texts(content) };
    let status = match present::read_status(&text) {
        None if is_error => CallStatus::Error,
        status => status.unwrap_or(CallStatus::Ok),
    };
    ForeignPart::Result { id: text_of(id).unwrap_or_default(), text, status }
}

/// A text, or the texts of blocks; what is no text is left out.
fn join_texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n\n")
        }
        _ => String::new(),
    }
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn is_by_program(part: &ForeignPart, marks: &[&str]) -> bool {
    matches!(part, ForeignPart::Said(text) if marks.iter().any(|mark| text.trim_start().starts_with(mark)))
}
