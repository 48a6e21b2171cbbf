//! Reasoning that comes as a list of parts, which go back as a whole: a router's `reasoning_details`, and Anthropic's
//! `thinking_blocks` behind a translator.

use serde_json::Value;

/// The parts of a reply so far, in order.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Value>);

impl Details {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the parts of one chunk: each continues the last one if both are text of one kind, and otherwise begins
    /// another. Encrypted parts stay separate.
    pub fn add(&mut self, parts: Value) {
        let Value::Array(parts) = parts else { return };
        for part in parts {
            match self.0.last_mut() {
                Some(last) if continues_part(last, &part) => join_parts(last, part),
                _ => self.0.push(part),
            }
        }
    }

    /// The visible text of a list of parts.
    pub fn text(parts: &Value) -> String {
        let texts =
            parts.as_array().into_iter().flatten().filter_map(|part| {
                ["text", "summary", "thinking"].iter().find_map(|field| part.get(field)?.as_str())
            });
        texts.collect()
    }

    pub fn take(&mut self) -> Value {
        Value::Array(std::mem::take(&mut self.0))
    }
}

/// Fields whose texts are joined.
const JOINED: [&str; 3] = ["text", "summary", "thinking"];

fn continues_part(last: &Value, part: &Value) -> bool {
    let same = |field: &str| last.get(field) == part.get(field) || part.get(field).is_none_or(Value::is_null);
    let is_signed = |part: &Value| part.get("signature").and_then(Value::as_str).is_some_and(|s| !s.is_empty());
    let is_data = |part: &Value| part.get("data").is_some();
    same("type") && same("index") && same("id") && !is_data(last) && !is_data(part) && !is_signed(last)
}

fn join_parts(last: &mut Value, part: Value) {
    let (Value::Object(last), Value::Object(part)) = (last, part) else { return };
    for (field, value) in part {
        match (last.get_mut(&field), &value) {
            (Some(Value::String(before)), Value::String(more)) if JOINED.contains(&field.as_str()) => {
                before.push_str(more);
            }
            (Some(known), _) if !known.is_null() && value.is_null() => {}
            _ => {
                last.insert(field, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_of_text_are_joined_and_encrypted_parts_stay_apart() {
        let mut details = Details::default();
        for chunk in [
            json!([{"type": "reasoning.text", "text": "Look ", "index": 0, "format": "f"}]),
            json!([{"type": "reasoning.text", "text": "first.", "index": 0, "signature": null}]),
            json!([{"type": "reasoning.text", "index": 0, "signature": "s1"}]),
            json!([{"type": "reasoning.encrypted", "data": "e1", "id": "r1", "index": 1}]),
            json!([{"type": "reasoning.encrypted", "data": "e2", "id": "r2", "index": 1}]),
        ] {
            details.add(chunk);
        }
        assert_eq!(
            details.take(),
            json!([
                {"type": "reasoning.text", "text": "Look first.", "index": 0, "format": "f", "signature": "s1"},
                {"type": "reasoning.encrypted", "data": "e1", "id": "r1", "index": 1},
                {"type": "reasoning.encrypted", "data": "e2", "id": "r2", "index": 1},
            ])
        );
    }
}
