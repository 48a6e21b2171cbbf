//! JSON Schemas: compiled once; mistakes become sentences that a model can act upon. The only user of `jsonschema`.
//!
//! A schema is checked against the meta-schema of its draft, which has to be compiled first: that of 2020-12, in eight
//! vocabularies, takes several times as long as that of draft 7. So a schema whose keywords mean the same in both, like
//! those of nearly all tools, is read as draft 7.

use std::collections::BTreeMap;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::LocationSegment;
use jsonschema::{Draft, JsonType, JsonTypeSet, ValidationError, ValidationOptions};
use serde_json::Value;

use crate::base::text;

/// A compiled JSON Schema.
pub struct Validator {
    compiled: jsonschema::Validator,
    schema: Value,
}

/// A place in a value that is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hole {
    /// It may become any value.
    Anything,
    /// It becomes some text.
    Text,
}

/// The parts of a value that are not known yet.
#[derive(Debug, Clone, Copy)]
pub struct Unknown<'a> {
    /// The places, as JSON pointers.
    pub holes: &'a BTreeMap<String, Hole>,
    /// True if missing fields may come later.
    pub may_lack_fields: bool,
}

impl Validator {
    /// # Errors
    /// It is not a valid JSON Schema; the error gives the reason.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let options = jsonschema::options();
        // Draft 2020-12 does not check formats by itself.
        let plain = is_plain(schema);
        let options =
            if plain { options.with_draft(Draft::Draft7).should_validate_formats(false) } else { options };
        Self::build(schema, &options)
    }

    /// One that also checks `format`, by the names of the newest draft. A name that it does not know allows everything.
    ///
    /// # Errors
    /// It is not a valid JSON Schema; the error gives the reason.
    pub fn with_formats(schema: &Value) -> Result<Self, String> {
        Self::build(schema, &jsonschema::options().should_validate_formats(true))
    }

    fn build(schema: &Value, options: &ValidationOptions) -> Result<Self, String> {
        match options.build(schema) {
            Ok(compiled) => Ok(Self { compiled, schema: schema.clone() }),
            Err(error) => Err(match error.instance_path().as_str() {
                "" => error.to_string(),
                path => format!("{path}: {error}"),
            }),
        }
    }

    /// Checks a value. `what` begins the sentence: `The arguments do`.
    ///
    /// # Errors
    /// The value does not match; the error has all mistakes, one per line: path, expected, given.
    pub fn check(&self, what: &str, value: &Value) -> Result<(), String> {
        let mistakes: Vec<String> =
            self.compiled.iter_errors(value).flat_map(|error| self.lines(&error)).collect();
        if mistakes.is_empty() { Ok(()) } else { Err(format!("{what} not match:\n{}", mistakes.join("\n"))) }
    }

    /// The schema as it was given.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The mistakes of a value that remain whatever its unknown parts become, one per line.
    pub fn certain_mistakes(&self, value: &Value, unknown: Unknown<'_>) -> Vec<String> {
        let errors = self.compiled.iter_errors(value).filter(|error| unknown.leaves_certain(error));
        errors.flat_map(|error| self.lines(&error)).collect()
    }

    fn lines(&self, error: &ValidationError<'_>) -> Vec<String> {
        let at = format_path(error);
        let line = |at: &str, mistake: &str| match at {
            "" => format!("- the whole: {mistake}"),
            at => format!("- `{}`: {mistake}", text::make_visible(at)),
        };
        match error.kind() {
            Kind::Required { property } => {
                vec![line(&extend_path(&at, property.as_str().unwrap_or_default()), "required, but missing")]
            }
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let mistake = match self.names_beside(error) {
                    names if names.is_empty() => "unknown".to_owned(),
                    names => format!("unknown; expected one of {}", names.join(", ")),
                };
                unexpected.iter().map(|name| line(&extend_path(&at, name), &mistake)).collect()
            }
            _ => vec![line(&at, &word_mistake(error))],
        }
    }

    /// The names that the schema lists if it refuses others.
    fn names_beside(&self, error: &ValidationError<'_>) -> Vec<&str> {
        let parent = error.schema_path().as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
        let properties = self.schema.pointer(parent).and_then(|schema| schema["properties"].as_object());
        properties.into_iter().flat_map(serde_json::Map::keys).map(String::as_str).collect()
    }
}

impl Unknown<'_> {
    /// True if a mistake remains whatever the unknown parts become.
    fn leaves_certain(&self, error: &ValidationError<'_>) -> bool {
        let place = error.instance_path().as_str();
        let is_type = matches!(error.kind(), Kind::Type { .. });
        match self.holes.get(place) {
            Some(Hole::Anything) => return false,
            Some(Hole::Text) => return is_type,
            None => {}
        }
        let below = |hole: &String| hole.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'));
        let holds_hole = self.holes.keys().any(below);
        match error.kind() {
            Kind::Required { .. } | Kind::MinProperties { .. } => !self.may_lack_fields,
            Kind::Type { .. }
            | Kind::AdditionalProperties { .. }
            | Kind::MinItems { .. }
            | Kind::MaxItems { .. }
            | Kind::AdditionalItems { .. }
            | Kind::MaxProperties { .. }
            | Kind::PropertyNames { .. } => true,
            // A part of the value decides, and it is unknown.
            _ if self.may_lack_fields && error.instance().is_object() => false,
            _ => !holds_hole,
        }
    }
}

