//! JSON Schemas: compiled once, and what does not match told in sentences that a model can act upon. The one door to
//! `jsonschema`.

use serde_json::Value;

/// A compiled JSON Schema.
pub struct Validator(jsonschema::Validator);

impl Validator {
    /// # Errors
    /// Why this is no valid JSON Schema.
    pub fn new(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            path => format!("{path}: {error}"),
        })
    }

    /// Checks a value. `what` begins the sentence: `The arguments do`.
    ///
    /// # Errors
    /// All mistakes, one a line: path, what was expected, what was given.
    pub fn check(&self, what: &str, value: &Value) -> Result<(), String> {
        let mistakes: Vec<String> = self
            .0
            .iter_errors(value)
            .map(|error| {
                let path = error.instance_path().to_string();
                let place = path.strip_prefix('/').map_or("the whole".to_owned(), |path| format!("`{path}`"));
                format!("- {place}: {error}")
            })
            .collect();
        if mistakes.is_empty() { Ok(()) } else { Err(format!("{what} not match:\n{}", mistakes.join("\n"))) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Validator;

    #[test]
    fn a_mistake_names_path_expected_and_given() {
        let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}});
        let validator = Validator::new(&schema).expect("the schema is sound");
        let text =
            validator.check("The arguments do", &json!({"limit": "ten", "extra": 1})).expect_err("three mistakes");
        for part in ["`limit`", "\"ten\"", "integer", "path", "required", "extra"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
