//! The chunks and bodies that servers send, read leniently: every field is optional, unused fields are skipped, and
//! text is borrowed from the bytes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::Usage;

/// One chunk of a stream, or a whole reply.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub index: Number,
    #[serde(borrow, default)]
    pub delta: Option<Piece<'a>>,
    /// The same in a whole reply.
    #[serde(borrow, default)]
    pub message: Option<Box<Piece<'a>>>,
    #[serde(borrow, default)]
    pub finish_reason: Text<'a>,
    /// Some servers put it here.
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
}

/// A piece of a message, or all of it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow, default)]
    pub content: Text<'a>,
    #[serde(borrow, default)]
    pub reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    pub reasoning: Text<'a>,
    #[serde(borrow, default)]
    pub refusal: Text<'a>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<CallPiece<'a>>>,
    /// The older form of a call.
    #[serde(borrow, default)]
    pub function_call: Option<Box<Function<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct CallPiece<'a> {
    #[serde(default)]
    pub index: Number,
    #[serde(borrow, default)]
    pub id: Text<'a>,
    #[serde(borrow, default)]
    pub function: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub name: Text<'a>,
    #[serde(borrow, default)]
    pub arguments: Text<'a>,
}

/// A text, or another value where a text is expected.
#[derive(Debug, Default)]
pub(super) enum Text<'a> {
    #[default]
    Absent,
    Plain(Cow<'a, str>),
    /// A list of parts, or an object. Rare, and boxed: a chunk is moved several times while it is read.
    Data(Box<Value>),
}

impl<'a> Chunk<'a> {
    /// Reads one event. Checking its UTF-8 as a whole is faster than string by string.
    pub fn read(json: &'a [u8]) -> serde_json::Result<Self> {
        match std::str::from_utf8(json) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(json),
        }
    }
}

impl Text<'_> {
    /// The text, empty where there is none.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Absent | Self::Data(_) => "",
        }
    }
}