/// True if a schema has only keywords that mean the same in draft 7 and in draft 2020-12.
fn is_plain(schema: &Value) -> bool {
    let all = |schemas: &Value| match schemas {
        Value::Object(named) => named.values().all(is_plain),
        Value::Array(forms) => forms.iter().all(is_plain),
        _ => false,
    };
    let Value::Object(words) = schema else { return schema.is_boolean() };
    words.iter().all(|(word, value)| match word.as_str() {
        "type" | "enum" | "const" | "required" | "minimum" | "maximum" | "exclusiveMinimum"
        | "exclusiveMaximum" | "multipleOf" | "minLength" | "maxLength" | "pattern" | "minItems" | "maxItems"
        | "uniqueItems" | "minProperties" | "maxProperties" | "format" | "title" | "description" | "default"
        | "examples" => true,
        "items" | "additionalProperties" | "propertyNames" | "not" => is_plain(value),
        "properties" | "patternProperties" => value.is_object() && all(value),
        "anyOf" | "oneOf" | "allOf" => value.is_array() && all(value),
        _ => false,
    })
}

/// `items[0].status`; empty for the whole.
fn format_path(error: &ValidationError<'_>) -> String {
    error.instance_path().iter().fold(String::new(), |path, segment| match segment {
        LocationSegment::Property(name) => extend_path(&path, &name),
        LocationSegment::Index(index) => format!("{path}[{index}]"),
    })
}

fn extend_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// One mistake: the expected and the given value.
fn word_mistake(error: &ValidationError<'_>) -> String {
    let given = show_value(error.instance());
    let expected = match error.kind() {
        Kind::Type { kind: TypeKind::Single(one) } => one_of_types(JsonTypeSet::from(*one)),
        Kind::Type { kind: TypeKind::Multiple(several) } => one_of_types(*several),
        Kind::Enum { options } => match options.as_array() {
            Some(options) => format!("one of {}", list_values(options)),
            None => options.to_string(),
        },
        Kind::Constant { expected_value } => expected_value.to_string(),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("at least {}", text::count_noun(*limit, "character", "characters")),
        Kind::MaxLength { limit } => format!("at most {}", text::count_noun(*limit, "character", "characters")),
        Kind::MinItems { limit } => format!("at least {}", text::count_noun(*limit, "item", "items")),
        Kind::MaxItems { limit } => format!("at most {}", text::count_noun(*limit, "item", "items")),
        Kind::AdditionalItems { limit } => format!("at most {}", text::count_noun(*limit as u64, "item", "items")),
        Kind::MinProperties { limit } => format!("at least {}", text::count_noun(*limit, "field", "fields")),
        Kind::MaxProperties { limit } => format!("at most {}", text::count_noun(*limit, "field", "fields")),
        Kind::Pattern { pattern } => format!("text that matches the regular expression {pattern}"),
        Kind::Format { format } => format!("text in the format {format}"),
        Kind::UniqueItems => "a list without duplicate items".to_owned(),
        Kind::FalseSchema => "nothing here".to_owned(),
        Kind::PropertyNames { error } => format!("other names: {}", word_mistake(error)),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => return no_form(&given, context),
        Kind::OneOfMultipleValid { .. } => {
            "exactly one of several forms to match, and more than one does".to_owned()
        }
        other => format!("a value that `{}` of the schema allows", other.keyword()),
    };
    format!("expected {expected}, got {given}")
}

