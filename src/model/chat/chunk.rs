//! The chunks and bodies that servers send, read leniently: every field is optional, unused fields are skipped, and
//! text is borrowed from the bytes.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::lenient::{LenientCount, LenientText};

/// One chunk of a stream, or a whole reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Chunk<'a> {
    pub choices: Option<Vec<Choice<'a>>>,
    pub usage: Option<&'a RawValue>,
    pub error: Option<&'a RawValue>,
    /// Groq's addition.
    pub x_groq: Option<Groq<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Groq<'a> {
    pub usage: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Choice<'a> {
    pub index: LenientCount,
    pub delta: Option<Piece<'a>>,
    /// The piece of a complete reply.
    pub message: Option<Box<Piece<'a>>>,
    pub finish_reason: LenientText<'a>,
    /// Some servers put it here.
    pub usage: Option<&'a RawValue>,
}

/// A piece of a message, or all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Piece<'a> {
    pub content: LenientText<'a>,
    pub reasoning_content: LenientText<'a>,
    pub reasoning: LenientText<'a>,
    pub reasoning_text: LenientText<'a>,
    /// The parts of reasoning that a router wants back. Rare, and boxed like what follows.
    pub reasoning_details: Option<Box<Value>>,
    /// Anthropic's blocks of thinking behind a translator.
    pub thinking_blocks: Option<Box<Value>>,
    /// The pages that an answer cites.
    pub annotations: Option<Box<Value>>,
    pub refusal: LenientText<'a>,
    pub tool_calls: Option<Vec<CallPiece<'a>>>,
    /// The older form of a call.
    pub function_call: Option<Box<Function<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct CallPiece<'a> {
    pub index: LenientCount,
    pub id: LenientText<'a>,
    pub function: Option<Function<'a>>,
    /// The data that Gemini wants back with the call.
    pub extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Function<'a> {
    pub name: LenientText<'a>,
    pub arguments: LenientText<'a>,
}

impl Chunk<'_> {
    /// The content of a chunk that has nothing else; empty content counts as none.
    pub fn nothing_but_content(&self) -> Option<&str> {
        let Self { choices: Some(choices), usage: None, error: None, x_groq: None } = self else { return None };
        let [Choice { index, delta: Some(piece), message: None, finish_reason, usage: None }] = &choices[..]
        else {
            return None;
        };
        let Piece {
            content: LenientText::Plain(content),
            reasoning_content,
            reasoning,
            reasoning_text,
            reasoning_details: None,
            thinking_blocks: None,
            annotations: None,
            refusal,
            tool_calls: None,
            function_call: None,
        } = piece
        else {
            return None;
        };
        let others = [reasoning_content, reasoning, reasoning_text, refusal, finish_reason];
        let is_alone = index.0.unwrap_or(0) == 0 && others.iter().all(|text| matches!(text, LenientText::Absent));
        is_alone.then_some(&**content).filter(|content| !content.is_empty())
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
