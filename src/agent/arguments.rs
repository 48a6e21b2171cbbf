//! The arguments of a call as JSON: read leniently, since a schema checks them strictly afterwards.

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
