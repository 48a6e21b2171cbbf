//! Completes a conversation when a turn is interrupted: streamed text becomes an interrupted reply, and the running
//! request is counted. Open calls are answered by `call/settle.rs`.

use jiff::Timestamp;

use crate::agent::request::{OpenRequest, status_of};
use crate::base::tokens;
use crate::conversation::event::RequestStatus;
use crate::conversation::message::{FinishReason, ReplyPart, Step, Usage};
use crate::model::{ModelError, TakenTokens};

use super::{Turn, TurnStop};

impl Turn<'_> {
    /// The usage of an interrupted request, estimated from what was sent and received.
    fn cut_usage(&self, input_tokens: u64) -> Usage {
        let (text, reasoning) = self.conversation.session.partial();
        let reasoning_tokens = tokens::estimate_tokens(reasoning);
        let output_tokens = tokens::estimate_tokens(text) + reasoning_tokens;
        Usage { input_tokens, output_tokens, reasoning_tokens, estimated: true, ..Usage::default() }
    }

    /// Enters a failed attempt, with the reply as far as it came.
    pub(in crate::agent) fn settle_attempt(&mut self, error: &ModelError) {
        let Some(open) = self.conversation.asking.take() else { return };
        let taken = open.taken.unwrap_or_else(|| {
            let usage = self.cut_usage(open.input_tokens);
            TakenTokens { usage: if usage.output_tokens > 0 { usage } else { Usage::default() }, cost_usd: None }
        });
        self.enter_unanswered(open, status_of(error), taken.usage, taken.cost_usd);
    }

    /// Enters a request that brought no step, in the ledger and in the session.
    pub(in crate::agent) fn enter_unanswered(
        &mut self,
        open: OpenRequest,
        status: RequestStatus,
        usage: Usage,
        stated_usd: Option<f64>,
    ) {
        let (usage, cost) = open.settle(status, usage, stated_usd);
        if usage.total() > 0 {
            self.conversation.session.spend(usage, cost, Timestamp::now());
        }
    }

    /// Keeps streamed text as an interrupted reply after an interruption, and enters the running request.
    pub(in crate::agent) fn settle_reply(&mut self) -> Result<(), TurnStop> {
        self.record_beside();
        let open = self.conversation.asking.take();
        let usage = open.as_ref().map(|open| self.cut_usage(open.input_tokens)).unwrap_or_default();
        if self.conversation.session.partial().0.trim().is_empty() {
            if let Some(open) = open {
                self.enter_unanswered(open, RequestStatus::Cancelled, usage, None);
            }
            self.conversation.session.clear_partial();
            return self.conversation.session.sync().map_err(|error| TurnStop::Failed(error.into()));
        }
        let (usage, cost_usd) = match open {
            Some(open) => {
                self.run.ledger.count_step();
                open.settle(RequestStatus::Cancelled, usage, None)
            }
            None => (usage, None),
        };
        let (text, reasoning) = self.conversation.session.partial();
        let mut step = Step { usage, cost_usd, ..Step::of_text(text, FinishReason::Interrupted) };
        if !reasoning.is_empty() {
            step.parts.insert(0, ReplyPart::Reasoning { text: reasoning.to_owned(), opaque: None });
        }
        self.keep_reply(step)?;
        self.conversation.session.sync().map_err(|error| TurnStop::Failed(error.into()))
    }
}
