//! The budget: what a request may hold of a model's window.

use crate::config::ContextSettings;
use crate::contract::ModelInfo;

/// The tokens that a request may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// What the model can hold in all.
    pub window: u64,
    /// Kept free for the reply.
    pub reserve: u64,
    /// What a request may hold: the window less the reserve and a margin for what cannot be counted exactly.
    pub tokens: u64,
    /// The same before a server taught less.
    pub declared: u64,
}

impl Budget {
    /// # Errors
    /// A sentence, when the reserve leaves nothing.
    pub fn new(model: &ModelInfo, settings: &ContextSettings) -> Result<Self, String> {
        /// Two per cent for the provider's own framing of messages and tools.
        const MARGIN_SHARE: u64 = 50;
        /// The reserve where neither the model nor the settings declare one.
        const RESERVE: u64 = 8192;
        let window = model.context_window;
        let reserve =
            settings.reserve_output.or(model.max_output_tokens).unwrap_or(RESERVE.min(window / 4)).min(window);
        let room = (window - reserve).saturating_sub(window / MARGIN_SHARE);
        let tokens = settings.budget.unwrap_or(room).min(window);
        if tokens == 0 {
            return Err(format!(
                "the context window of {window} tokens leaves no room beside a reserve of {reserve} for the reply: \
                 lower context.reserve_output or the model's max_output_tokens"
            ));
        }
        Ok(Self { window, reserve, tokens, declared: tokens })
    }

    /// The same with at most `tokens`: what a server taught.
    #[must_use]
    pub fn at_most(self, tokens: Option<u64>) -> Self {
        Self { tokens: tokens.map_or(self.tokens, |tokens| tokens.min(self.tokens)), ..self }
    }
}
