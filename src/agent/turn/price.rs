//! Price tiers: some models cost more for a whole request from a size on. The budget stops below the next such size; a
//! session that is above it already is not compressed for it, nor is anything cut that the person has just said.
//! A step that crosses one is told before it is sent.

use crate::agent::conversation::PricedRequests;
use crate::config::{PriceTier, Prices};
use crate::conversation::event::EventKind;
use crate::conversation::message::Item;

use super::{Turn, TurnStop};

impl Turn<'_> {
    /// Finds the price tier that the budget reaches to, before a request of this size.
    pub(super) fn note_price_tier(&mut self, size: u64) {
        let Some(here) = self.prices().map(|prices| prices.choose_tier(size).above) else { return };
        let model = self.agent.model.info().id.clone();
        let known = self.conversation.priced.take().filter(|priced| priced.model == model);
        // A session that is continued, or goes on with another model, was as large before.
        let mut priced = known.unwrap_or(PricedRequests { model, above: here, told: 0 });
        priced.above = priced.above.min(here);
        self.conversation.priced = Some(priced);
        if self.measure_least() > self.budget().tokens {
            self.raise_tier(here);
        }
    }

    /// Lets the budget reach to the next price tier; false if no price bounds it.
    pub(super) fn cross_price_tier(&mut self) -> bool {
        if self.budget().tokens >= self.budget().divide_by_layers() {
            return false;
        }
        let above = self.conversation.priced.as_ref().map_or(0, |priced| priced.above);
        let next = self.prices().and_then(|prices| prices.find_dearer(&prices.choose_tier(above + 1)));
        next.is_some_and(|tier| {
            self.raise_tier(tier.above);
            true
        })
    }

    /// Tells the person, once, that the next request costs more than the one before it because of its size.
    pub(super) fn tell_price_tier(&mut self, size: u64) -> Result<(), TurnStop> {
        let Some(prices) = self.prices() else { return Ok(()) };
        let (now, told) =
            (prices.choose_tier(size), self.conversation.priced.as_ref().map_or(0, |priced| priced.told));
        let before = prices.choose_tier(told + 1);
        let message = (now.above > told).then(|| self.describe_tier(size, &before, &now));
        if let Some(priced) = &mut self.conversation.priced {
            priced.told = now.above;
        }
        match message {
            Some(message) => Ok(self.run.emitter.emit(EventKind::Warning { message })?),
            None => Ok(()),
        }
    }

    fn describe_tier(&self, size: u64, before: &PriceTier, now: &PriceTier) -> String {
        format!(
            "this request has about {size} tokens: above {}, {} costs ${} instead of ${} for a million tokens of input, \
             and ${} instead of ${} of output",
            now.above,
            self.agent.model.info().id,
            now.input,
            before.input,
            now.output,
            before.output,
        )
    }

    fn raise_tier(&mut self, above: u64) {
        if let Some(priced) = &mut self.conversation.priced {
            priced.above = priced.above.max(above);
        }
    }

    /// The tokens that no compression for a price may touch: the prompt, the tools and the person's last message.
    fn measure_least(&self) -> u64 {
        let items = self.conversation.session.items();
        let said = items.iter().rposition(|item| Item::said_by_person(item).is_some());
        let weights = self.conversation.ruler.weights();
        self.conversation.ruler.measure_fixed() + said.and_then(|at| weights.get(at)).copied().unwrap_or(0)
    }

    /// The prices of the model, if they depend on the size of a request.
    fn prices(&self) -> Option<&Prices> {
        self.agent.model.info().prices.as_ref().filter(|prices| !prices.tiers.is_empty())
    }
}
