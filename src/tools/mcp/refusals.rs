//! What a server refuses, in our words.

use std::error::Error;
use std::io;

use rmcp::service::{ClientInitializeError, ServiceError};

use super::McpCallError;
use super::login::TokenFile;
use super::program::ENDED;
use crate::safety::net;

/// The end of a sentence about a server that nobody has logged in to.
pub(super) const WANTS_LOGIN: &str = "wants a login: `agent mcp login NAME`, or `headers` in its file";

/// Why a call has no result. The scopes that a login lacked for it are remembered for the next one.
pub(super) fn sort_refusal(error: ServiceError, login: Option<&(String, TokenFile)>) -> McpCallError {
    if let (Some(challenge), Some((url, tokens))) = (error.auth_challenge(), login) {
        let scopes = tokens.miss_scopes(challenge, url);
        return McpCallError::Unauthorized(scopes.map_or_else(String::new, |scopes| format!(" for `{scopes}`")));
    }
    match error {
        ServiceError::McpError(error) => McpCallError::Refused(error.message.into_owned()),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) | ServiceError::Cancelled { .. } => {
            McpCallError::Gone(error.to_string())
        }
        ServiceError::UnexpectedResponse => {
            McpCallError::Refused("The server's answer is no result of such a request.".to_owned())
        }
        error => McpCallError::Refused(error.to_string()),
    }
}

/// The words of a server that refuses a request, whole: who shows them masks them, then cuts them.
pub(super) fn word_refusal(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => error.message.to_string(),
        error => error.to_string(),
    }
}

fn is_closed(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The end of a sentence about a server that cannot be opened, whole: who shows it masks it, then cuts it.
pub(super) fn explain_opening(error: &ClientInitializeError) -> String {
    match error {
        _ if error.is_authorization_required() => WANTS_LOGIN.to_owned(),
        ClientInitializeError::JsonRpcError(error) => format!("refuses the connection: {}", error.message),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => explain_opening(fallback),
        ClientInitializeError::ConnectionClosed(_) => ENDED.to_owned(),
        ClientInitializeError::TransportError { error, .. } if is_closed(error.error.as_ref()) => ENDED.to_owned(),
        ClientInitializeError::TransportError { error, .. } => {
            format!("cannot be reached: {}", net::list_causes(error.error.as_ref()))
        }
        error => format!("does not speak the protocol: {error}"),
    }
}
