//! Making the next request fit: measured and planned in `context`, carried out here. What goes is kept where `recall`
//! finds it, a summary is asked for where the plan wants one, and the view is edited in one pass, so that a provider's
//! cache of the prefix is lost once.
//!
//! Nothing is recorded before everything is ready: a compression that is interrupted has changed nothing.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;

use crate::config::Strategy;
use crate::context::{self, Budget, Fate, Goal, Head, Material, Plan, Record, Room, Size, Usage};
use crate::event::{Compressed, CompressionReason, EventKind};
use crate::message::Message;
use crate::session::{EditReason, Session};

use super::turn::{Stop, Turn};

/// So many compressions in a row without progress stop the run: they gained next to nothing, or had to hide results
/// that the model had not read.
const MOST_STALLED: u32 = 3;

impl Turn<'_> {
    /// What a request may hold, with what refusals have taught.
    pub(super) fn budget(&self) -> Budget {
        self.agent.budget.at_most(self.session.learned_budget())
    }

    /// Above this the conversation is compressed.
    fn threshold(&self) -> u64 {
        self.agent.context.compress_at.of(self.budget().tokens)
    }

    /// The size of the next request.
    pub(super) fn measure(&mut self) -> Size {
        self.measure_from(self.threshold())
    }

    /// The same, with nothing estimated that can be counted.
    pub(super) fn measure_exactly(&mut self) -> Size {
        self.measure_from(0)
    }

    fn measure_from(&mut self, threshold: u64) -> Size {
        self.run.ruler.measure(
            context::Request {
                model: &self.agent.model.info().id,
                tools: self.agent.tools.definitions(),
                messages: self.session.messages(),
                ids: self.session.ids(),
            },
            threshold,
        )
    }

    /// Compresses the conversation if the next request would pass the threshold. What then is still larger than the
    /// budget cannot be sent.
    pub(super) async fn fit(&mut self) -> Result<Size, Stop> {
        let size = self.measure();
        if size.tokens <= self.threshold() {
            self.run.stalled = 0;
            return Ok(size);
        }
        if self.compress(CompressionReason::Threshold, "").await?.is_none() {
            return if size.tokens > self.budget().tokens { Err(self.full()) } else { Ok(size) };
        }
        let after = self.measure();
        if after.tokens > self.budget().tokens || self.run.stalled >= MOST_STALLED {
            return Err(self.full());
        }
        Ok(Size { broken: None, ..after })
    }

    /// A server refused the request as too long: takes the smaller budget from now on and makes the conversation fit.
    /// False when nothing can be gained.
    pub(super) async fn shrink(&mut self, refusal: &str) -> Result<bool, Stop> {
        let sent = self.measure().tokens;
        let learned = context::learned(refusal, sent).min(self.budget().tokens);
        self.session.learn_budget(learned, Timestamp::now());
        let message = format!("the server takes no more than {learned} tokens: that is the budget from now on");
        self.run.emitter.emit(EventKind::Warning { message })?;
        let done = self.compress(CompressionReason::Overflow, "").await?;
        Ok(done.is_some() && self.run.stalled < MOST_STALLED)
    }

    /// Takes one pass over the conversation. `None` when it would gain too little to be worth losing the cache.
    pub(super) async fn compress(
        &mut self,
        reason: CompressionReason,
        focus: &str,
    ) -> Result<Option<Compressed>, Stop> {
        let before = self.measure().tokens;
        let budget = self.budget().tokens;
        let goal = self.goal(reason, before);
        let plan = self.plan(goal);
        if before.saturating_sub(plan.tokens) < least_gain(reason, before, budget) {
            return Ok(None);
        }
        self.run.emitter.emit(EventKind::ContextCompressing { reason, tokens: before })?;
        let mut done = Compressed {
            reason,
            strategy: self.agent.context.strategy.name().to_owned(),
            tokens_before: before,
            tokens_after: 0,
            budget,
            masked: plan.count(|fate| *fate == Fate::Shorten),
            summarized: plan.count(|fate| *fate == Fate::Remove),
            unloaded: plan.count(|fate| matches!(fate, Fate::Unload(_))),
            usage: crate::message::Usage::default(),
            cost_usd: None,
        };
        let hides_the_unread = plan.hides_the_unread(self.session.messages());
        let standing = match done.summarized {
            0 => None,
            _ => Some(self.standing(&plan, goal.to, focus, &mut done).await?),
        };
        self.carry_out(&plan, standing, &mut done)?;
        let gained = before.saturating_sub(done.tokens_after);
        let is_progress = (done.tokens_after <= goal.to || gained * 10 >= budget) && !hides_the_unread;
        self.run.stalled = if is_progress { 0 } else { self.run.stalled + 1 };
        Ok(Some(done))
    }

    /// Where a compression is to land. A person who asks for one wants less than there is, however little that be.
    pub(super) fn goal(&self, reason: CompressionReason, before: u64) -> Goal {
        let settings = &self.agent.context;
        let budget = self.budget().tokens;
        let to = settings.compress_to.of(budget);
        let asked = reason == CompressionReason::Manual;
        Goal {
            to: if asked { to.min(settings.compress_to.of(before)) } else { to },
            at_most: settings.compress_at.of(budget),
            keep_recent_steps: settings.keep_recent_steps,
        }
    }

    /// What would become of each message.
    pub(super) fn plan(&self, goal: Goal) -> Plan {
        let weights = self.run.ruler.weights();
        let quoted = said_before(self.session).map(|text| self.run.ruler.weigh(text)).sum();
        context::plan(self.agent.context.strategy, self.material(&weights, quoted), goal)
    }

    fn material<'m>(&'m self, weights: &'m [u64], quoted: u64) -> Material<'m> {
        Material {
            messages: self.session.messages(),
            ids: self.session.ids(),
            weights,
            fixed: self.run.ruler.tools(),
            pinned: self.session.pinned(),
            quoted,
            ruler: &self.run.ruler,
        }
    }

    /// What stands for the messages that go: a summary, or a note where the strategy makes none.
    async fn standing(
        &mut self,
        plan: &Plan,
        to: u64,
        focus: &str,
        done: &mut Compressed,
    ) -> Result<Message, Stop> {
        let gone = gone(self.session, plan);
        let recall = self.spill(&context::transcript(gone.iter().copied()));
        if matches!(self.agent.context.strategy, Strategy::Window | Strategy::Selective) {
            return Ok(context::note(gone.len(), recall.as_deref()));
        }
        let room = Room::of(to);
        let body = self.ask_for_summary(plan, room, focus, done).await?;
        let gone = self::gone(self.session, plan);
        let asked = self.session.messages().iter().rfind(|message| message.is_from_person()).map(Message::content);
        let plan = self.session.state().get("todo");
        let record = Record { gone, asked, plan, recall: recall.as_deref(), room };
        Ok(context::message(&record, &body.unwrap_or_else(|| context::in_code(&record))))
    }

    /// Edits the view, and tells whoever watches.
    fn carry_out(&mut self, plan: &Plan, standing: Option<Message>, done: &mut Compressed) -> Result<(), Stop> {
        let weights = self.run.ruler.weights();
        let edits = {
            let keep = |index: usize| self.spill(&context::original(&self.session.messages()[index]));
            plan.edits(self.material(&weights, 0), &keep, standing)
        };
        let unloaded: Vec<(String, u64)> = plan
            .unloaded()
            .into_iter()
            .map(|name| {
                let texts = plan.fates.iter().zip(&weights);
                let tokens = texts.filter(|(fate, _)| matches!(fate, Fate::Unload(of) if of == name));
                (name.to_owned(), tokens.map(|(_, tokens)| tokens).sum())
            })
            .collect();
        // The figure is part of the entry that makes it true.
        done.tokens_after = plan.tokens;
        let now = Timestamp::now();
        let reason = EditReason::Compressed(done.clone());
        self.session.edit(&reason, edits, now).map_err(anyhow::Error::from)?;
        for (name, tokens) in unloaded {
            let path = self.agent.briefing.loaded.forget(&name).unwrap_or_default();
            self.run.emitter.emit(EventKind::SkillUnloaded { name, path, tokens })?;
        }
        let prompt = self.agent.system_prompt(self.session, &self.run.emitter.run_id())?;
        let standing = self.session.messages().first();
        if standing.is_some_and(|first| matches!(first, Message::System { content } if *content != prompt)) {
            self.session.record(Message::System { content: prompt }, now).map_err(anyhow::Error::from)?;
        }
        done.tokens_after = self.measure().tokens;
        self.run.emitter.emit(EventKind::ContextCompressed(done.clone()))?;
        Ok(())
    }

    /// What fills the window, for a person who has to know why it does not go on.
    fn full(&mut self) -> Stop {
        let usage = self.usage();
        Stop::ContextFull(format!(
            "the conversation cannot be made to fit: it has {} tokens, the budget is {} ({}). Start a new session, \
             ask for less at once, or raise context.budget if the model holds more",
            usage.used,
            usage.budget.tokens,
            usage.sentence()
        ))
    }

    /// What fills the window.
    pub(super) fn usage(&mut self) -> Usage {
        self.measure();
        let weights = self.run.ruler.weights();
        let messages = self.session.messages();
        let (lists, instructions) = self.agent.briefing.elastic();
        let weigh = |text: &str| self.run.ruler.weigh(text);
        let head = Head { tools: self.run.ruler.tools(), lists: weigh(&lists), instructions: weigh(instructions) };
        Usage::new(messages, &weights, head, self.budget(), self.threshold())
    }
}

/// The tokens that a pass has to gain. One that was not asked for costs the provider's cache.
fn least_gain(reason: CompressionReason, before: u64, budget: u64) -> u64 {
    match reason {
        CompressionReason::Threshold if before <= budget => budget / 20,
        _ => 1,
    }
}

/// What a person said that a summary quotes already.
fn said_before(session: &Session) -> impl Iterator<Item = &str> {
    session.hidden().filter(|(_, message)| message.is_from_person()).map(|(_, message)| message.content())
}

/// What is not shown any more once the plan is carried out, as it was said, in order.
fn gone<'s>(session: &'s Session, plan: &Plan) -> Vec<&'s Message> {
    let ids = session.ids();
    let removed: HashSet<u64> = plan.removed().map(|index| ids[index].number).collect();
    let stays: HashSet<u64> = ids.iter().map(|id| id.number).filter(|number| !removed.contains(number)).collect();
    let mut gone: BTreeMap<u64, &Message> =
        plan.removed().map(|index| (ids[index].number, &session.messages()[index])).collect();
    gone.extend(session.hidden().filter(|(number, _)| !stays.contains(number)));
    gone.into_values().collect()
}
