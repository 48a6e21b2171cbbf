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
    /// What an interrupted request took, estimated from what was sent and received where its server has stated nothing.
    fn count_cut(&self, open: &OpenRequest) -> TakenTokens {
        open.count_taken().unwrap_or_else(|| {
            let (text, reasoning) = self.conversation.session.partial();
            let reasoning_tokens = tokens::estimate_tokens(reasoning);
            let output_tokens = tokens::estimate_tokens(text) + reasoning_tokens;
            let TakenTokens { usage, cost_usd } = open.count_cancelled();
            TakenTokens { usage: Usage { output_tokens, reasoning_tokens, ..usage }, cost_usd }
        })
    }

    /// Enters a failed attempt, with the reply as far as it came.
    pub(in crate::agent) fn settle_attempt(&mut self, error: &ModelError) {
        let Some(open) = self.conversation.asking.take() else { return };
        let taken = self.count_cut(&open);
        let has_begun = open.count_taken().is_some() || taken.usage.output_tokens > 0;
        let taken = if has_begun { taken } else { TakenTokens::default() };
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
        let TakenTokens { usage, cost_usd } = open.as_ref().map(|open| self.count_cut(open)).unwrap_or_default();
        if self.conversation.session.partial().0.trim().is_empty() {
            if let Some(open) = open {
                self.enter_unanswered(open, RequestStatus::Cancelled, usage, cost_usd);
            }
            self.conversation.session.clear_partial();
            return self.conversation.session.sync().map_err(|error| TurnStop::Failed(error.into()));
        }
        let (usage, cost_usd) = match open {
            Some(open) => {
                self.run.ledger.count_step();
                open.settle(RequestStatus::Cancelled, usage, cost_usd)
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
