//! Fields that the model file and the dialect add to a request.

use serde_json::{Map, Value};

/// Merges `extra` into `base`: objects key by key at any depth, `null` removes a key, anything else replaces
/// (RFC 7396).
pub fn merge_extra(base: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        match (base.get_mut(key), value) {
            (_, Value::Null) => {
                base.shift_remove(key);
            }
            (Some(Value::Object(inner)), Value::Object(value)) => merge_extra(inner, value),
            (_, value) => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}
