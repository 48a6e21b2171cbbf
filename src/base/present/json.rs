//! JSON: one compact object on one line.

use serde_json::Value;

use super::ResultView;

pub(super) fn encode_view(view: &ResultView<'_>) -> String {
    Value::Object(view.as_object()).to_string()
}
