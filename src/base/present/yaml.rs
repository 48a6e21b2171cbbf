//! YAML: one document, keys in order.

use super::View;
use crate::base::yaml;

pub(super) fn encode(view: &View<'_>) -> String {
    // Every value of JSON can be written as YAML.
    yaml::write(&view.as_object()).unwrap_or_else(|_| super::json::encode(view))
}
