//! Checks the rules of this wire for a request, in tests only.

use std::collections::BTreeSet;

use serde_json::Value;

/// Checks the body of a request.
///
/// # Errors
/// The first rule that it breaks.
pub fn check(body: &Value) -> Result<(), String> {
    for field in ["messages", "max_tokens", "max_completion_tokens", "response_format", "reasoning_effort"] {
        ensure(body.get(field).is_none(), || format!("`{field}` is a field of chat completions"))?;
    }
    ensure(!string(body, "model").is_empty(), || "no model".to_owned())?;
    ensure(body["store"] == false, || "the response would be stored".to_owned())?;
    let most = body.get("max_output_tokens").map_or(Some(16), Value::as_u64);
    ensure(most.is_some_and(|most| most >= 16), || "`max_output_tokens` is below 16".to_owned())?;
    ensure(string(body, "prompt_cache_key").len() <= 64, || "`prompt_cache_key` is too long".to_owned())?;
    let tools = list(body, "tools");
    ensure(body.get("tool_choice").is_none() || !tools.is_empty(), || "`tool_choice` without tools".to_owned())?;
    for tool in tools {
        check_tool(tool)?;
    }
    let input = list(body, "input");
    ensure(!input.is_empty(), || "`input` is empty".to_owned())?;
    let mut checked = Checked::default();
    for (n, item) in input.iter().enumerate() {
        checked.item(item, input.get(n + 1)).map_err(|why| format!("input[{n}]: {why}: {item}"))?;
    }
    checked.all_answered()
}

fn check_tool(tool: &Value) -> Result<(), String> {
    let name = string(tool, "name");
    ensure(string(tool, "type") == "function" && tool.get("function").is_none(), || format!("not flat: {tool}"))?;
    ensure(is_word(name), || format!("the name of a tool: {name}"))?;
    ensure(tool["parameters"].is_object() && tool["strict"].is_boolean(), || format!("{name} lacks a field"))
}

/// The items so far.
#[derive(Default)]
struct Checked {
    /// Calls without an output.
    open: BTreeSet<String>,
    ids: BTreeSet<String>,
    call_ids: BTreeSet<String>,
    /// True if the current turn of the model contains reasoning.
    thought: bool,
    /// True if the item before is an output.
    after_output: bool,
}

impl Checked {
    fn item(&mut self, item: &Value, next: Option<&Value>) -> Result<(), String> {
        let (kind, role) = (string(item, "type"), string(item, "role"));
        let by_model = role == "assistant" || matches!(kind, "reasoning" | "function_call");
        if kind != "function_call_output" && (!by_model || self.after_output) {
            self.all_answered()?;
            self.thought = false;
        }
        self.after_output = kind == "function_call_output";
        if let Some(id) = item.get("id") {
            let id = id.as_str().unwrap_or_default();
            ensure(is_word(id), || "an id that is refused".to_owned())?;
            ensure(self.ids.insert(id.to_owned()), || "an id that came before".to_owned())?;
        }
        match (kind, role) {
            ("message" | "", "user" | "developer" | "system") => content(&item["content"]),
            ("message" | "", "assistant") => {
                let said = |part: &Value| {
                    string(part, "type") == "output_text" && !string(part, "text").trim().is_empty()
                };
                ensure(!string(item, "id").is_empty(), || "no id".to_owned())?;
                let parts = list(item, "content");
                ensure(!parts.is_empty() && parts.iter().all(said), || "no text".to_owned())
            }
            ("reasoning", _) => {
                self.thought = true;
                let holds = !string(item, "encrypted_content").is_empty() || !list(item, "content").is_empty();
                ensure(holds && item["summary"].is_array(), || "nothing of the reasoning".to_owned())?;
                let led_to = |next: &Value| {
                    string(next, "role") == "assistant"
                        || matches!(string(next, "type"), "reasoning" | "function_call")
                };
                ensure(next.is_some_and(led_to), || "without the item that it led to".to_owned())
            }
            ("function_call", _) => self.call(item),
            ("function_call_output", _) => {
                let call = string(item, "call_id");
                ensure(self.open.remove(call), || "no call waits for this output".to_owned())?;
                content(&item["output"])
            }
            _ => Err("an unknown item".to_owned()),
        }
    }

    fn call(&mut self, item: &Value) -> Result<(), String> {
        let (call_id, name, arguments) =
            (string(item, "call_id"), string(item, "name"), string(item, "arguments"));
        ensure(is_word(call_id) && is_word(name), || "a call id or a name that is refused".to_owned())?;
        ensure(self.call_ids.insert(call_id.to_owned()), || "a call id that came before".to_owned())?;
        self.open.insert(call_id.to_owned());
        let parsed = serde_json::from_str::<Value>(arguments);
        ensure(parsed.is_ok_and(|parsed| parsed.is_object()), || "arguments that are no object".to_owned())?;
        match item.get("id").and_then(Value::as_str) {
            Some(id) if !id.starts_with("fc_") => Err("an id that is not one of a call".to_owned()),
            Some(_) if !self.thought => Err("an id without the reasoning that it came with".to_owned()),
            _ => Ok(()),
        }
    }

    fn all_answered(&self) -> Result<(), String> {
        ensure(self.open.is_empty(), || format!("no output for {:?}", self.open))
    }
}

/// A text, or a list of texts and pictures.
fn content(content: &Value) -> Result<(), String> {
    let is_good = |part: &Value| match string(part, "type") {
        "input_text" => !string(part, "text").trim().is_empty(),
        "input_image" => string(part, "image_url").starts_with("data:image/"),
        _ => false,
    };
    let is_good = match content {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(parts) => !parts.is_empty() && parts.iter().all(is_good),
        _ => false,
    };
    ensure(is_good, || "content that is refused".to_owned())
}

fn is_word(text: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.len() <= 64 && text.chars().all(is_good)
}

fn string<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_servers_refuse_is_found() {
        let user = || json!({"role": "user", "content": "u"});
        let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
        let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "out"});
        let thought = || json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
        let with_id = |mut item: Value| {
            item["id"] = "fc_1".into();
            item
        };
        for (input, refusal) in [
            (json!([user(), call("a"), call("b"), output("a"), output("b"), user()]), None),
            (json!([user(), thought(), with_id(call("a")), output("a")]), None),
            (json!([]), Some("empty")),
            (json!([user(), call("a"), user()]), Some("no output for")),
            (json!([user(), call("a")]), Some("no output for")),
            (json!([user(), output("a")]), Some("no call waits")),
            (json!([user(), call("a"), output("a"), output("a")]), Some("no call waits")),
            (json!([user(), call("a"), output("a"), call("a"), output("a")]), Some("came before")),
            (json!([user(), with_id(call("a")), output("a")]), Some("without the reasoning")),
            (json!([user(), thought()]), Some("without the item")),
            (json!([user(), thought(), user()]), Some("without the item")),
            (json!([user(), call("a b"), output("a b")]), Some("refused")),
            (json!([{"role": "user", "content": " "}]), Some("refused")),
        ] {
            let body = json!({"model": "m", "store": false, "input": input});
            match (check(&body), refusal) {
                (Ok(()), None) => {}
                (Err(why), Some(refusal)) => assert!(why.contains(refusal), "{why}"),
                (checked, _) => unreachable!("{checked:?}: {body}"),
            }
        }
    }
}
