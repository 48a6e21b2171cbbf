//! Reads JSON as weak models write it: in a code fence, with words around it, with trailing commas. It is repaired if
//! the meaning is clear; unreadable text is an error, never an empty object.

use serde_json::{Map, Value, json};

/// Reads the arguments of a call as an object. No text at all is a call without arguments.
///
/// # Errors
/// The text is not a JSON object; the error has the line and the column.
pub fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        // Several servers write nothing at all for such a call.
        return Ok(Map::new());
    }
    match find_object(text)? {
        Value::Object(object) => Ok(object),
        // Some models encode the object a second time, as a string.
        Value::String(inner) if inner.trim_start().starts_with('{') => parse_object(&inner),
        other => Err(format!("expected an object, got {}", kind_of(&other))),
    }
}

/// Reads the arguments of a call as an object in any case: anything else becomes its field `unparsed`.
pub fn object_or_unparsed(text: &str) -> Value {
    parse_object(text).map_or_else(|_| json!({ "unparsed": text }), Value::Object)
}

/// Changes every text within data, except keys of objects.
pub fn change_texts(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| change_texts(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| change_texts(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// An object for a person: one line for each key. Text is shown as it is, unless a line break or another control
/// character in it could be mistaken for a line of the list.
pub fn list_keys(value: &Value) -> String {
    let Value::Object(object) = value else { return value.to_string() };
    let line = |(key, value): (&String, &Value)| match value {
        Value::String(text) if !text.chars().any(char::is_control) => format!("{key}: {text}"),
        other => format!("{key}: {other}"),
    };
    if object.is_empty() {
        return "(no arguments)".to_owned();
    }
    object.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// An upper bound of the bytes of a value as JSON without spaces, computed without writing it.
pub fn most_bytes(value: &Value) -> usize {
    /// An escaped control character: `\u001f`.
    const ESCAPED: usize = 6;
    /// Longer than any number or word, and than the marks around anything else.
    const PLAIN: usize = 24;
    let text = |text: &str| {
        let escaped = text.bytes().filter(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\')).count();
        text.len() + escaped * ESCAPED
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => PLAIN,
        Value::String(string) => text(string) + PLAIN,
        Value::Array(items) => PLAIN + items.iter().map(most_bytes).sum::<usize>() + items.len(),
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| text(key) + b"\"\":,".len() + most_bytes(value);
            PLAIN + entries.iter().map(entry).sum::<usize>()
        }
    }
}

/// Reads the text as it is, else its first object, else that without trailing commas.
fn find_object(text: &str) -> Result<Value, String> {
    let first_error = match serde_json::from_str(text.trim()) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let block = first_block(text, &['{']).ok_or_else(|| first_error.to_string())?;
    serde_json::from_str(block)
        .or_else(|_| serde_json::from_str(&without_trailing_commas(block)))
        .map_err(|_| first_error.to_string())
}

/// The text from the first opener to the bracket that closes it; `None` if nothing does.
pub(super) fn first_block<'t>(text: &'t str, openers: &[char]) -> Option<&'t str> {
    let start = text.find(openers)?;
    let mut depth = 0usize;
    let mut end = None;
    each_outside_strings(&text[start..], |at, byte| match byte {
        b'{' | b'[' => depth += 1,
        b'}' | b']' => {
            depth = depth.saturating_sub(1);
            if depth == 0 && end.is_none() {
                end = Some(start + at + 1);
            }
        }
        _ => {}
    });
    Some(&text[start..end?])
}

pub(super) fn without_trailing_commas(text: &str) -> String {
    let mut superfluous = Vec::new();
    let mut comma = None;
    each_outside_strings(text, |at, byte| match byte {
        b',' => comma = Some(at),
        b'}' | b']' => superfluous.extend(comma.take()),
        byte if byte.is_ascii_whitespace() => {}
        _ => comma = None,
    });
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for at in superfluous {
        out.push_str(&text[from..at]);
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out
}

/// Calls `seen` with the place of each byte that is not inside a JSON string; the quotes count as outside.
fn each_outside_strings(text: &str, mut seen: impl FnMut(usize, u8)) {
    each_byte(text, |at, byte, is_in_string| {
        if !is_in_string {
            seen(at, byte);
        }
    });
}

/// Calls `seen` with each byte, its place, and whether it is inside a JSON string; the quotes count as outside.
pub(super) fn each_byte(text: &str, mut seen: impl FnMut(usize, u8, bool)) {
    let (mut inside, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        let is_quote = byte == b'"' && !escaped;
        seen(at, byte, inside && !is_quote);
        inside ^= is_quote;
        escaped = inside && byte == b'\\' && !escaped;
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
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_repaired_and_what_is_not() {
        for (text, expected) in [
            (r#"{"a":1}"#, Some(r#"{"a":1}"#)),
            ("", Some("{}")),
            ("  ", Some("{}")),
            ("```json\n{\"a\": 1}\n```", Some(r#"{"a":1}"#)),
            ("```{\"a\": 1}```", Some(r#"{"a":1}"#)),
            ("Here you are: {\"a\": 1}. Good luck!", Some(r#"{"a":1}"#)),
            (r#"{"a":[1,2,],"b":{"c":3,},}"#, Some(r#"{"a":[1,2],"b":{"c":3}}"#)),
            (r#"{"a":"x,}","b":"}",}"#, Some(r#"{"a":"x,}","b":"}"}"#)),
            (r#"{"a":"say \"hi\", ok",}"#, Some(r#"{"a":"say \"hi\", ok"}"#)),
            (r#""{\"a\":1}""#, Some(r#"{"a":1}"#)),
            (r#"{"a":1"#, None),
            (r#"{"a":"#, None),
            (r#"{"a":1}{"a":2}"#, Some(r#"{"a":1}"#)),
            (r#"{"a":1}}"#, Some(r#"{"a":1}"#)),
            (r#"args [1]: {"a":1}"#, Some(r#"{"a":1}"#)),
            ("[1]", None),
            ("null", None),
            ("path=x", None),
            ("}{", None),
        ] {
            let read = parse_object(text).ok().map(|object| Value::Object(object).to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sound_is_read_unchanged(key in "[a-z]{1,8}", value in ".{0,40}") {
            let sound = json!({key: value});
            prop_assert_eq!(parse_object(&sound.to_string()).map(Value::Object), Ok(sound));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{},:\"\\\\a`é\n ]{0,40}") {
            let _ = parse_object(&text);
        }
    }

    proptest! {
        #[test]
        fn no_value_is_longer_than_it_may_be(
            text in "\\PC*", control in "[\\x00-\\x1f\"\\\\]*", number in any::<f64>(), whole in any::<i64>(),
        ) {
            let value = json!({
                &text: [null, true, number, whole], "list": [[], {}, &text], &control: { "x": &control },
            });
            prop_assert!(most_bytes(&value) >= value.to_string().len());
        }
    }
}
