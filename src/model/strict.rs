//! Checks that strict decoding accepts a schema.

use serde_json::Value;

/// True if every object of a schema is closed and requires all of its properties.
pub fn allows_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => {
            let properties = object.get("properties").and_then(Value::as_object);
            let is_object = properties.is_some() || object.get("type").and_then(Value::as_str) == Some("object");
            let required = object.get("required").and_then(Value::as_array);
            let is_required = |name: &String| required.is_some_and(|list| list.iter().any(|r| r == name.as_str()));
            let closed = !is_object
                || (object.get("additionalProperties") == Some(&Value::Bool(false))
                    && properties.is_none_or(|properties| properties.keys().all(is_required)));
            closed && object.values().all(allows_strict)
        }
        Value::Array(list) => list.iter().all(allows_strict),
        _ => true,
    }
}
