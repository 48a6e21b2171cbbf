//! The reply that is streaming, and how much of it the log has.

use jiff::Timestamp;

/// What the reply that is streaming has said.
#[derive(Debug, Default)]
pub(super) struct Partial {
    pub text: String,
    pub reasoning: String,
    /// How much of each is in the log.
    pub logged_text: usize,
    pub logged_reasoning: usize,
    /// When the log last got a piece, or the first piece came.
    pub since: Option<Timestamp>,
}
