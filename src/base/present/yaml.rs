//! YAML: one document, keys in order.

use super::ResultView;
use crate::base::yaml;

pub(super) fn encode_view(view: &ResultView<'_>) -> String {
    // Every value of JSON can be written as YAML.
    yaml::write_document(&view.as_object()).unwrap_or_else(|_| super::json::encode_view(view))
}
