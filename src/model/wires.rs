//! The three wires behind one interface.

use super::asked::OutgoingRequest;
use super::decode::Decode;
use super::dialect::{Auth, Dialect};
use super::history::{CallIds, Pictures};
use super::{anthropic, chat, responses};
use crate::config::Wire;
use crate::model::ToolDefinition;

/// The path below the base URL.
pub fn choose_path(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "/chat/completions",
        Wire::Responses => "/responses",
        Wire::Anthropic => "/messages",
    }
}

/// The header that carries the key if the dialect names none.
pub fn choose_auth(wire: Wire) -> Auth {
    match wire {
        Wire::Chat | Wire::Responses => Auth::Bearer,
        Wire::Anthropic => Auth::XApiKey,
    }
}

/// The ids of calls that the server accepts.
pub fn choose_ids(wire: Wire, dialect: &Dialect) -> CallIds {
    match wire {
        Wire::Chat => dialect.chat.ids,
        Wire::Responses | Wire::Anthropic => CallIds::Word64,
    }
}

/// The way that pictures in results are sent to a model that sees.
pub fn place_pictures(wire: Wire, dialect: &Dialect) -> Pictures {
    match wire {
        Wire::Chat => dialect.chat.pictures,
        Wire::Responses => dialect.responses.pictures,
        Wire::Anthropic => Pictures::InResults,
    }
}

/// True if the user may speak right after results.
pub fn user_after_results(wire: Wire, dialect: &Dialect) -> bool {
    match wire {
        Wire::Chat => dialect.chat.user_after_results,
        Wire::Responses | Wire::Anthropic => true,
    }
}

/// The body of a request.
pub fn encode_request(wire: Wire, asked: &OutgoingRequest<'_>, dialect: &Dialect) -> Vec<u8> {
    match wire {
        Wire::Chat => chat::encode_request(asked, &dialect.chat),
        Wire::Responses => responses::encode_request(asked, &dialect.responses),
        Wire::Anthropic => anthropic::encode_request(asked, &dialect.anthropic),
    }
}

/// The headers that a request needs beside the key.
pub fn list_headers(wire: Wire, asked: &OutgoingRequest<'_>, dialect: &Dialect) -> Vec<(&'static str, String)> {
    match wire {
        Wire::Chat | Wire::Responses => Vec::new(),
        Wire::Anthropic => anthropic::list_headers(asked, &dialect.anthropic),
    }
}

/// A decoder for one reply to a request with these tools.
pub fn create_decoder(wire: Wire, dialect: &Dialect, tools: &[ToolDefinition]) -> Box<dyn Decode> {
    match wire {
        Wire::Chat => Box::new(chat::ChatDecoder::new(&dialect.chat, tools)),
        Wire::Responses => Box::new(responses::ResponsesDecoder::default()),
        Wire::Anthropic => Box::new(anthropic::AnthropicDecoder::new(&dialect.anthropic)),
    }
}
