//! An empty reply after results. Anthropic documents that a model which has said what it had to say beside its calls
//! ends so; the same request would get the same reply. Where it said something, that is the answer. Where it said
//! nothing, it is told once to go on.

use crate::conversation::message::{FinishReason, Item, Step, UserText};

use super::{Turn, TurnStop};

/// The words after which an empty reply is a failure.
const GO_ON: &str = "[Your reply was empty. Go on with the task; if it is done, give the answer.]";

impl Turn<'_> {
    /// True if an empty reply would be an end: results stand before it, and the model was not told to go on.
    pub(super) fn may_be_silent(&self) -> bool {
        let items = self.conversation.session.items();
        let is_reminder =
            |item: &Item| matches!(item, Item::Said(said) if !said.author.is_person() && said.text != GO_ON);
        let before = items.iter().rev().find(|item| !is_reminder(item));
        before.and_then(Item::as_step).is_some_and(Step::has_calls)
    }

    /// Returns the model's words before an empty reply. Without any, tells it to go on.
    pub(super) fn take_silence(&mut self) -> Result<Option<String>, TurnStop> {
        let words = self.last_text();
        if words.trim().is_empty() {
            self.say(UserText::by_program(GO_ON))?;
            return Ok(None);
        }
        Ok(Some(words))
    }
}

impl Step {
    /// True if the model ended its reply without a word and without a call.
    pub(super) fn is_silent(&self) -> bool {
        self.finish_reason == FinishReason::Stop && !self.has_calls() && self.text().trim().is_empty()
    }
}
