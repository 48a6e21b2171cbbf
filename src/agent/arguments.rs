//! The arguments of a call as JSON: read leniently, since a schema checks them strictly afterwards.

use serde_json::Value;

use crate::json;

/// Reads the text of a call's arguments. No text at all is an empty object only where `parameters` has no properties
/// that could have been meant: several servers write nothing for such a call.
///
/// # Errors
/// A sentence for the model.
pub fn read(text: &str, parameters: &Value) -> Result<Value, String> {
    let takes_some = parameters["properties"].as_object().is_some_and(|properties| !properties.is_empty());
    if takes_some && text.trim().is_empty() {
        return Err(
            "The arguments are empty. Send one JSON object; {} if you mean none of the optional ones.".to_owned()
        );
    }
    json::object(text).map(Value::Object).map_err(|why| {
        format!(
            "The arguments are not usable JSON: {why}. Send one complete JSON object, with strings escaped and \
             nothing around it."
        )
    })
}
