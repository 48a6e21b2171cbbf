//! Arguments of calls on their way to and from a server. History always carries valid JSON.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::surrogates;
use crate::base::json;

/// Arguments as history carries them: always the text of a JSON object, since servers refuse anything else for as
/// long as it is in the conversation. Valid arguments go back verbatim.
pub(super) fn for_history(text: &str) -> Cow<'_, str> {
    let mended = if text.contains("\\u") { surrogates::without_lone(text.as_bytes()) } else { None };
    let sound = mended.and_then(|json| String::from_utf8(json).ok()).map_or(Cow::Borrowed(text), Cow::Owned);
    // Decoded, not skipped: a number beyond every range or a nest too deep is found only so, and servers refuse both.
    if sound.trim_start().starts_with('{') && serde_json::from_str::<Value>(&sound).is_ok() {
        return sound;
    }
    Cow::Owned(json::object_or_unparsed(text).to_string())
}

/// True if a text is one whole JSON object, to which nothing can be added. Cheap for most that are not.
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
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\ud83d\ude42"}"#, r#"{"a":"\ud83d\ude42"}"#),
            ("[1]", r#"{"unparsed":"[1]"}"#),
            (r#"{"a":1e999}"#, r#"{"unparsed":"{\"a\":1e999}"}"#),
        ] {
            assert_eq!(for_history(text), sent, "{text}");
        }
    }
}
