//! The arguments of a call as the model wrote them, made JSON where that can be done without guessing: a code fence,
//! words around it, a trailing comma. Never an empty object in place of what cannot be read.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

/// Reads arguments as an object, repaired where that is safe. No text at all is a call without arguments.
///
/// # Errors
/// Why the text as it stands is no JSON object, with line and column.
pub fn read(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let reason = match parse(text) {
        Ok(Value::Object(arguments)) => return Ok(arguments),
        // Some models write the object as a string once more.
        Ok(Value::String(inner)) if inner.trim_start().starts_with('{') => {
            return read(&inner);
        }
        Ok(other) => format!("expected an object, got {}", kind_of(&other)),
        Err(error) => error.to_string(),
    };
    repaired(text).ok_or(reason)
}

/// Arguments as they go back to a server in history: always the text of a JSON object, since servers refuse anything
/// else for as long as it is in the conversation. What is sound already goes back verbatim.
pub(super) fn for_history(text: &str) -> Cow<'_, str> {
    let is_object = text.trim_start().starts_with('{');
    if is_object && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Cow::Borrowed(text);
    }
    let object = read(text).map_or_else(|_| json!({ "unparsed": text }), Value::Object);
    Cow::Owned(object.to_string())
}

/// Whether a text is one whole JSON object: nothing more can be added to it. Cheap where it plainly is not.
pub(super) fn is_complete(text: &str) -> bool {
    text.trim_end().ends_with('}') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text)
}

fn repaired(text: &str) -> Option<Map<String, Value>> {
    let block = first_block(text)?;
    match parse(block).or_else(|_| parse(&without_trailing_commas(block))) {
        Ok(Value::Object(arguments)) => Some(arguments),
        _ => None,
    }
}

/// From the first brace to the one that closes it. `None` when nothing does, or when another object follows: which of
/// the two was meant would be a guess.
fn first_block(text: &str) -> Option<&str> {
    let start = text.find('{')?;
    let mut depth = 0usize;
    let mut end = None;
    each_outside_strings(&text[start..], |at, byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if byte == b'}' && depth == 0 && end.is_none() {
            end = Some(start + at + 1);
        }
    });
    let end = end?;
    (!text[end..].contains('{')).then(|| &text[start..end])
}

fn without_trailing_commas(text: &str) -> String {
    let mut drop = Vec::new();
    let mut comma = None;
    each_outside_strings(text, |at, byte| match byte {
        b',' => comma = Some(at),
        b'}' | b']' => drop.extend(comma.take()),
        byte if byte.is_ascii_whitespace() => {}
        _ => comma = None,
    });
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for at in drop {
        out.push_str(&text[from..at]);
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out
}

/// Calls `seen` with the place of each byte that is not inside a JSON string; the quotes count as outside.
fn each_outside_strings(text: &str, mut seen: impl FnMut(usize, u8)) {
    let (mut inside, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match (inside, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => {
                inside = !inside;
                seen(at, byte);
            }
            (true, _) => {}
            (false, byte) => seen(at, byte),
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repaired_and_what_is_not() {
        for (text, expected) in [
            (r#"{"a":1}"#, Some(r#"{"a":1}"#)),
            ("", Some("{}")),
            ("  ", Some("{}")),
            ("```json\n{\"a\": 1}\n```", Some(r#"{"a":1}"#)),
            ("Here you are: {\"a\": 1}. Good luck!", Some(r#"{"a":1}"#)),
            (r#"{"a":[1,2,],"b":{"c":3,},}"#, Some(r#"{"a":[1,2],"b":{"c":3}}"#)),
            (r#"{"a":"x,}","b":"}",}"#, Some(r#"{"a":"x,}","b":"}"}"#)),
            (r#"{"a":"say \"hi\", ok",}"#, Some(r#"{"a":"say \"hi\", ok"}"#)),
            (r#""{\"a\":1}""#, Some(r#"{"a":1}"#)),
            (r#"{"a":1"#, None),
            (r#"{"a":"#, None),
            (r#"{"a":1}{"a":2}"#, None),
            ("[1]", None),
            ("null", None),
            ("path=x", None),
        ] {
            let read = read(text).ok().map(|object| Value::Object(object).to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn history_never_holds_a_malformed_call() {
        for (text, sent) in [
            (r#"{ "a": 1 }"#, r#"{ "a": 1 }"#),
            ("", "{}"),
            (r#"{"a":1,}"#, r#"{"a":1}"#),
            (r#"{"a":"#, r#"{"unparsed":"{\"a\":"}"#),
            ("[1]", r#"{"unparsed":"[1]"}"#),
        ] {
            assert_eq!(for_history(text), sent, "{text}");
        }
    }
}
