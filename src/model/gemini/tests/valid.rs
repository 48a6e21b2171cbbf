//! Checks the rules of Gemini's own interface for a request, in tests only.

use serde_json::Value;

/// Checks a body: every call is answered by name in the content after it, and every part says something.
pub fn check(body: &Value) -> Result<(), String> {
    let contents = body["contents"].as_array().ok_or("there are no contents")?;
    let mut open: Vec<&str> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let wrong = |what: &str| Err(format!("contents[{at}] {what}: {content}"));
        let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
        let names = |key: &str| -> Vec<&str> {
            parts.iter().filter_map(|part| part.get(key)?.get("name")?.as_str()).collect()
        };
        if parts.is_empty() {
            return wrong("has no parts");
        }
        if names("functionResponse") != std::mem::take(&mut open) {
            return wrong("does not answer the calls before it");
        }
        match content["role"].as_str() {
            Some("user") => {}
            Some("model") if at > 0 => open = names("functionCall"),
            _ => return wrong("has no role, or the model begins"),
        }
        for part in parts {
            let is_signed = part["thoughtSignature"].is_string();
            let kinds = ["text", "functionCall", "functionResponse", "inlineData"];
            if kinds.iter().filter(|kind| part.get(**kind).is_some()).count() != 1 {
                return wrong("has a part that is not of one kind");
            }
            if part["text"].as_str().is_some_and(|text| text.trim().is_empty()) && !is_signed {
                return wrong("has an empty text");
            }
            if part.get("functionCall").is_some_and(|call| !call["args"].is_object()) {
                return wrong("has arguments that are no object");
            }
        }
    }
    match contents.last().map(|content| &content["role"]) {
        _ if !open.is_empty() => Err(format!("the calls {open:?} have no results")),
        Some(role) if role == "user" => Ok(()),
        _ => Err("the model has the last word".to_owned()),
    }
}
