//! Checks the rules of the Messages API for a request, in tests only.

use serde_json::Value;

/// Checks a body.
///
/// # Errors
/// The first rule that it breaks, with the place.
pub fn check(body: &Value) -> Result<(), String> {
    let max_tokens = body["max_tokens"].as_u64().ok_or("max_tokens is missing")?;
    body["model"].as_str().filter(|model| !model.is_empty()).ok_or("model is missing")?;
    thinking(body, max_tokens)?;
    match &body["system"] {
        Value::Null => {}
        Value::String(text) => not_blank(text, "system")?,
        Value::Array(blocks) => blocks.iter().try_for_each(|block| text_block(block, "system"))?,
        other => return Err(format!("system is {other}")),
    }
    tools(body)?;
    let messages = body["messages"].as_array().filter(|list| !list.is_empty()).ok_or("messages are missing")?;
    for (at, message) in messages.iter().enumerate() {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != role {
            return Err(format!("messages.{at}: the role is {}, not {role}", message["role"]));
        }
        let blocks = blocks(message, at)?;
        if role == "user" {
            user(blocks, at)?;
        } else {
            assistant(blocks, at)?;
        }
        let before = at.checked_sub(1).map_or(&[][..], |before| content(&messages[before]));
        check_pairs(before, blocks, at)?;
    }
    if messages.len() % 2 == 0 {
        return Err("the last message is the assistant's".to_owned());
    }
    ids_once(messages)?;
    match body.to_string().matches(r#""cache_control":{"#).count() {
        0..=4 => Ok(()),
        marks => Err(format!("{marks} cache marks")),
    }
}

fn thinking(body: &Value, max_tokens: u64) -> Result<(), String> {
    let thinking = &body["thinking"];
    let kind = thinking["type"].as_str().unwrap_or("none");
    match kind {
        "none" | "disabled" => return Ok(()),
        "adaptive" => {}
        "enabled" => {
            let budget = thinking["budget_tokens"].as_u64().ok_or("thinking has no budget_tokens")?;
            if budget < 1024 || budget >= max_tokens {
                return Err(format!("budget_tokens {budget} is below 1024, or not below max_tokens {max_tokens}"));
            }
            loop_begins_with_thought(body)?;
        }
        other => return Err(format!("thinking is of type {other}")),
    }
    match &body["temperature"] {
        Value::Null => Ok(()),
        _ => Err("a temperature while thinking".to_owned()),
    }
}

/// Thinking by budget continues in the middle of calls only if those began with a thought.
fn loop_begins_with_thought(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let replies =
        messages.chunks(2).rev().take_while(|pair| content(&pair[0]).iter().any(|b| b["type"] == "tool_result"));
    let in_loop = replies.count();
    if in_loop == 0 {
        return Ok(());
    }
    let first = &messages[messages.len() - 2 * in_loop];
    let begins = content(first).first().map(|block| &block["type"]);
    match begins.and_then(Value::as_str) {
        Some("thinking" | "redacted_thinking") => Ok(()),
        begins => Err(format!("thinking by budget, but the running calls begin with {begins:?}")),
    }
}

fn tools(body: &Value) -> Result<(), String> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        word(name, 128)?;
        let schema = &tool["input_schema"];
        if schema["type"] != "object" || ["anyOf", "oneOf", "allOf"].iter().any(|key| schema.get(key).is_some()) {
            return Err(format!("the schema of {name} is not a plain object at its root"));
        }
    }
    if tools.is_empty() && !body["tool_choice"].is_null() {
        return Err("tool_choice without tools".to_owned());
    }
    Ok(())
}

fn content(message: &Value) -> &[Value] {
    message["content"].as_array().map_or(&[], Vec::as_slice)
}

fn blocks(message: &Value, at: usize) -> Result<&[Value], String> {
    Some(content(message)).filter(|blocks| !blocks.is_empty()).ok_or(format!("messages.{at}: no content"))
}

