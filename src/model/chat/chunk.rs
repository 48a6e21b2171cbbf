//! The chunks and bodies that servers send, read leniently: every field is optional, unused fields are skipped, and
//! text is borrowed from the bytes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// One chunk of a stream, or a whole reply.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
    /// Groq's addition.
    #[serde(borrow, default)]
    pub x_groq: Option<Groq<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Groq<'a> {
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub index: Number,
    #[serde(borrow, default)]
    pub delta: Option<Piece<'a>>,
    /// The piece of a complete reply.
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
    pub reasoning_text: Text<'a>,
    /// The parts of reasoning that a router wants back. Rare, and boxed like what follows.
    #[serde(default)]
    pub reasoning_details: Option<Box<Value>>,
    /// Anthropic's blocks of thinking behind a translator.
    #[serde(default)]
    pub thinking_blocks: Option<Box<Value>>,
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
    /// The data that Gemini wants back with the call.
    #[serde(default)]
    pub extra_content: Option<Value>,
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

    /// The content of a chunk that has nothing else; empty content counts as none.
    pub fn nothing_but_content(&self) -> Option<&str> {
        let Self { choices: Some(choices), usage: None, error: None, x_groq: None } = self else { return None };
        let [Choice { index, delta: Some(piece), message: None, finish_reason, usage: None }] = &choices[..]
        else {
            return None;
        };
        let Piece {
            content: Text::Plain(content),
            reasoning_content,
            reasoning,
            reasoning_text,
            reasoning_details: None,
            thinking_blocks: None,
            refusal,
            tool_calls: None,
            function_call: None,
        } = piece
        else {
            return None;
        };
        let others = [reasoning_content, reasoning, reasoning_text, refusal, finish_reason];
        let is_alone = index.0.unwrap_or(0) == 0 && others.iter().all(|text| matches!(text, Text::Absent));
        is_alone.then_some(&**content).filter(|content| !content.is_empty())
    }
}

impl Text<'_> {
    /// The text; empty if there is none.
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
        Value::deserialize(deserializer).map(|value| Self(read_number(&value)))
    }
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, which is meant"
)]
pub(super) fn read_number(value: &Value) -> Option<u64> {
    // Whatever a server writes, sums of counts stay far from overflowing.
    const MOST: u64 = 1 << 48;
    let number = match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().map(|float| float as u64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.map(|number: u64| number.min(MOST))
}