/// A count written as an integer, a float or a string, or missing.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Number(pub Option<u64>);

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text::Plain(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text::Plain(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Text::Plain(Cow::Owned(text)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Text::Absent)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Text::Absent)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Text::Plain(Cow::Owned(number.to_string())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Text::Plain(Cow::Owned(number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Text::Plain(Cow::Owned(number.to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            parts.push(part);
        }
        Ok(Text::Data(Box::new(Value::Array(parts))))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(|data| Text::Data(Box::new(data)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(number(&value)))
    }
}

/// Replaces halves of surrogate pairs in the strings of a JSON text, which servers write that cut text between UTF-16
/// units, by replacement characters. `None` if there are none.
pub(super) fn without_lone_surrogates(json: &[u8]) -> Option<Vec<u8>> {
    const ESCAPE: usize = 6;
    let unit = |at: usize| {
        let escape = json.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    let (mut out, mut at, mut found) = (Vec::with_capacity(json.len()), 0, false);
    while at < json.len() {
        let (taken, replaced) = match (unit(at), unit(at + ESCAPE)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (2 * ESCAPE, false),
            (Some(0xd800..=0xdfff), _) => (ESCAPE, true),
            (Some(_), _) => (ESCAPE, false),
            // A backslash that is itself escaped begins nothing.
            (None, _) => (if json[at] == b'\\' { 2 } else { 1 }, false),
        };
        let end = (at + taken).min(json.len());
        if replaced {
            out.extend_from_slice(b"\\ufffd");
        } else {
            out.extend_from_slice(&json[at..end]);
        }
        found |= replaced;
        at = end;
    }
    found.then_some(out)
}

/// The text and the reasoning in a `content` that is not a plain string.
pub(super) fn content_parts(content: &Value) -> (String, String) {
    let (mut text, mut reasoning) = (String::new(), String::new());
    let one = std::slice::from_ref(content);
    for part in content.as_array().map_or(one, Vec::as_slice) {
        match part {
            Value::String(words) => text.push_str(words),
            Value::Object(part) => {
                if let Some(words) = part.get("text").and_then(Value::as_str) {
                    text.push_str(words);
                }
                if let Some(thoughts) = part.get("thinking") {
                    match thoughts {
                        Value::String(words) => reasoning.push_str(words),
                        thoughts => reasoning.push_str(&content_parts(thoughts).0),
                    }
                }
            }
            _ => {}
        }
    }
    (text, reasoning)
}

/// The usage that a server reports; `None` if it reports nothing that can be used.
pub(super) fn usage(raw: &RawValue) -> Option<Usage> {
    let usage: Value = serde_json::from_str(raw.get()).ok()?;
    let at = |path: &[&str]| path.iter().try_fold(&usage, |value, key| value.get(key)).and_then(number);
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| at(path));
    let input = first(&[&["prompt_tokens"], &["input_tokens"]]);
    let output = first(&[&["completion_tokens"], &["output_tokens"]]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let total = at(&["total_tokens"]);
    let rest = |known: Option<u64>| total.unwrap_or(0).saturating_sub(known.unwrap_or(0));
    let usage = Usage {
        cache_write_tokens: 0,
        input_tokens: input.unwrap_or_else(|| rest(output)),
        output_tokens: output.unwrap_or_else(|| rest(input)),
        cached_input_tokens: first(&[
            &["prompt_tokens_details", "cached_tokens"],
            &["input_tokens_details", "cached_tokens"],
            &["prompt_cache_hit_tokens"],
            &["cached_tokens"],
        ])
        .unwrap_or(0),
        reasoning_tokens: first(&[
            &["completion_tokens_details", "reasoning_tokens"],
            &["output_tokens_details", "reasoning_tokens"],
            &["reasoning_tokens"],
        ])
        .unwrap_or(0),
        estimated: false,
    };
    // Some servers report zeros when they did not count.
    (usage.total() > 0).then_some(usage)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, which is meant"
)]
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().map(|float| float as u64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_a_pair() {
        for (json, mended) in [
            (r#""a\ud83d""#, Some(r#""a\ufffd""#)),
            (r#""\ude42b""#, Some(r#""\ufffdb""#)),
            (r#""\ud83d\ude42""#, None),
            (r#""\ud83d\n\ud83d\ude42""#, Some(r#""\ufffd\n\ud83d\ude42""#)),
            (r#""\\ud83d""#, None),
            (r#""\u00e9""#, None),
            ("\"\\", None),
        ] {
            let read =
                without_lone_surrogates(json.as_bytes()).map(|json| String::from_utf8(json).expect("UTF-8"));
            assert_eq!(read.as_deref(), mended, "{json}");
        }
    }

    #[test]
    fn usage_as_servers_write_it() {
        for (json, expected) in [
            (r#"{"prompt_tokens":10,"completion_tokens":5}"#, Some((10, 0, 5, 0))),
            (r#"{"prompt_tokens":10.0,"completion_tokens":5.0}"#, Some((10, 0, 5, 0))),
            (r#"{"input_tokens":10,"output_tokens":5}"#, Some((10, 0, 5, 0))),
            (r#"{"prompt_tokens":10,"total_tokens":15}"#, Some((10, 0, 5, 0))),
            (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":8}"#, Some((10, 8, 5, 0))),
            (
                r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},
                    "completion_tokens_details":{"reasoning_tokens":3}}"#,
                Some((10, 4, 5, 3)),
            ),
            (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null}"#, Some((10, 0, 5, 0))),
            (r#"{"prompt_tokens":0,"completion_tokens":0}"#, None),
            (r#"{"queue_time":0.1}"#, None),
            ("3", None),
        ] {
            let raw: &RawValue = serde_json::from_str(json).expect("JSON");
            let read =
                usage(raw).map(|u| (u.input_tokens, u.cached_input_tokens, u.output_tokens, u.reasoning_tokens));
            assert_eq!(read, expected, "{json}");
        }
    }
}