fn user(blocks: &[Value], at: usize) -> Result<(), String> {
    let mut results_over = false;
    for block in blocks {
        match block["type"].as_str() {
            Some("tool_result") if results_over => {
                return Err(format!("messages.{at}: a result after other blocks"));
            }
            Some("tool_result") => {
                result(block, at)?;
                continue;
            }
            Some("text") => text_block(block, &format!("messages.{at}"))?,
            Some("image") => image(block, at)?,
            other => return Err(format!("messages.{at}: a block {other:?} of the user")),
        }
        results_over = true;
    }
    Ok(())
}

fn result(block: &Value, at: usize) -> Result<(), String> {
    match &block["content"] {
        Value::String(text) => not_blank(text, "a result"),
        Value::Array(parts) => parts.iter().try_for_each(|part| match part["type"].as_str() {
            Some("text") => text_block(part, "a result"),
            Some("image") if block["is_error"] == true => Err(format!("messages.{at}: an error with a picture")),
            Some("image") => image(part, at),
            other => Err(format!("messages.{at}: a result with a block {other:?}")),
        }),
        other => Err(format!("messages.{at}: a result that holds {other}")),
    }
}

fn assistant(blocks: &[Value], at: usize) -> Result<(), String> {
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => text_block(block, &format!("messages.{at}"))?,
            Some("thinking") if block["signature"].as_str().is_none_or(str::is_empty) => {
                return Err(format!("messages.{at}: a thought without a signature"));
            }
            Some("tool_use") => {
                word(block["name"].as_str().unwrap_or_default(), 128)?;
                if !block["input"].is_object() {
                    return Err(format!("messages.{at}: arguments that are no object"));
                }
            }
            Some(_) => {}
            None => return Err(format!("messages.{at}: a block without a type")),
        }
        let can_be_marked = matches!(block["type"].as_str(), Some("text" | "tool_use"));
        if !can_be_marked && !block["cache_control"].is_null() {
            return Err(format!("messages.{at}: a cache mark on {}", block["type"]));
        }
    }
    let last = blocks.last().and_then(|block| block["type"].as_str());
    if matches!(last, Some("thinking" | "redacted_thinking")) {
        return Err(format!("messages.{at}: a reply that ends in a thought"));
    }
    Ok(())
}

/// Every call has one result in the message right after it, and every result its call right before.
fn check_pairs(before: &[Value], blocks: &[Value], at: usize) -> Result<(), String> {
    let ids = |blocks: &[Value], kind: &str, key: &str| -> Vec<String> {
        let of_kind = blocks.iter().filter(|block| block["type"] == kind);
        of_kind.map(|block| block[key].as_str().unwrap_or_default().to_owned()).collect()
    };
    let (mut calls, mut results) = (ids(before, "tool_use", "id"), ids(blocks, "tool_result", "tool_use_id"));
    calls.iter().try_for_each(|id| word(id, 64))?;
    calls.sort();
    results.sort();
    if calls == results {
        Ok(())
    } else {
        Err(format!("messages.{at}: calls {calls:?} have the results {results:?}"))
    }
}

fn ids_once(messages: &[Value]) -> Result<(), String> {
    let calls = messages.iter().flat_map(content).filter(|block| block["type"] == "tool_use");
    let mut ids: Vec<&str> = calls.filter_map(|block| block["id"].as_str()).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two calls have the id {}", pair[0])),
        None => Ok(()),
    }
}

fn text_block(block: &Value, place: &str) -> Result<(), String> {
    not_blank(block["text"].as_str().unwrap_or_default(), place)
}

fn not_blank(text: &str, place: &str) -> Result<(), String> {
    if text.trim().is_empty() { Err(format!("{place}: a blank text")) } else { Ok(()) }
}

fn image(block: &Value, at: usize) -> Result<(), String> {
    let source = &block["source"];
    let is_whole = source["type"] == "base64" && source["media_type"].is_string() && source["data"].is_string();
    if is_whole { Ok(()) } else { Err(format!("messages.{at}: a picture without its data")) }
}

fn word(text: &str, longest: usize) -> Result<(), String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fits = !text.is_empty() && text.len() <= longest && text.chars().all(is_good);
    if fits { Ok(()) } else { Err(format!("`{text}` is no id and no name")) }
}
