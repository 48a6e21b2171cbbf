//! JSON as servers send it, read leniently: text is borrowed from the bytes, and a value of another type is none or is
//! kept as it is.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads an event or a body. Checking its UTF-8 as a whole is faster than string by string.
pub(super) fn read_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    match std::str::from_utf8(json) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(json),
    }
}

/// A text, or another value where a text is expected. Numbers are read as texts.
#[derive(Debug, Default)]
pub(super) enum LenientText<'a> {
    #[default]
    Absent,
    Plain(Cow<'a, str>),
    /// A list of parts, or an object. Rare, and boxed: an event is moved several times while it is read.
    Data(Box<Value>),
}

impl LenientText<'_> {
    /// The text; empty if there is none.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Absent | Self::Data(_) => "",
        }
    }

    /// The text, or the JSON of the value in its place.
    pub fn write_data(&self) -> Cow<'_, str> {
        match self {
            Self::Data(data) => data.to_string().into(),
            text => text.as_str().into(),
        }
    }

    /// The arguments of a call that comes whole: without any it has none.
    pub fn write_arguments(&self) -> Cow<'_, str> {
        Some(self.write_data()).filter(|arguments| !arguments.is_empty()).unwrap_or("{}".into())
    }
}

struct LenientTextVisitor;

impl<'de> Visitor<'de> for LenientTextVisitor {
    type Value = LenientText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(LenientText::Plain(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(LenientText::Plain(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(LenientText::Absent)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(LenientText::Absent)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(LenientText::Plain(number.to_string().into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(LenientText::Plain(number.to_string().into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(LenientText::Plain(number.to_string().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Box::deserialize(SeqAccessDeserializer::new(seq)).map(LenientText::Data)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Box::deserialize(MapAccessDeserializer::new(map)).map(LenientText::Data)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LenientText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientTextVisitor)
    }
}

/// A count written as an integer, a float or a string; anything else reads as none.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LenientCount(pub Option<u64>);

impl<'de> Deserialize<'de> for LenientCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(read_count(&value)))
    }
}

/// The count in a value, if it is one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, which is meant"
)]
pub(super) fn read_count(value: &Value) -> Option<u64> {
    // Whatever a server writes, sums of counts stay far from overflowing.
    const MOST: u64 = 1 << 48;
    let count = match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().map(|float| float as u64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    count.map(|count: u64| count.min(MOST))
}
