//! Runs the calls of one reply: each is checked, judged, run and answered exactly once. Calls that only read run
//! concurrently; all others run alone.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};

use crate::agent::window;
use crate::config::ApprovalMode;
use crate::conversation::message::{Step, ToolCall};
use crate::safety::policy::{Grounds, Verdict};
use crate::safety::{Enclosure, Reach, Refused};
use crate::tools::Tool;

use super::conversation::Shared;
use super::execute::{Finished, Place, announce};
use super::flights::{Flights, Slot};
use super::permission::Decision;
use super::prepare::{CallPlan, Footing, MOST_CALLS, Prepared, prepare};
use super::superior::CallerTerms;
use super::turn::{Stop, Turn};
use super::{Emitter, Terms};

/// The questions about running a call again.
const AGAIN_WRITING: &str = "it ran where nothing can be written, and could not write; run it again where it may write in \
the workspace?";
const AGAIN_OUTSIDE: &str = "the sandbox may have blocked it; run it again without any sandbox, with all your files, \
                             credentials and network?";

/// Handles that the calls of a step share with the turn that runs them.
pub(super) struct Deck {
    shared: Arc<Shared>,
    emitter: Arc<Emitter>,
    flights: Arc<Flights>,
    helpers: Arc<CallerTerms>,
    /// The most tokens that the model reads of one result.
    result_tokens: usize,
    /// The most tokens that a tool gives back.
    held_tokens: usize,
    /// True if a plan or a flow makes the calls: these are bounded, so repetition is not a loop.
    pub of_plan: bool,
}

/// The most tokens of a result that later steps of a plan refer to: about 4 MiB.
const MOST_HELD: usize = 1 << 20;

