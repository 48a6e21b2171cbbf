//! Completes a conversation when a turn is interrupted: streamed text becomes an interrupted reply, and the running
//! request is counted. Open calls are answered by `call/settle.rs`.

use jiff::Timestamp;

use crate::base::tokens;
use crate::conversation::message::{FinishReason, Part, Step, Usage};

use super::turn::{Stop, Turn};

impl Turn<'_> {
    /// The usage of an interrupted request, estimated from what was sent and received.
    fn cut_usage(&self, input_tokens: u64) -> Usage {
        let (text, reasoning) = self.conversation.session.partial();
        let reasoning_tokens = tokens::estimate(reasoning);
        let output_tokens = tokens::estimate(text) + reasoning_tokens;
        Usage { input_tokens, output_tokens, reasoning_tokens, estimated: true, ..Usage::default() }
    }

    /// Counts a failed attempt if the server had begun to answer.
    pub(super) fn settle_attempt(&mut self) {
        let Some(input) = self.conversation.asking.take() else { return };
        let mut usage = self.cut_usage(input);
        if usage.output_tokens > 0 {
            let cost = self.spend(&mut usage, None);
            self.conversation.session.spend(usage, cost, Timestamp::now());
        }
    }

    /// Keeps streamed text as an interrupted reply after an interruption, and counts the running request.
    pub(super) fn settle_reply(&mut self) -> Result<(), Stop> {
        let mut usage = self.conversation.asking.take().map(|input| self.cut_usage(input)).unwrap_or_default();
        if self.conversation.session.partial().0.trim().is_empty() {
            if usage != Usage::default() {
                let cost = self.spend(&mut usage, None);
                self.conversation.session.spend(usage, cost, Timestamp::now());
            }
            self.conversation.session.clear_partial();
            return self.conversation.session.sync().map_err(|error| Stop::Failed(error.into()));
        }
        if usage != Usage::default() {
            self.run.totals.steps += 1;
        }
        let cost_usd = if usage == Usage::default() { None } else { self.spend(&mut usage, None) };
        let (text, reasoning) = self.conversation.session.partial();
        let mut step = Step { usage, cost_usd, ..Step::of_text(text, FinishReason::Interrupted) };
        if !reasoning.is_empty() {
            step.parts.insert(0, Part::Reasoning { text: reasoning.to_owned(), opaque: None });
        }
        self.keep_reply(step)?;
        self.conversation.session.sync().map_err(|error| Stop::Failed(error.into()))
    }
}