/// A value that matches none of several forms: the first mistake under each.
fn no_form(given: &str, forms: &[Vec<ValidationError<'_>>]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for first in forms.iter().filter_map(|mistakes| mistakes.first()) {
        let reason = match (format_path(first).as_str(), first.kind()) {
            (at, Kind::Required { property }) => {
                format!("`{}` is missing", extend_path(at, property.as_str().unwrap_or_default()))
            }
            ("", _) => word_mistake(first),
            (at, _) => format!("`{at}`: {}", word_mistake(first)),
        };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    format!("expected one of {} forms, got {given}: {}", forms.len(), reasons.join("; or "))
}

fn one_of_types(types: JsonTypeSet) -> String {
    let names: Vec<&str> = types
        .iter()
        .map(|of| match of {
            JsonType::Null => "null",
            JsonType::Boolean => "true or false",
            JsonType::Integer => "an integer",
            JsonType::Number => "a number",
            JsonType::String => "a string",
            JsonType::Array => "a list",
            JsonType::Object => "an object",
        })
        .collect();
    names.join(" or ")
}

/// A value in a few words: the model knows what it sent.
fn show_value(value: &Value) -> String {
    const MOST_BYTES: usize = 80;
    match value {
        Value::Array(items) => format!("a list of {}", text::count_noun(items.len() as u64, "item", "items")),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.len() > MOST_BYTES => {
            format!("{}…", Value::from(text::take_head(text, MOST_BYTES)).to_string().trim_end_matches('"'))
        }
        plain => plain.to_string(),
    }
}

fn list_values(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mistake_names_path_expected_and_given() {
        let table = [
            (json!({"type": "integer"}), json!("ten"), "- the whole: expected an integer, got \"ten\""),
            (json!({"type": ["string", "null"]}), json!(true), "- the whole: expected null or a string, got true"),
            (
                json!({"required": ["path"], "properties": {"path": {}, "limit": {}}, "additionalProperties": false}),
                json!({"pth": 1}),
                "- `pth`: unknown; expected one of path, limit\n- `path`: required, but missing",
            ),
            (json!({"additionalProperties": false, "properties": {}}), json!({"a": 1}), "- `a`: unknown"),
            (json!({"properties": {"a": false}}), json!({"a": 1}), "- `a`: expected nothing here, got 1"),
            (
                json!({"properties": {"a": {"items": {"properties": {"b": {"maximum": 3}}}}}}),
                json!({"a": [{}, {"b": 4}]}),
                "- `a[1].b`: expected at most 3, got 4",
            ),
            (json!({"maxItems": 1}), json!([1, 2]), "- the whole: expected at most 1 item, got a list of 2 items"),
            (json!({"const": 3}), json!({}), "- the whole: expected 3, got an object"),
            (
                json!({"pattern": "^a"}),
                json!("b"),
                "- the whole: expected text that matches the regular expression ^a, got \"b\"",
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"required": ["id"], "type": "object"}]}),
                json!({}),
                "- the whole: expected one of 2 forms, got an object: expected a string, got an object; or `id` is missing",
            ),
        ];
        for (schema, value, expected) in table {
            let validator = Validator::new(&schema).expect("the schema is sound");
            let text = validator.check("The arguments do", &value).expect_err("a mistake");
            assert_eq!(text.strip_prefix("The arguments do not match:\n"), Some(expected), "{value} by {schema}");
        }
    }

    #[test]
    fn plain_words_mean_the_same_in_both_drafts() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "pattern": "^/", "format": "email", "description": "x"},
                "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 2, "uniqueItems": true},
                "mode": {"enum": ["a", "b"], "default": "a"},
                "form": {"anyOf": [{"const": 1}, {"type": "object", "required": ["id"]}]},
                "some": {"not": {"exclusiveMinimum": 3, "multipleOf": 2}},
                // The name of a property is no word of the schema.
                "$ref": {"oneOf": [{"type": "null"}, {"maximum": 3}]},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        assert!(is_plain(&schema));
        let plain = Validator::new(&schema).expect("the schema is sound");
        let compiled = jsonschema::validator_for(&schema).expect("the schema is sound");
        let newest = Validator { compiled, schema: schema.clone() };
        for value in [
            json!({"path": "/a"}),
            json!({"path": "", "mode": "c", "form": {}, "$ref": 7}),
            json!({"path": "/no address", "lines": [0, 1.5, "x"], "some": 4}),
            json!({"lines": [1, 1], "form": 2, "$ref": "x", "extra": 1}),
            json!([]),
        ] {
            assert_eq!(plain.check("It does", &value), newest.check("It does", &value), "{value}");
        }
        for (word, value) in [
            ("$ref", json!("#/$defs/a")),
            ("prefixItems", json!([{}])),
            ("items", json!([{}])),
            ("unevaluatedProperties", json!(false)),
            ("if", json!({})),
            ("$schema", json!("https://json-schema.org/draft/2020-12/schema")),
        ] {
            assert!(!is_plain(&json!({"properties": {"a": {word: value}}})), "{word}");
        }
        for wrong in
            [json!({"type": "strin"}), json!({"properties": {"a": {"minimum": "1"}}}), json!({"required": 1})]
        {
            assert!(is_plain(&wrong));
            let newest = jsonschema::validator_for(&wrong).err().map(|error| error.to_string());
            let why = Validator::new(&wrong).err().expect("it is wrong");
            assert!(why.ends_with(&newest.expect("it is wrong")), "{why}");
        }
    }

    #[test]
    fn a_long_text_is_quoted_in_part() {
        let validator = Validator::new(&json!({"type": "integer"})).expect("the schema is sound");
        let text = validator.check("The arguments do", &json!("x".repeat(10_000))).expect_err("a mistake");
        assert!(text.len() < 200 && text.ends_with("xxx…"), "{text}");
    }
}
