//! The arguments of a call: read leniently, checked strictly against the tool's schema.

use jsonschema::Validator;
use serde_json::Value;

use crate::json;

/// Reads the text of a call's arguments.
///
/// # Errors
/// A sentence for the model.
pub fn read(text: &str) -> Result<Value, String> {
    json::object(text).map(Value::Object).map_err(|why| {
        format!(
            "The arguments are not usable JSON: {why}. Send one complete JSON object, with strings escaped and \
             nothing around it."
        )
    })
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
            let place = path.strip_prefix('/').map_or("the whole".to_owned(), |path| format!("`{path}`"));
            format!("- {place}: {error}")
        })
        .collect();
    if mistakes.is_empty() { Ok(()) } else { Err(format!("{what} not match:\n{}", mistakes.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mistake_names_path_expected_and_given() {
        let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}});
        let validator = jsonschema::validator_for(&schema).expect("the schema is sound");
        let text = validate("The arguments do", &validator, &json!({"limit": "ten", "extra": 1}))
            .expect_err("three mistakes");
        for part in ["`limit`", "\"ten\"", "integer", "path", "required", "extra"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
