//! Mode `explore`: the turn reads and proposes. Calls that change anything are refused until a person approves the
//! proposal; then the same turn carries it out. With nobody to ask, the turn ends with the proposal.
//!
//! The tools and the system prompt stay the same to keep a cached prefix valid. A note before the input tells the
//! model, and applies only to that input.

use crate::agent::Agent;
use crate::agent::turn::{Turn, TurnStop};
use crate::config::Mode;
use crate::conversation::message::UserText;
use crate::safety::{PlanReview, PlanSheet};

const EXPLORE: &str = "The next message is answered in mode `explore`: read whatever you need, and change nothing. Calls \
                       that would change something are refused. Answer with a proposal: what you would change, file \
                       by file, which commands you would run, and why; or with the plain answer, if nothing is to be \
                       changed.";
const TO_A_PERSON: &str = " If the user approves the proposal, you are told so, and carry it out.";
const TO_NOBODY: &str = " The proposal is the end of your work: nobody is there to approve it.";

impl Agent {
    /// The note for the model before the input of a turn; `None` in most modes.
    pub fn before_input(&self) -> Option<UserText> {
        let end = if self.approver.present() { TO_A_PERSON } else { TO_NOBODY };
        (self.mode == Mode::Explore).then(|| UserText::by_program(format!("{EXPLORE}{end}")))
    }
}

impl Turn<'_> {
    /// Asks the person about the answer of a turn that explores. Returns true if the turn goes on, to carry out the
    /// proposal or to improve it.
    pub(in crate::agent) async fn goes_on_after(&mut self, proposal: &str) -> Result<bool, TurnStop> {
        if !self.is_exploring || proposal.trim().is_empty() || !self.agent.approver.present() {
            return Ok(false);
        }
        let review = {
            let _pause = self.clock.pause();
            self.agent.approver.review_plan(PlanSheet::Proposal(proposal)).await
        };
        let Some((told, is_approval)) = word_decision(review) else { return Ok(false) };
        self.is_exploring = !is_approval;
        let text = self.agent.redactor.redact_known(&told).into_owned();
        self.say(UserText::by_program(text))?;
        Ok(true)
    }
}

/// The message to the model about a decision, and whether it is an approval; `None` if the proposal is the answer.
fn word_decision(review: PlanReview) -> Option<(String, bool)> {
    match review {
        PlanReview::Run => Some(("The user approves the proposal. Carry it out.".to_owned(), true)),
        PlanReview::Edited(text) => {
            let text = text.trim_end();
            Some((format!("The user approves the proposal as they edited it. Carry this out:\n\n{text}"), true))
        }
        PlanReview::Refuse(why) if why.is_empty() => None,
        PlanReview::Refuse(why) => Some((
            format!("The user does not approve the proposal and says: {why}\nPropose anew. Change nothing."),
            false,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{PlanReview, word_decision};

    #[test]
    fn only_an_approval_lets_anything_change() {
        let refuse = |why: &str| PlanReview::Refuse(why.to_owned());
        for (review, expected) in [
            (PlanReview::Run, Some(("Carry it out", true))),
            (PlanReview::Edited("do less\n".to_owned()), Some(("do less", true))),
            (refuse("too much"), Some(("says: too much", false))),
            (refuse(""), None),
        ] {
            let told = word_decision(review.clone());
            assert_eq!(told.as_ref().map(|(_, is)| *is), expected.map(|(_, is)| is), "{review:?}");
            let part = expected.map_or("", |(part, _)| part);
            assert!(told.is_none_or(|(text, _)| text.contains(part)), "{review:?}");
        }
    }
}