impl Turn<'_> {
    /// Runs all calls of a reply and records their answers.
    ///
    /// A call is judged only after everything before it that could change something has run: by then a path may
    /// mean something else, and content from the previous group may forbid the call.
    pub(super) async fn run_calls(&mut self, number: u64, step: &Step) -> Result<(), Stop> {
        let agent = self.agent;
        let deck = self.deck(step.calls().count());
        let slots = step.calls().enumerate().map(|(at, call)| ((number, at), &call.request));
        let slots: Vec<(Slot, &ToolCall)> = slots.collect();
        let mut calls = slots.into_iter().peekable();
        let owned = |(slot, call)| (slot, Cow::Borrowed(call));
        while let Some(call) = calls.next() {
            let first = prepare(agent, owned(call), step.was_cut(), self.footing());
            if !first.may_run_beside() {
                let finished = self.run_alone(first, &deck).await?;
                self.answer_call(finished, &deck)?;
                continue;
            }
            let mut group = vec![first];
            while let Some(call) = calls.peek() {
                let next = prepare(agent, owned(*call), step.was_cut(), self.footing());
                if !next.may_run_beside() || !next.is_like(&group[0]) {
                    break;
                }
                group.push(next);
                calls.next();
            }
            self.run_side_by_side(group, &deck).await?;
        }
        Ok(())
    }

    /// The current basis for judging calls.
    pub(super) fn footing(&self) -> Footing<'_> {
        Footing { taint: self.conversation.session.taint(), is_exploring: self.is_exploring }
    }

    /// The handles for `calls` calls of a plan. The model reads shortened results as usual, but later steps can refer
    /// to the whole results.
    pub(super) fn deck_of_plan(&self, calls: usize) -> Deck {
        Deck { held_tokens: MOST_HELD, of_plan: true, ..self.deck(calls) }
    }

    /// The handles for `calls` calls, which share the room for results.
    fn deck(&self, calls: usize) -> Deck {
        let setting = self.agent.context.tool_result_max_tokens;
        let fixed = self.conversation.ruler.fixed();
        let result_tokens = window::result_cap(&self.budget(), fixed, setting, calls.clamp(1, MOST_CALLS));
        Deck {
            shared: Arc::clone(&self.conversation.shared),
            emitter: Arc::clone(&self.run.emitter),
            flights: Arc::clone(&self.conversation.flights),
            helpers: Arc::new(self.helper_terms()),
            result_tokens,
            held_tokens: result_tokens,
            of_plan: false,
        }
    }

    pub(super) fn place<'c>(&self, deck: &'c Deck) -> Place<'c>
    where
        Self: 'c,
    {
        Place {
            agent: self.agent,
            shared: &deck.shared,
            emitter: &deck.emitter,
            clock: self.clock,
            flights: &deck.flights,
            helpers: &deck.helpers,
            result_tokens: deck.held_tokens,
        }
    }

    async fn run_side_by_side<'c>(&mut self, group: Vec<Prepared<'c>>, deck: &'c Deck) -> Result<(), Stop>
    where
        Self: 'c,
    {
        let place = self.place(deck);
        let run = |prepared: Prepared<'c>| {
            let tool = prepared.tool();
            async move { (prepared.run(place).await, tool) }.boxed()
        };
        let calls: Vec<_> = group.into_iter().map(run).collect();
        let most = self.agent.limits.max_parallel.max(1);
        let mut answers = futures_util::stream::iter(calls).buffered(most);
        while let Some((mut finished, tool)) = answers.next().await {
            if let Some(tool) = tool {
                finished = self.offer_wider(finished, tool, false, deck).await?;
            }
            self.answer_call(finished, deck)?;
        }
        Ok(())
    }

    /// Asks for permission where needed, then runs the call.
    pub(super) async fn run_alone<'c>(
        &mut self,
        mut prepared: Prepared<'c>,
        deck: &Deck,
    ) -> Result<Finished<'c>, Stop>
    where
        Self: 'c,
    {
        let denied = match &prepared.plan {
            CallPlan::Refuse { .. } => return Ok(prepared.run(self.place(deck)).await),
            CallPlan::Run(ready) => {
                let (arguments, reach, verdict) = (&ready.arguments, &ready.reach, &ready.verdict);
                let walls = (verdict.enclosure(), true);
                match self.decide(&prepared.call, ready.tool, (arguments, reach), verdict, walls).await? {
                    Decision::Run => None,
                    Decision::Deny(status, why) => Some((status, why)),
                    Decision::Edit(line) => self.take_edit(&mut prepared, line)?,
                }
            }
        };
        let CallPlan::Run(ready) = &prepared.plan else {
            return Ok(prepared.run(self.place(deck)).await);
        };
        if let Some((status, why)) = denied {
            announce(self.place(deck), (&prepared.call, prepared.slot), ready.tool, &ready.arguments);
            let arguments = ready.arguments.clone();
            let Prepared { call, slot, taken_up, edited, .. } = prepared;
            let mut finished = Finished::without_run((call, slot), taken_up, arguments, status, &why);
            finished.carried.edited = edited;
            return Ok(finished);
        }
        let (tool, terms, reach, leaves) = (ready.tool, ready.terms, Arc::clone(&ready.reach), ready.leaves);
        let _pause = tool.waits_for_person().then(|| self.clock.pause());
        let finished = prepared.run(self.place(deck)).await;
        self.offer_wider(finished, (tool, terms, reach), leaves, deck).await
    }

    /// Runs a call again with fewer restrictions, if the sandbox may have stopped it and a person agrees; otherwise the
    /// first result stays. Output that mentions a denial is a reason to leave the sandbox only if the command itself
    /// `leaves` it.
    pub(super) async fn offer_wider<'c>(
        &mut self,
        mut finished: Finished<'c>,
        (tool, terms, reach): (&'c dyn Tool, &'c Terms, Arc<Reach>),
        leaves: bool,
        deck: &Deck,
    ) -> Result<Finished<'c>, Stop> {
        if self.is_exploring {
            return Ok(finished);
        }
        let is_there = self.agent.approver.present() && self.agent.approval != ApprovalMode::Never;
        let (enclosure, why, where_to) = match finished.refused {
            Some(Refused::Writing) => (Enclosure::Write, AGAIN_WRITING, "with the right to write"),
            Some(Refused::Known) if is_there => (Enclosure::Outside, AGAIN_OUTSIDE, "outside of the sandbox"),
            Some(Refused::Claimed) if is_there && leaves => {
                (Enclosure::Outside, AGAIN_OUTSIDE, "outside of the sandbox")
            }
            _ => return Ok(finished),
        };
        let verdict = match self.agent.approval {
            ApprovalMode::Never => {
                let why = format!("{why}, and the approval mode `never` refuses whatever would have to ask");
                Verdict::Deny { why, grounds: Grounds::Mode }
            }
            _ => Verdict::Ask { why: why.to_owned(), always: None },
        };
        let of = (&finished.carried.arguments, &*reach);
        match self.decide(&finished.carried.call, tool, of, &verdict, (enclosure, false)).await? {
            Decision::Deny(_, denial) => {
                let _ = write!(finished.output.observation, "\n[It was not run again {where_to}. {denial}]");
                Ok(finished)
            }
            _ => Ok(finished.again(self.place(deck), (tool, terms, reach), enclosure).await),
        }
    }

    /// The most tokens that a result of this step may have.
    pub(super) fn most_for(deck: &Deck, terms: &Terms) -> usize {
        terms.max_tokens.unwrap_or(deck.result_tokens)
    }
}
