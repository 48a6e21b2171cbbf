//! The arguments of a call as JSON: parsed leniently, since a schema checks them strictly afterwards.

use serde_json::{Map, Number, Value};

use crate::base::json;

/// The longest chain of schema references that is followed.
const MOST_REFERENCES: usize = 16;

/// Parses the text of a call's arguments. An empty text is an empty object only where `parameters` has no
/// properties that could have been meant: several servers write nothing for such a call.
///
/// # Errors
/// A sentence for the model.
pub fn parse_arguments(text: &str, parameters: &Value) -> Result<Value, String> {
    let takes_some = parameters["properties"].as_object().is_some_and(|properties| !properties.is_empty());
    if takes_some && text.trim().is_empty() {
        return Err(
            "The arguments are empty. Send one JSON object; {} if you mean none of the optional ones.".to_owned()
        );
    }
    json::parse_object(text).map(Value::Object).map_err(|why| {
        format!(
            "The arguments are not usable JSON: {why}. Send one complete JSON object, with strings escaped and \
             nothing around it."
        )
    })
}

/// Completes `arguments` by `schema`: a `null` that the schema does not allow counts as missing, unless it is
/// required; a missing argument gets its default; an integer written as a float becomes an integer.
pub fn complete_by_schema(arguments: &mut Value, schema: &Value) {
    Schemas { root: schema }.complete(arguments, schema);
}

struct Schemas<'a> {
    root: &'a Value,
}

impl<'a> Schemas<'a> {
    fn complete(&self, value: &mut Value, schema: &'a Value) {
        let schema = self.resolve_reference(schema);
        match value {
            Value::Object(fields) => {
                if let Some(properties) = schema["properties"].as_object() {
                    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
                    let is_required = |name: &str| required.iter().any(|other| other == name);
                    properties
                        .iter()
                        .for_each(|(name, of)| self.complete_field(fields, name, of, is_required(name)));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.complete(item, &schema["items"])),
            Value::Number(number) if names_type(schema, "integer") && !names_type(schema, "number") => {
                if let Some(integer) = read_integer(number) {
                    *number = integer;
                }
            }
            _ => {}
        }
    }

    fn complete_field(&self, fields: &mut Map<String, Value>, name: &str, schema: &'a Value, required: bool) {
        let is_null = fields.get(name).is_some_and(Value::is_null);
        let default = self.resolve_reference(schema).get("default").or_else(|| schema.get("default"));
        if is_null && !self.allows_null(schema) && (!required || default.is_some()) {
            fields.remove(name);
        }
        match (fields.get_mut(name), default) {
            (Some(value), _) => self.complete(value, schema),
            (None, Some(default)) => {
                fields.insert(name.to_owned(), default.clone());
            }
            (None, None) => {}
        }
    }

    /// Resolves a local reference; any other schema is returned as it is.
    fn resolve_reference(&self, mut schema: &'a Value) -> &'a Value {
        for _ in 0..MOST_REFERENCES {
            let target = schema["$ref"].as_str().and_then(|to| self.root.pointer(to.strip_prefix('#')?));
            match target {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    fn allows_null(&self, schema: &'a Value) -> bool {
        let schema = self.resolve_reference(schema);
        let any =
            |key: &str| schema[key].as_array().is_none_or(|forms| forms.iter().any(|of| self.allows_null(of)));
        *schema != Value::Bool(false)
            && (schema.get("type").is_none() || names_type(schema, "null"))
            && schema["enum"].as_array().is_none_or(|options| options.contains(&Value::Null))
            && schema.get("const").is_none_or(Value::is_null)
            && any("anyOf")
            && any("oneOf")
            && schema["allOf"].as_array().is_none_or(|forms| forms.iter().all(|of| self.allows_null(of)))
    }
}

fn names_type(schema: &Value, name: &str) -> bool {
    match &schema["type"] {
        Value::String(one) => one == name,
        Value::Array(several) => several.iter().any(|one| one == name),
        _ => false,
    }
}

/// A float that is a whole number, as an integer. From 2^53 on a float does not identify one integer.
#[expect(clippy::cast_possible_truncation, reason = "it is a whole number below 2^53")]
fn read_integer(number: &Number) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() < EXACT).then(|| Number::from(float as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_schema_fills_in() {
        let table = [
            (json!({"a": {"type": "string", "default": "x"}}), json!({}), json!({"a": "x"})),
            (json!({"a": {"type": "string"}}), json!({"a": null}), json!({})),
            (json!({"a": {"type": ["string", "null"]}}), json!({"a": null}), json!({"a": null})),
            (json!({"a": {"description": "anything"}}), json!({"a": null}), json!({"a": null})),
            (json!({"a": {"enum": ["x", null]}}), json!({"a": null}), json!({"a": null})),
            (json!({"a": {"enum": ["x", "y"], "default": "y"}}), json!({"a": null}), json!({"a": "y"})),
            (
                json!({"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}),
                json!({"a": null}),
                json!({"a": null}),
            ),
            (json!({"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}), json!({"a": null}), json!({})),
            (json!({"r": {"type": "string"}}), json!({"r": null}), json!({"r": null})),
            (json!({"a": {"$ref": "#/$defs/count"}}), json!({"a": 2.0}), json!({"a": 2})),
            (json!({"a": {"$ref": "#/$defs/count"}}), json!({"a": null}), json!({"a": 7})),
            (json!({"a": {"$ref": "#/$defs/loop"}}), json!({"a": null}), json!({"a": null})),
            (json!({"a": {"type": "number"}}), json!({"a": 2.0}), json!({"a": 2.0})),
            (json!({"a": {"type": ["integer", "number"]}}), json!({"a": 2.0}), json!({"a": 2.0})),
            (json!({"a": {"type": "integer"}}), json!({"a": 1e30}), json!({"a": 1e30})),
            (json!({"a": {"type": "integer"}}), json!({"a": -3.0}), json!({"a": -3})),
            (
                json!({"a": {"type": "array", "items": {"properties": {"b": {"default": 1}}}}}),
                json!({"a": [{}, {"b": 2}, 3]}),
                json!({"a": [{"b": 1}, {"b": 2}, 3]}),
            ),
            (json!({"a": {"properties": {"b": {"default": 1}}}}), json!({}), json!({})),
            (json!({"a": true}), json!({"a": null}), json!({"a": null})),
        ];
        for (properties, given, expected) in table {
            let defs = json!({"count": {"type": "integer", "default": 7}, "loop": {"$ref": "#/$defs/loop"}});
            let schema = json!({"properties": properties, "required": ["r"], "$defs": defs});
            let mut arguments = given.clone();
            complete_by_schema(&mut arguments, &schema);
            assert_eq!(arguments.to_string(), expected.to_string(), "{given} by {properties}");
        }
    }
}
