//! Checks the rules of Ollama's own interface for a request, in tests only.

use serde_json::Value;

/// Checks a body: each call has its result, in order, before anybody speaks, and the model never has the last word.
pub fn check(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("there are no messages")?;
    let mut open: Vec<(&str, &str)> = Vec::new();
    let mut last_role = "";
    for (at, message) in messages.iter().enumerate() {
        let wrong = |what: &str| Err(format!("messages[{at}] {what}: {message}"));
        let (role, content) = (message["role"].as_str().unwrap_or_default(), message["content"].as_str());
        let Some(content) = content else { return wrong("has a content that is no text") };
        if role != "tool" && !open.is_empty() {
            return wrong(&format!("stands before the results of {open:?}"));
        }
        match role {
            "system" if at > 0 => return wrong("is a system prompt that is not the first"),
            "user" if last_role == "user" => return wrong("is the user's, like the one before"),
            "user" if content.trim().is_empty() && message["images"].is_null() => return wrong("is empty"),
            "system" | "user" => {}
            "assistant" => {
                let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
                if matches!(last_role, "" | "system") || calls.is_empty() && content.trim().is_empty() {
                    return wrong("says and calls nothing, or comes before the user");
                }
                for call in calls {
                    let name = call["function"]["name"].as_str().unwrap_or_default();
                    if name.is_empty() || !call["function"]["arguments"].is_object() {
                        return wrong("has a call without a name, or arguments that are no object");
                    }
                    open.push((call["id"].as_str().unwrap_or_default(), name));
                }
            }
            "tool" => {
                let answered = (message["tool_call_id"].as_str(), message["tool_name"].as_str());
                if open.is_empty() || answered != (Some(open[0].0), Some(open[0].1)) {
                    return wrong("does not answer the first open call");
                }
                open.remove(0);
            }
            other => return wrong(&format!("has the role `{other}`")),
        }
        last_role = role;
    }
    if !open.is_empty() {
        return Err(format!("the calls {open:?} have no results"));
    }
    if last_role == "assistant" { Err("the model has the last word".to_owned()) } else { Ok(()) }
}
