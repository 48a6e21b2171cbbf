//! Definitions of tools, and the schemas that the Messages API accepts.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use super::super::asked::RequestSettings;
use super::super::strict;
use super::flags::AnthropicFlags;
use super::messages::Mark;
use crate::model::ToolDefinition;

pub(super) struct Tools<'a> {
    pub all: &'a [ToolDefinition],
    pub settings: &'a RequestSettings,
    pub flags: &'a AnthropicFlags,
    /// Only the last tool has one.
    pub mark: Option<Mark>,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { all, settings, flags, mark } = *self;
        let mut list = serializer.serialize_seq(Some(all.len()))?;
        for (at, definition) in all.iter().enumerate() {
            list.serialize_element(&Tool {
                definition,
                strict: settings.strict_tools && flags.strict && allows_strict(&definition.parameters),
                eager: flags.eager_stream,
                mark: mark.filter(|_| flags.cache_on_tools && at + 1 == all.len()),
            })?;
        }
        list.end()
    }
}

struct Tool<'a> {
    definition: &'a ToolDefinition,
    strict: bool,
    eager: bool,
    mark: Option<Mark>,
}

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tool = serializer.serialize_map(None)?;
        tool.serialize_entry("name", &self.definition.name)?;
        tool.serialize_entry("description", &self.definition.description)?;
        tool.serialize_entry("input_schema", &input_schema(&self.definition.parameters))?;
        if self.strict {
            tool.serialize_entry("strict", &true)?;
        }
        if self.eager {
            tool.serialize_entry("eager_input_streaming", &true)?;
        }
        if let Some(mark) = self.mark {
            tool.serialize_entry("cache_control", &mark)?;
        }
        tool.end()
    }
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
const NOT_DECODED: [&str; 23] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "uniqueItems",
    "contains",
    "prefixItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "not",
    "if",
    "then",
    "else",
    "oneOf",
];

/// The formats of strings that constrained decoding knows.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// True if decoding can be held to a schema: every object is closed and requires all of its properties, and no keyword
/// is beyond it.
pub(super) fn allows_strict(schema: &Value) -> bool {
    strict::allows_strict(schema) && matches!(input_schema(schema), Cow::Borrowed(_)) && is_decodable(schema)
}

fn is_decodable(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return true };
    schema.iter().all(|(key, value)| match (key.as_str(), value) {
        // Here the keys are names.
        ("properties" | "$defs" | "definitions", Value::Object(named)) => named.values().all(is_decodable),
        ("format", format) => format.as_str().is_some_and(|format| FORMATS.contains(&format)),
        ("minItems", least) => least.as_u64().is_some_and(|least| least <= 1),
        ("const" | "enum" | "default" | "examples", _) => true,
        (key, Value::Array(list)) => !NOT_DECODED.contains(&key) && list.iter().all(is_decodable),
        (key, value) => !NOT_DECODED.contains(&key) && is_decodable(value),
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
