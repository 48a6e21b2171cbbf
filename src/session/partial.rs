//! The reply that is streaming, and how much of it is logged.

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct Partial {
    pub text: String,
    pub reasoning: String,
    /// How many bytes of each are in the log.
    pub logged_text: usize,
    pub logged_reasoning: usize,
}

impl Partial {
    /// The number of bytes that are not in the log yet.
    pub fn unlogged(&self) -> usize {
        self.text.len() - self.logged_text + self.reasoning.len() - self.logged_reasoning
    }
}
