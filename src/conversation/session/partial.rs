//! The reply that is streaming, and the part of it that is logged.

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct Partial {
    pub text: String,
    pub reasoning: String,
    /// The number of bytes of each that are in the log.
    pub logged_text: usize,
    pub logged_reasoning: usize,
}

impl Partial {
    /// The number of bytes that are not in the log yet.
    pub fn count_unlogged(&self) -> usize {
        self.text.len() - self.logged_text + self.reasoning.len() - self.logged_reasoning
    }
}
