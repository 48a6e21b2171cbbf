//! The room for the reply beside the request in the server's window. A limit of the reply that leaves the window too
//! little is lowered to what is left, as soon as the server has said how large its window is.

use crate::agent::request::claim_for;
use crate::agent::window::RequestSize;
use crate::model::ledger::LEAST_OUTPUT;
use crate::model::{ModelError, ModelErrorKind, Stated};

use super::Turn;

impl Turn<'_> {
    /// Reacts to a refusal because the request and its reply together exceed the window, when a shorter reply would
    /// fit. False if it is another refusal, or too little is left.
    pub(super) fn make_reply_fit(&mut self, error: &ModelError, size: &RequestSize) -> bool {
        if !matches!(error.kind, ModelErrorKind::ContextTooLong | ModelErrorKind::BadRequest) {
            return false;
        }
        let Stated { limit: Some(limit), input, output: Some(_) } = Stated::read(&error.message) else {
            return false;
        };
        let input = input.unwrap_or(size.tokens);
        if input.saturating_add(self.least_output()) > limit {
            return false;
        }
        // In our tokens: what is left beside a request is found by our size of it.
        let limit = limit - input + size.tokens;
        let model = self.agent.model.info().id.clone();
        let is_news = self.stated_limit().is_none_or(|known| limit < known);
        self.conversation.stated_limit = Some((model, limit));
        is_news
    }

    /// The most tokens that the reply to a request of this size may have, if the server's window leaves less than the
    /// model could write; never less than a reply needs.
    pub(super) fn find_reply_room(&self, size: u64) -> Option<u64> {
        let left = self.stated_limit()?.saturating_sub(size).max(self.least_output());
        let most = self.agent.model.info().largest_output;
        most.is_none_or(|most| left < most).then_some(left)
    }

    /// The tokens that the server of this model states as the limit of a request and its reply.
    pub(super) fn stated_limit(&self) -> Option<u64> {
        let (model, limit) = self.conversation.stated_limit.as_ref()?;
        (*model == self.agent.model.info().id).then_some(*limit)
    }

    /// The fewest tokens of a reply that make a request worth sending.
    pub(super) fn least_output(&self) -> u64 {
        claim_for(self.agent.model.info(), 0).least_output.max(LEAST_OUTPUT)
    }
}
