//! Schemas for servers that support only a part of JSON Schema.

use serde_json::{Map, Value, json};

/// The depth to which references are followed. A schema that refers to itself has no end.
const DEEPEST: usize = 8;

/// A schema as Gemini reads it: without `$schema`, `$id` and `$comment`, references replaced by what they refer to,
/// `const` as an `enum` of one value.
pub fn simplify_schema(schema: &Value) -> Value {
    rewrite_schema(schema, schema, 0)
}

fn rewrite_schema(schema: &Value, root: &Value, depth: usize) -> Value {
    match schema {
        Value::Object(object) => {
            if let Some(target) =
                object.get("$ref").and_then(Value::as_str).and_then(|path| root.pointer(path.strip_prefix('#')?))
            {
                return if depth < DEEPEST {
                    rewrite_schema(target, root, depth + 1)
                } else {
                    json!({"type": "object"})
                };
            }
            let mut out = Map::new();
            for (key, value) in object {
                match key.as_str() {
                    "$schema" | "$id" | "$comment" | "$defs" | "definitions" => {}
                    "const" => {
                        out.insert("enum".to_owned(), json!([value]));
                    }
                    _ => {
                        out.insert(key.clone(), rewrite_schema(value, root, depth));
                    }
                }
            }
            Value::Object(out)
        }
        Value::Array(list) => list.iter().map(|value| rewrite_schema(value, root, depth)).collect(),
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_constants_are_written_out() {
        let schema = json!({
            "$schema": "x", "type": "object",
            "properties": { "a": {"$ref": "#/$defs/A"}, "kind": {"const": "k"}, "self": {"$ref": "#"} },
            "$defs": { "A": {"type": "string", "$comment": "c"} }
        });
        let plain = simplify_schema(&schema);
        assert_eq!(plain["properties"]["a"], json!({"type": "string"}));
        assert_eq!(plain["properties"]["kind"], json!({"enum": ["k"]}));
        assert!(!plain.to_string().contains('$'), "{plain}");
    }
}
