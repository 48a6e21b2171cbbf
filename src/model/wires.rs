//! The three wires behind one interface.

use super::asked::Asked;
use super::decode::Decode;
use super::dialect::{Auth, Dialect};
use super::history::{Ids, Pictures};
use super::{anthropic, chat, responses};
use crate::config::Wire;
use crate::model::ToolDefinition;

/// The path below the base URL.
#[must_use]
pub fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "/chat/completions",
        Wire::Responses => "/responses",
        Wire::Anthropic => "/messages",
    }
}

/// The header that carries the key if the dialect names none.
#[must_use]
pub fn auth(wire: Wire) -> Auth {
    match wire {
        Wire::Chat | Wire::Responses => Auth::Bearer,
        Wire::Anthropic => Auth::XApiKey,
    }
}

/// The ids of calls that the server accepts.
#[must_use]
pub fn ids(wire: Wire, dialect: &Dialect) -> Ids {
    match wire {
        Wire::Chat => dialect.chat.ids,
        Wire::Responses | Wire::Anthropic => Ids::Word64,
    }
}

/// The way that pictures in results are sent to a model that sees.
#[must_use]
pub fn pictures(wire: Wire, dialect: &Dialect) -> Pictures {
    match wire {
        Wire::Chat => dialect.chat.pictures,
        Wire::Responses => dialect.responses.pictures,
        Wire::Anthropic => Pictures::InResults,
    }
}

/// True if the user may speak right after results.
#[must_use]
pub fn user_after_results(wire: Wire, dialect: &Dialect) -> bool {
    match wire {
        Wire::Chat => dialect.chat.user_after_results,
        Wire::Responses | Wire::Anthropic => true,
    }
}

/// The body of a request.
#[must_use]
pub fn encode(wire: Wire, asked: &Asked<'_>, dialect: &Dialect) -> Vec<u8> {
    match wire {
        Wire::Chat => chat::encode(asked, &dialect.chat),
        Wire::Responses => responses::encode(asked, &dialect.responses),
        Wire::Anthropic => anthropic::encode(asked, &dialect.anthropic),
    }
}

/// The headers that a request needs beside the key.
#[must_use]
pub fn headers(wire: Wire, asked: &Asked<'_>, dialect: &Dialect) -> Vec<(&'static str, String)> {
    match wire {
        Wire::Chat | Wire::Responses => Vec::new(),
        Wire::Anthropic => anthropic::headers(asked, &dialect.anthropic),
    }
}

/// A decoder for one reply to a request with these tools.
#[must_use]
pub fn decoder(wire: Wire, dialect: &Dialect, tools: &[ToolDefinition]) -> Box<dyn Decode> {
    match wire {
        Wire::Chat => Box::new(chat::Decoder::new(&dialect.chat, tools)),
        Wire::Responses => Box::new(responses::Decoder::default()),
        Wire::Anthropic => Box::new(anthropic::Decoder::new(&dialect.anthropic)),
    }
}
