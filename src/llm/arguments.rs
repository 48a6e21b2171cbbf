//! Arguments on their way to and from a server: what goes back in history is always sound JSON.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::json;

/// Arguments as they go back to a server in history: always the text of a JSON object, since servers refuse anything
/// else for as long as it is in the conversation. What is sound already goes back verbatim.
pub(super) fn for_history(text: &str) -> Cow<'_, str> {
    let is_object = text.trim_start().starts_with('{');
    if is_object && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Cow::Borrowed(text);
    }
    let object = json::object(text).map_or_else(|_| json!({ "unparsed": text }), Value::Object);
    Cow::Owned(object.to_string())
}

/// Whether a text is one whole JSON object: nothing more can be added to it. Cheap where it plainly is not.
pub(super) fn is_complete(text: &str) -> bool {
    text.trim_end().ends_with('}') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_never_holds_a_malformed_call() {
        for (text, sent) in [
            (r#"{ "a": 1 }"#, r#"{ "a": 1 }"#),
            ("", "{}"),
            (r#"{"a":1,}"#, r#"{"a":1}"#),
            (r#"{"a":"#, r#"{"unparsed":"{\"a\":"}"#),
            ("[1]", r#"{"unparsed":"[1]"}"#),
        ] {
            assert_eq!(for_history(text), sent, "{text}");
        }
    }
}
