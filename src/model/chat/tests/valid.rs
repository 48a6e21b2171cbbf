//! Checks the rules of chat completions for a request, in tests only.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Checks a body against what strict servers refuse.
pub fn check(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("there are no messages")?;
    let mut open: Vec<String> = Vec::new();
    let mut ids = HashSet::new();
    let mut last_role = "";
    for (at, message) in messages.iter().enumerate() {
        let wrong = |what: &str| Err(format!("messages[{at}] {what}: {message}"));
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            return wrong(&format!("stands before the results of {open:?}"));
        }
        match role {
            "system" if at > 0 => return wrong("is a system prompt that is not the first"),
            "user" if last_role == "user" => return wrong("is the user's, like the one before"),
            "user" if is_blank(&message["content"]) => return wrong("is empty"),
            "system" | "user" => {}
            "assistant" => {
                if matches!(last_role, "" | "system") {
                    return wrong("comes before the user");
                }
                let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
                if calls.is_empty() && is_blank(&message["content"]) {
                    return wrong("says and calls nothing");
                }
                for call in calls {
                    let id = call["id"].as_str().unwrap_or_default().to_owned();
                    if !is_word(&id, 64) || !ids.insert(id.clone()) {
                        return wrong(&format!("has a call with the id `{id}`"));
                    }
                    if !is_word(call["function"]["name"].as_str().unwrap_or_default(), 64) {
                        return wrong("has a call with a bad name");
                    }
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    if serde_json::from_str::<Map<String, Value>>(arguments).is_err() {
                        return wrong("has arguments that are no object");
                    }
                    open.push(id);
                }
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let Some(place) = open.iter().position(|known| known == id) else {
                    return wrong("answers no open call");
                };
                open.remove(place);
                if !message["content"].is_string() && !message["content"].is_array() {
                    return wrong("has no content");
                }
            }
            other => return wrong(&format!("has the role `{other}`")),
        }
        last_role = role;
    }
    match messages.last().map(|message| &message["role"]) {
        _ if !open.is_empty() => Err(format!("the calls {open:?} have no results")),
        Some(role) if role == "assistant" => Err("the model has the last word".to_owned()),
        None => Err("there are no messages".to_owned()),
        Some(_) => Ok(()),
    }
}

fn is_blank(content: &Value) -> bool {
    match content {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => true,
    }
}

fn is_word(text: &str, longest: usize) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.len() <= longest && text.chars().all(is_good)
}
