//! JSON: one compact object on one line.

use serde_json::Value;

use super::View;

pub(super) fn encode(view: &View<'_>) -> String {
    Value::Object(view.as_object()).to_string()
}
