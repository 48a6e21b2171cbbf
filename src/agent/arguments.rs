//! The arguments of a call, as a weak model writes them: read as JSON, repaired where the meaning is plain, checked
//! against the tool's schema. What cannot be read is an error for the model, never an empty object.

use jsonschema::Validator;
use serde_json::Value;

/// Reads the text of a call's arguments as a JSON object.
///
/// # Errors
/// A sentence for the model: what is wrong and where.
pub fn read(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        // A call without arguments: several servers write nothing at all for it.
        return Ok(Value::Object(serde_json::Map::new()));
    }
    document(text).map_err(|why| format!("The arguments are {why}")).and_then(object)
}

/// Reads a text that should be one JSON document.
///
/// # Errors
/// A sentence for the model, to follow the name of the text.
pub fn document(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let first_error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    repairs(text).find_map(|candidate| serde_json::from_str(&candidate).ok()).ok_or_else(|| {
        format!(
            "not valid JSON: {first_error}. Send one complete JSON document, with strings escaped and nothing around it."
        )
    })
}

fn object(value: Value) -> Result<Value, String> {
    match value {
        Value::Object(_) => Ok(value),
        // Some models encode the object a second time, as a string.
        Value::String(inner) => match serde_json::from_str::<Value>(&inner) {
            Ok(value @ Value::Object(_)) => Ok(value),
            _ => Err("The arguments are a JSON string; expected a JSON object.".to_owned()),
        },
        other => Err(format!("The arguments are {}; expected a JSON object.", kind(&other))),
    }
}

/// Rewritings in the order of how little they assume: without a code fence, the first balanced block, and each of
/// those without trailing commas.
fn repairs(text: &str) -> impl Iterator<Item = String> {
    let unfenced = without_fence(text);
    let block = first_balanced_block(unfenced);
    let plain = [Some(unfenced), block].into_iter().flatten().map(str::to_owned).collect::<Vec<_>>();
    let commas = plain.iter().map(|text| without_trailing_commas(text)).collect::<Vec<_>>();
    plain.into_iter().chain(commas)
}

fn without_fence(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("```") else { return text };
    let rest = rest.split_once('\n').map_or(rest, |(_, body)| body);
    rest.rsplit_once("```").map_or(rest, |(body, _)| body).trim()
}

/// From the first `{` to the brace that closes it, strings respected.
fn first_balanced_block(text: &str) -> Option<&str> {
    let start = text.find('{')?;
    let mut depth = 0usize;
    let mut scan = StringScan::default();
    for (at, byte) in text.bytes().enumerate().skip(start) {
        if scan.inside(byte) {
            continue;
        }
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(&text[start..=at]);
                }
            }
            _ => {}
        }
    }
    None
}

fn without_trailing_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut scan = StringScan::default();
    for (at, c) in text.char_indices() {
        // Only ASCII decides whether a string is open, so a lead byte stands for its character.
        let inside = scan.inside(text.as_bytes()[at]);
        let closes_next = || text[at + 1..].trim_start().starts_with(['}', ']']);
        if c == ',' && !inside && closes_next() {
            continue;
        }
        out.push(c);
    }
    out
}

/// Tracks whether a JSON text is inside a string.
#[derive(Default)]
struct StringScan {
    open: bool,
    escaped: bool,
}

impl StringScan {
    /// Takes the next byte; true when it belongs to a string, its quotes included.
    fn inside(&mut self, byte: u8) -> bool {
        if self.escaped {
            self.escaped = false;
            return true;
        }
        match byte {
            b'\\' if self.open => self.escaped = true,
            b'"' => {
                self.open = !self.open;
                return true;
            }
            _ => {}
        }
        self.open
    }
}

/// Checks a value against a schema. `what` begins the sentence: `The arguments do`.
///
/// # Errors
/// All mistakes, one a line: path, what was expected, what was given.
pub fn validate(what: &str, validator: &Validator, value: &Value) -> Result<(), String> {
    let mistakes: Vec<String> = validator
        .iter_errors(value)
        .map(|error| {
            let path = error.instance_path().to_string();
            let place = if path.is_empty() { "the whole".to_owned() } else { format!("`{}`", &path[1..]) };
            format!("- {place}: {error}")
        })
        .collect();
    if mistakes.is_empty() { Ok(()) } else { Err(format!("{what} not match:\n{}", mistakes.join("\n"))) }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_a_weak_model_writes_is_read_where_its_meaning_is_plain() {
        let wanted = json!({"path": "a,}b", "n": [1, 2]});
        let table = [
            ("as it should be", r#"{"path":"a,}b","n":[1,2]}"#),
            ("in a fence", "```json\n{\"path\":\"a,}b\",\"n\":[1,2]}\n```"),
            ("in a fence on one line", r#"```{"path":"a,}b","n":[1,2]}```"#),
            ("with prose around it", r#"Sure! {"path":"a,}b","n":[1,2]} - done"#),
            ("with trailing commas", r#"{"path":"a,}b","n":[1,2,],}"#),
            ("with prose and trailing commas", r#"args = {"path":"a,}b","n":[1,2 , ] , };"#),
            ("encoded twice", r#""{\"path\":\"a,}b\",\"n\":[1,2]}""#),
        ];
        for (what, text) in table {
            assert_eq!(read(text).as_ref(), Ok(&wanted), "{what}");
        }
    }

    #[test]
    fn nothing_at_all_is_a_call_without_arguments() {
        assert_eq!(read("  "), Ok(json!({})));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_never_an_empty_object() {
        for text in ["{\"path\": \"a", "[1]", "null", "path=a", "\"text\"", "{\"a\": }", "}{"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_mistake_names_path_expected_and_given() {
        let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}});
        let validator = jsonschema::validator_for(&schema).expect("the schema is sound");
        let text = validate("The arguments do", &validator, &json!({"limit": "ten", "extra": 1})).unwrap_err();
        for part in ["`limit`", "\"ten\"", "integer", "path", "required", "extra"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    proptest! {
        #[test]
        fn valid_objects_are_read_unchanged(key in "[a-z]{1,8}", value in ".{0,40}") {
            let object = json!({key: value});
            prop_assert_eq!(read(&object.to_string()), Ok(object));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{},:\"\\\\a`é\n ]{0,40}") {
            let _ = read(&text);
        }
    }
}
