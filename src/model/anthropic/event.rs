//! The events and bodies that servers send, read leniently: every field is optional, unused fields are skipped, and
//! text is borrowed from the bytes.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::lenient::LenientText;

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Event<'a> {
    #[serde(rename = "type")]
    pub kind: LenientText<'a>,
    pub index: Option<u64>,
    pub delta: Option<Piece<'a>>,
    pub content_block: Option<&'a RawValue>,
    pub message: Option<Message<'a>>,
    pub usage: Option<&'a RawValue>,
}

/// A piece of a block, or the facts known at the end of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Piece<'a> {
    #[serde(rename = "type")]
    pub kind: LenientText<'a>,
    pub text: LenientText<'a>,
    pub thinking: LenientText<'a>,
    pub signature: LenientText<'a>,
    pub partial_json: LenientText<'a>,
    pub stop_reason: LenientText<'a>,
    pub stop_details: Option<&'a RawValue>,
}

/// A message: empty at the start of a stream, complete in a body that is not a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub id: LenientText<'a>,
    #[serde(rename = "type")]
    pub kind: LenientText<'a>,
    pub content: Option<Vec<&'a RawValue>>,
    pub stop_reason: LenientText<'a>,
    pub stop_details: Option<&'a RawValue>,
    pub usage: Option<&'a RawValue>,
}
