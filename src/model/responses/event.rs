//! The events that servers send, read leniently: every field is optional, unused fields are skipped, and text is
//! borrowed from the bytes.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::lenient::{LenientCount, LenientText};

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Event<'a> {
    #[serde(rename = "type")]
    pub kind: LenientText<'a>,
    pub output_index: LenientCount,
    pub item_id: LenientText<'a>,
    pub summary_index: LenientCount,
    pub content_index: LenientCount,
    pub delta: LenientText<'a>,
    /// The whole arguments of a call.
    pub arguments: LenientText<'a>,
    /// The whole input of a freeform call.
    pub input: LenientText<'a>,
    pub item: Option<&'a RawValue>,
    pub response: Option<&'a RawValue>,
    pub error: Option<&'a RawValue>,
}

/// The text of an item: of a message, or of the reasoning that a server shows.
pub(super) fn read_item_text(item: &Value) -> String {
    match item.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => list_texts(parts).collect(),
        _ => String::new(),
    }
}

/// The reasoning of an item: its summary, or the reasoning itself if the server shows it.
pub(super) fn read_reasoning(item: &Value) -> String {
    let summary = item.get("summary").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let summary = list_texts(summary).collect::<Vec<_>>().join(PARAGRAPH);
    if summary.is_empty() { read_item_text(item) } else { summary }
}

/// The separator between two parts of reasoning, and between two texts of a reply.
pub(super) const PARAGRAPH: &str = "\n\n";

fn list_texts(parts: &[Value]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| part.get("text").or(part.get("refusal"))?.as_str())
}

/// The notice for the user if the server says that it left out reasoning of earlier replies.
pub(super) fn removed_reasoning(response: &Value) -> Option<String> {
    let transformations = response.get("input_transformations")?.as_array()?;
    let field = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let removed: Vec<_> = transformations.iter().filter(|entry| field(entry, "action") == "removed").collect();
    let why = field(removed.first()?, "reason").replace('_', " ");
    let count = removed.len();
    Some(format!("the server left out {count} parts of earlier reasoning ({why})"))
}

#[cfg(test)]
mod tests {
    use super::super::super::lenient::read_json;
    use super::*;

    #[test]
    fn no_field_is_demanded_and_no_type_of_one() {
        for json in [
            r"{}",
            r#"{"type":null,"delta":["x"],"output_index":"zero","item":null,"sequence_number":{}}"#,
            r#"{"type":7,"delta":{"text":"x"},"summary_index":"","response":[]}"#,
        ] {
            let event: Event<'_> = read_json(json.as_bytes()).expect(json);
            assert!(event.delta.as_str().is_empty() && event.output_index.0.is_none(), "{json}");
        }
    }
}
