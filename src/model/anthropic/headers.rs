//! The headers of the Messages API. A beta is named only in the requests that use it: servers refuse those that they
//! do not know.

use super::super::asked::OutgoingRequest;
use super::cloud::ClaudeCloud;
use super::flags::AnthropicFlags;
use super::thinking::Asks;

const VERSION: &str = "2023-06-01";
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";
const BINDING: &str = "thinking-binding-controls-2026-08-01";

/// The headers of a request, beside its key. Bedrock reads the betas in the body, and the clouds their version.
pub fn list_headers(asked: &OutgoingRequest<'_>, flags: &AnthropicFlags) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    if flags.cloud.is_none() {
        headers.push(("anthropic-version", VERSION.to_owned()));
    }
    let betas = list_betas(asked, flags);
    if !betas.is_empty() && flags.cloud != Some(ClaudeCloud::Bedrock) {
        headers.push(("anthropic-beta", betas.join(",")));
    }
    headers
}

/// The betas that a request uses.
pub(super) fn list_betas(asked: &OutgoingRequest<'_>, flags: &AnthropicFlags) -> Vec<&'static str> {
    let asks = Asks::choose(asked, flags);
    let betas = [
        (INTERLEAVED, flags.interleaved_beta && matches!(asks, Asks::Budget(_))),
        (BINDING, flags.binding_controls && asks == Asks::Adaptive),
    ];
    betas.into_iter().filter(|(_, used)| *used).map(|(name, _)| name).collect()
}
