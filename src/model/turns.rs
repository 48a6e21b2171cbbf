//! A conversation in the form that one server accepts: the output of the normalising pass (`history`) and the input of
//! the encoders of the wires.
//!
//! The order, the ids and the omissions that a server needs are settled before: an encoder makes no decisions about
//! the conversation and looks nothing up.

use std::borrow::Cow;

use serde_json::Value;

use super::result_text::ResultText;
use crate::base::image::Image;

/// One side's uninterrupted contribution. A [`WireTurn::Results`] follows each [`WireTurn::Model`] that calls tools, and
/// nothing else; no turn is empty, and the first is the user's.
#[derive(Debug, Clone, PartialEq)]
pub enum WireTurn<'a> {
    User(Vec<UserPart<'a>>),
    Model(Vec<ModelPart<'a>>),
    /// One result for each call of the turn before, in the order of the calls.
    Results(Vec<ToolResult<'a>>),
}

impl<'a> WireTurn<'a> {
    /// The results in it.
    pub fn results_mut(&mut self) -> &mut [ToolResult<'a>] {
        match self {
            Self::Results(results) => results,
            Self::User(_) | Self::Model(_) => &mut [],
        }
    }
}

/// A part of a turn in the person's place.
#[derive(Debug, Clone, PartialEq)]
pub enum UserPart<'a> {
    Text(Cow<'a, str>),
    Picture(&'a Image),
}

/// A part of a reply. Opaque data is there only if it came from the server and the model that read it now.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelPart<'a> {
    /// Never blank.
    Text {
        text: Cow<'a, str>,
        opaque: Option<&'a Value>,
    },
    /// Reasoning goes back only if its server wants it, so it has opaque data. A text or a call follows it,
    /// unless the server paused there.
    Reasoning {
        text: &'a str,
        opaque: &'a Value,
    },
    Call(WireCall<'a>),
}

/// A call under an id and a name that the server accepts.
#[derive(Debug, Clone, PartialEq)]
pub struct WireCall<'a> {
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// The text of a JSON object.
    pub arguments: Cow<'a, str>,
    pub opaque: Option<&'a Value>,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    /// The id of the call.
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// Not blank.
    pub text: ResultText<'a>,
    pub is_error: bool,
    /// Empty unless the server takes pictures in results.
    pub pictures: &'a [Image],
}
