//! The events and bodies that servers send, read leniently: every field is optional, unused fields are skipped, and
//! text is borrowed from the bytes.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub kind: Text<'a>,
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(borrow, default)]
    pub delta: Option<Piece<'a>>,
    #[serde(borrow, default)]
    pub content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub message: Option<Message<'a>>,
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
}

/// A piece of a block, or the facts known at the end of a message.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow, default, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow, default)]
    pub text: Text<'a>,
    #[serde(borrow, default)]
    pub thinking: Text<'a>,
    #[serde(borrow, default)]
    pub signature: Text<'a>,
    #[serde(borrow, default)]
    pub partial_json: Text<'a>,
    #[serde(borrow, default)]
    pub stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub stop_details: Option<&'a RawValue>,
}

/// A message: empty at the start of a stream, complete in a body that is not a stream.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub id: Text<'a>,
    #[serde(borrow, default, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow, default)]
    pub content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub stop_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
}

/// Reads an event or a body. Checking its UTF-8 as a whole is faster than string by string.
pub(super) fn read_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    match std::str::from_utf8(json) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(json),
    }
}

/// A text, or the JSON of any other value.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl TextVisitor {
    fn json(value: impl Into<Value>) -> Text<'static> {
        Text(value.into().to_string().into())
    }
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(text.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(text.to_owned().into()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Text(text.into()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Text::default())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Self::json(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Self::json(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Self::json(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Self::json(number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(seq)).map(Self::json)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(Self::json)
    }
}
