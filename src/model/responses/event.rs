//! The events that servers send, read leniently: every field is optional, unused fields are skipped, and text is
//! borrowed from the bytes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::message::Usage;

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Words<'a>,
    pub output_index: Count,
    #[serde(borrow)]
    pub item_id: Words<'a>,
    pub summary_index: Count,
    pub content_index: Count,
    #[serde(borrow)]
    pub delta: Words<'a>,
    /// The whole arguments of a call.
    #[serde(borrow)]
    pub arguments: Words<'a>,
    /// The whole input of a freeform call.
    #[serde(borrow)]
    pub input: Words<'a>,
    #[serde(borrow)]
    pub item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

impl<'a> Event<'a> {
    /// Reads one event. Checking its UTF-8 as a whole is faster than string by string.
    pub fn read(json: &'a [u8]) -> serde_json::Result<Self> {
        match std::str::from_utf8(json) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(json),
        }
    }
}

/// A text; anything else reads as an empty one.
#[derive(Debug, Default)]
pub(super) struct Words<'a>(pub Cow<'a, str>);

impl Words<'_> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A non-negative integer; anything else reads as none.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Count(pub Option<u64>);

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Words(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Words(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Words::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Words::default())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Words(Cow::Owned(number.to_string())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Words(Cow::Owned(number.to_string())))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Words::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Words::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Words::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(read_count(&value)))
    }
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

/// The usage that a server reports; `None` if it reports nothing that can be used.
pub(super) fn read_usage(usage: &Value) -> Option<Usage> {
    let at = |path: &[&str]| path.iter().try_fold(usage, |value, key| value.get(key)).and_then(read_count);
    let (input, output, total) = (at(&["input_tokens"]), at(&["output_tokens"]), at(&["total_tokens"]));
    let rest = |known: Option<u64>| total.unwrap_or(0).saturating_sub(known.unwrap_or(0));
    let usage = Usage {
        input_tokens: input.unwrap_or_else(|| rest(output)),
        cached_input_tokens: at(&["input_tokens_details", "cached_tokens"]).unwrap_or(0),
        cache_write_tokens: at(&["input_tokens_details", "cache_write_tokens"]).unwrap_or(0),
        output_tokens: output.unwrap_or_else(|| rest(input)),
        reasoning_tokens: at(&["output_tokens_details", "reasoning_tokens"]).unwrap_or(0),
        estimated: false,
        cost_about: false,
    };
    // Some servers report zeros when they did not count.
    ((input.is_some() || output.is_some()) && usage.total() > 0).then_some(usage)
}

/// The cost of a request according to its usage, in USD.
pub(super) fn read_cost(usage: &Value) -> Option<f64> {
    const TICKS: f64 = 1e10;
    let number = |field: &str| usage.get(field).and_then(Value::as_f64);
    // OpenRouter, and xAI.
    number("cost").or_else(|| number("cost_in_usd_ticks").map(|ticks| ticks / TICKS))
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, which is meant"
)]
fn read_count(value: &Value) -> Option<u64> {
    // Whatever a server writes, sums of counts stay far from overflowing.
    const MOST: u64 = 1 << 48;
    let count = match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().map(|float| float as u64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    count.map(|count: u64| count.min(MOST))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_as_servers_write_it() {
        for (json, expected) in [
            (json!({"input_tokens": 10, "output_tokens": 5}), Some([10, 0, 0, 5, 0])),
            (json!({"input_tokens": 10.0, "output_tokens": "5"}), Some([10, 0, 0, 5, 0])),
            (json!({"input_tokens": 10, "total_tokens": 15}), Some([10, 0, 0, 5, 0])),
            (
                json!({"input_tokens": 10, "output_tokens": 5,
                    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
                    "output_tokens_details": {"reasoning_tokens": 2}}),
                Some([10, 4, 3, 5, 2]),
            ),
            (
                json!({"input_tokens": 10, "output_tokens": 5, "input_tokens_details": null}),
                Some([10, 0, 0, 5, 0]),
            ),
            (json!({"input_tokens": 0, "output_tokens": 0}), None),
            (json!({}), None),
            (json!(null), None),
        ] {
            let read = read_usage(&json).map(|u| {
                let input = [u.input_tokens, u.cached_input_tokens, u.cache_write_tokens];
                [input[0], input[1], input[2], u.output_tokens, u.reasoning_tokens]
            });
            assert_eq!(read, expected, "{json}");
        }
    }

    #[test]
    fn the_cost_as_providers_state_it() {
        for (usage, usd) in [
            (json!({"cost": 0.0125}), Some(0.0125)),
            (json!({"cost_in_usd_ticks": 1_497_500}), Some(0.000_149_75)),
            (json!({"cost": "free"}), None),
            (json!(null), None),
        ] {
            assert_eq!(read_cost(&usage), usd, "{usage}");
        }
    }

    #[test]
    fn no_field_is_demanded_and_no_type_of_one() {
        for json in [
            r"{}",
            r#"{"type":null,"delta":["x"],"output_index":"zero","item":null,"sequence_number":{}}"#,
            r#"{"type":7,"delta":{"text":"x"},"summary_index":"","response":[]}"#,
        ] {
            let event = Event::read(json.as_bytes()).expect(json);
            assert!(event.delta.is_empty() && event.output_index.0.is_none(), "{json}");
        }
    }
}
