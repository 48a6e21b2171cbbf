//! Definitions of tools, and the schemas that the Messages API accepts.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::asked::OutgoingRequest;
use super::super::strict;
use super::flags::AnthropicFlags;
use super::messages::Mark;

#[derive(Serialize)]
pub(super) struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    eager_input_streaming: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

/// The tools of a request; only the last one has the mark.
pub(super) fn write_tools<'a>(
    asked: &OutgoingRequest<'a>,
    flags: &AnthropicFlags,
    mark: Option<Mark>,
) -> Vec<AnthropicTool<'a>> {
    let may_be_strict = asked.settings.strict_tools && flags.strict;
    let mut tools: Vec<AnthropicTool<'a>> = asked
        .tools
        .iter()
        .map(|tool| AnthropicTool {
            name: &tool.name,
            description: &tool.description,
            input_schema: input_schema(&tool.parameters),
            strict: may_be_strict && allows_strict(&tool.parameters),
            eager_input_streaming: flags.eager_stream,
            cache_control: None,
        })
        .collect();
    if let Some(last) = tools.last_mut().filter(|_| flags.cache_on_tools) {
        last.cache_control = mark;
    }
    tools
}

/// The keywords that a schema may not have at its root.
const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// A schema whose root is an object without alternatives: with any other the whole request is refused. The removed
/// parts of the schema are checked when the call comes.
fn input_schema(schema: &Value) -> Cow<'_, Value> {
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    if is_object && ALTERNATIVES.iter().all(|key| schema.get(key).is_none()) {
        return Cow::Borrowed(schema);
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), "object".into());
    for (key, value) in schema.as_object().into_iter().flatten() {
        if key != "type" && !ALTERNATIVES.contains(&key.as_str()) {
            root.insert(key.clone(), value.clone());
        }
    }
    Cow::Owned(Value::Object(root))
}

/// The keywords that constrained decoding does not support. Any of them fails the whole request.
const NOT_DECODED: &str = "\
    minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern maxItems \
    uniqueItems contains prefixItems minProperties maxProperties patternProperties propertyNames \
    dependentRequired dependentSchemas not if then else oneOf";

/// The formats of strings that constrained decoding knows.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// True if decoding can be held to a schema: every object is closed and requires all of its properties, and no keyword
/// is beyond it.
pub(super) fn allows_strict(schema: &Value) -> bool {
    strict::allows_strict(schema) && matches!(input_schema(schema), Cow::Borrowed(_)) && is_decodable(schema)
}

fn can_be_decoded(keyword: &str) -> bool {
    NOT_DECODED.split(' ').all(|other| other != keyword)
}

fn is_decodable(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return true };
    schema.iter().all(|(key, value)| match (key.as_str(), value) {
        // Here the keys are names.
        ("properties" | "$defs" | "definitions", Value::Object(named)) => named.values().all(is_decodable),
        ("format", format) => format.as_str().is_some_and(|format| FORMATS.contains(&format)),
        ("minItems", least) => least.as_u64().is_some_and(|least| least <= 1),
        ("const" | "enum" | "default" | "examples", _) => true,
        (key, Value::Array(list)) => can_be_decoded(key) && list.iter().all(is_decodable),
        (key, value) => can_be_decoded(key) && is_decodable(value),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strict_only_what_decoding_can_keep() {
        let object = |property: Value| {
            json!({"type": "object", "properties": {"pattern": property}, "required": ["pattern"],
                   "additionalProperties": false})
        };
        for (property, allowed) in [
            (json!({"type": "string"}), true),
            (json!({"type": "string", "format": "date"}), true),
            (json!({"type": "string", "format": "regex"}), false),
            (json!({"type": "string", "pattern": "^a"}), false),
            (json!({"type": "integer", "minimum": 1}), false),
            (json!({"type": "array", "items": {"type": "string"}, "minItems": 1}), true),
            (json!({"type": "array", "items": {"type": "string"}, "minItems": 2}), false),
            (json!({"type": "array", "items": {"type": "integer", "maximum": 3}}), false),
            (json!({"enum": ["minimum", {"maximum": 1}]}), true),
            (json!({"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 3}]}), false),
            (json!({"type": "object"}), false),
        ] {
            assert_eq!(allows_strict(&object(property.clone())), allowed, "{property}");
        }
        assert!(!allows_strict(
            &json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false})
        ));
    }

    #[test]
    fn the_root_of_a_schema_is_an_object_without_alternatives() {
        let plain =
            json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}]}}, "$defs": {"x": {}}});
        assert_eq!(*input_schema(&plain), plain);
        for (schema, sent) in [
            (json!({}), json!({"type": "object"})),
            (json!(true), json!({"type": "object"})),
            (json!({"type": ["object", "null"], "properties": {}}), json!({"type": "object", "properties": {}})),
            (
                json!({"type": "object", "oneOf": [{"required": ["a"]}], "properties": {"a": {}}}),
                json!({"type": "object", "properties": {"a": {}}}),
            ),
        ] {
            assert_eq!(*input_schema(&schema), sent);
        }
    }
}
