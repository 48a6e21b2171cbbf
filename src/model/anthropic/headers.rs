//! The headers of the Messages API. A beta is named only in the requests that use it: servers refuse those that they
//! do not know.

use super::super::asked::Asked;
use super::flags::Flags;
use super::thinking::Asks;

const VERSION: &str = "2023-06-01";
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";
const BINDING: &str = "thinking-binding-controls-2026-08-01";

/// The headers of a request, beside its key.
#[must_use]
pub fn headers(asked: &Asked<'_>, flags: &Flags) -> Vec<(&'static str, String)> {
    let asks = Asks::of(asked, flags);
    let betas = [
        (INTERLEAVED, flags.interleaved_beta && matches!(asks, Asks::Budget(_))),
        (BINDING, flags.binding_controls && asks == Asks::Adaptive),
    ];
    let betas: Vec<&str> = betas.into_iter().filter(|(_, used)| *used).map(|(name, _)| name).collect();
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    if !betas.is_empty() {
        headers.push(("anthropic-beta", betas.join(",")));
    }
    headers
}
