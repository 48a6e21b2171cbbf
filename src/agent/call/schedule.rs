//! The one place that decides what may run side by side, in what order it is answered, and how much runs at a time: for
//! the calls of a reply and the steps of plans and flows alike. Calls that only read run beside their like ([`CallLane`]);
//! all others run beside no call, after a person was asked where needed. Requests to models run beside anything.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::agent::turn::{Turn, TurnStop};
use crate::agent::window;
use crate::config::ApprovalMode;
use crate::conversation::message::{Step, ToolCall};
use crate::safety::policy::{Grounds, Verdict};
use crate::safety::{Enclosure, Refused};

use super::end::CallEnd;
use super::execute::{CallLimits, CallOutcome, CallServices};
use super::permission::{PermissionDecision, RunAsked};
use super::prepare::{CallLane, CallText, MOST_CALLS, PreparedCall};
use super::superior::TrustState;

/// The questions about running a call again.
const AGAIN_WRITING: &str = "it ran where nothing can be written, and could not write; run it again where it may write in \
the workspace?";
const AGAIN_OPENED: &str = "the walls may have stopped it; run it again, once, with more opened?";
const AGAIN_OUTSIDE: &str = "the sandbox may have blocked it; run it again without any sandbox, with all your files, \
                             credentials and network?";

/// The most tokens of a result that later steps of a plan refer to: about 4 MiB.
const MOST_HELD: usize = 1 << 20;

/// The order in which the outcomes of calls that run side by side are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum OutcomeOrder {
    /// That of the calls.
    AsBegun,
    /// Each as soon as it is there.
    AsEnded,
}

/// Runs calls and requests side by side as far as they may, each with a `Tag` that its caller knows it by. `Reply` is what
/// a request brings.
pub(in crate::agent) struct CallScheduler<'c, Tag, Reply = Infallible> {
    services: Arc<CallServices<'c>>,
    order: OutcomeOrder,
    /// The most that runs at a time.
    width: usize,
    /// The calls that have begun and not ended, and the lane of these.
    calls: usize,
    lane: CallLane,
    /// Numbers the calls in the order in which they begin.
    begun: usize,
    /// The number of the next call whose outcome is taken, in the order of beginning.
    next: usize,
    /// Calls that begin when there is room.
    waiting: VecDeque<BoxFuture<'c, EndedWork<'c, Tag, Reply>>>,
    running: FuturesUnordered<BoxFuture<'c, EndedWork<'c, Tag, Reply>>>,
    ended: VecDeque<EndedWork<'c, Tag, Reply>>,
}

/// A call or a request that ended, and whose outcome was not taken yet.
struct EndedWork<'c, Tag, Reply> {
    number: usize,
    tag: Tag,
    outcome: WorkOutcome<'c, Reply>,
}

/// What became of a call or a request.
pub(in crate::agent) enum WorkOutcome<'c, Reply> {
    Call(Box<CallOutcome<'c>>),
    Request(Reply),
}

impl<'c, Tag: Send + 'c, Reply: Send + 'c> CallScheduler<'c, Tag, Reply> {
    pub fn new(services: CallServices<'c>, order: OutcomeOrder) -> Self {
        Self {
            width: services.agent.limits.max_parallel.max(1),
            services: Arc::new(services),
            order,
            calls: 0,
            lane: CallLane::Alone,
            begun: 0,
            next: 0,
            waiting: VecDeque::new(),
            running: FuturesUnordered::new(),
            ended: VecDeque::new(),
        }
    }

    /// True if a call of this lane may run beside those that run now.
    pub fn admits(&self, lane: CallLane) -> bool {
        self.calls == 0 || (lane != CallLane::Alone && lane == self.lane)
    }

    /// True if what it admits would begin at once.
    pub fn has_room(&self) -> bool {
        self.running.len() + self.waiting.len() < self.width
    }

    /// True if a call runs that no other may run beside.
    pub fn is_exclusive(&self) -> bool {
        self.calls > 0 && self.lane == CallLane::Alone
    }

    /// True if no call runs.
    pub fn is_idle(&self) -> bool {
        self.calls == 0
    }

    /// True if there are outcomes that were not taken yet.
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// The limits of the results of its calls.
    pub fn limits(&self) -> CallLimits {
        self.services.limits
    }

    /// Does `work` while the rest goes on.
    pub async fn meanwhile<Done>(&mut self, work: impl Future<Output = Done>) -> Done {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(ended) = self.running.next(), if !self.running.is_empty() => self.end(ended),
            }
        }
    }

    /// Begins a call as soon as there is room.
    fn begin(&mut self, tag: Tag, prepared: PreparedCall<'c>) {
        let (number, services) = (self.count(), Arc::clone(&self.services));
        (self.lane, self.calls) = (prepared.lane(), self.calls + 1);
        let run = async move {
            let mut prepared = prepared;
            if prepared.lane() != CallLane::Alone {
                prepared.look_at_editor(services.agent).await;
            }
            let _pause = prepared.waits_for_person().then(|| services.clock.pause());
            let outcome = prepared.run(&services).await;
            EndedWork { number, tag, outcome: WorkOutcome::Call(Box::new(outcome)) }
        };
        self.waiting.push_back(run.boxed());
        self.fill();
    }

    /// Begins a request as soon as there is room.
    pub fn begin_request(&mut self, tag: Tag, request: impl Future<Output = Reply> + Send + 'c) {
        let number = self.count();
        let run = async move {
            let outcome = WorkOutcome::Request(request.await);
            EndedWork { number, tag, outcome }
        };
        self.waiting.push_back(run.boxed());
        self.fill();
    }

    /// Takes in what ended.
    fn end(&mut self, ended: EndedWork<'c, Tag, Reply>) {
        self.calls -= usize::from(matches!(ended.outcome, WorkOutcome::Call(_)));
        self.ended.push_back(ended);
    }

    /// The number of what begins next.
    fn count(&mut self) -> usize {
        self.begun += 1;
        self.begun - 1
    }

    fn fill(&mut self) {
        while self.running.len() < self.width
            && let Some(run) = self.waiting.pop_front()
        {
            self.running.push(run);
        }
    }

    /// Waits for the next outcome; `None` if nothing is left.
    async fn take_next(&mut self) -> Option<EndedWork<'c, Tag, Reply>> {
        loop {
            let is_next = |ended: &EndedWork<'c, Tag, Reply>| match self.order {
                OutcomeOrder::AsBegun => ended.number == self.next,
                OutcomeOrder::AsEnded => true,
            };
            if let Some(ended) = self.ended.iter().position(is_next).and_then(|at| self.ended.remove(at)) {
                self.next += 1;
                return Some(ended);
            }
            self.fill();
            let ended = self.running.next().await?;
            self.end(ended);
        }
    }
}

impl<'c, 't: 'c> Turn<'t> {
    /// Runs all calls of a reply and records their answers.
    ///
    /// A call is judged only after everything before it that could change something has run: by then a path may
    /// mean something else, and content from the previous group may forbid the call.
    pub(in crate::agent) async fn run_calls(&mut self, number: u64, step: &Step) -> Result<(), TurnStop> {
        let services = self.call_services(step.calls().count());
        let written = if step.was_cut() { CallText::Cut } else { CallText::Whole };
        let have_room =
            window::most_calls(&self.budget(), self.conversation.ruler.measure_fixed()).min(MOST_CALLS);
        let mut scheduler = CallScheduler::new(services, OutcomeOrder::AsBegun);
        for (at, call) in step.calls().enumerate() {
            let written = if at < have_room { written } else { CallText::Beyond(have_room) };
            let prepare =
                |turn: &Self| PreparedCall::of(turn.agent, (number, at), &call.request, written, turn.trust());
            let mut prepared = prepare(self);
            if !scheduler.admits(prepared.lane()) {
                self.answer_begun(&mut scheduler).await?;
                prepared = prepare(self);
            }
            let is_alone = prepared.lane() == CallLane::Alone;
            self.begin_call(&mut scheduler, (), prepared).await?;
            if is_alone {
                self.answer_begun(&mut scheduler).await?;
            }
        }
        self.answer_begun(&mut scheduler).await
    }

    /// Runs the only call of a reply and records its answer.
    pub(super) async fn run_only(&mut self, number: u64, call: &ToolCall) -> Result<CallEnd, TurnStop> {
        let services = self.call_services(1);
        let prepared = PreparedCall::of(self.agent, (number, 0), call, CallText::Whole, self.trust());
        let outcome = self.run_alone(prepared, &services).await?;
        Ok(self.answer_call(outcome, services.limits)?.end)
    }

    /// Answers all calls that have begun.
    async fn answer_begun(&mut self, scheduler: &mut CallScheduler<'c, ()>) -> Result<(), TurnStop> {
        while let Some(((), WorkOutcome::Call(outcome))) = self.take_outcome(scheduler).await? {
            self.answer_call(*outcome, scheduler.limits())?;
        }
        Ok(())
    }

    /// Begins a call beside those that run, after asking for permission where needed.
    pub(in crate::agent) async fn begin_call<Tag: Send + 'c, Reply: Send + 'c>(
        &mut self,
        scheduler: &mut CallScheduler<'c, Tag, Reply>,
        tag: Tag,
        mut prepared: PreparedCall<'c>,
    ) -> Result<(), TurnStop> {
        if prepared.lane() != CallLane::Alone {
            scheduler.begin(tag, prepared);
            return Ok(());
        }
        match scheduler.meanwhile(self.find_refusal(&mut prepared)).await? {
            None => scheduler.begin(tag, prepared),
            Some((end, why)) => {
                let outcome = prepared.refuse(end, &why, &scheduler.services);
                let (number, outcome) = (scheduler.count(), WorkOutcome::Call(Box::new(outcome)));
                scheduler.ended.push_back(EndedWork { number, tag, outcome });
            }
        }
        Ok(())
    }

    /// The outcome of what ends next; `None` if nothing is left.
    pub(in crate::agent) async fn take_outcome<Tag: Send + 'c, Reply: Send + 'c>(
        &mut self,
        scheduler: &mut CallScheduler<'c, Tag, Reply>,
    ) -> Result<Option<(Tag, WorkOutcome<'c, Reply>)>, TurnStop> {
        let Some(EndedWork { tag, outcome, .. }) = scheduler.take_next().await else { return Ok(None) };
        let WorkOutcome::Call(outcome) = outcome else { return Ok(Some((tag, outcome))) };
        let services = Arc::clone(&scheduler.services);
        let outcome = scheduler.meanwhile(self.offer_wider(*outcome, &services)).await?;
        Ok(Some((tag, WorkOutcome::Call(Box::new(outcome)))))
    }

    /// Runs the call after asking for permission where needed.
    pub(super) async fn run_alone(
        &mut self,
        mut prepared: PreparedCall<'c>,
        services: &CallServices<'c>,
    ) -> Result<CallOutcome<'c>, TurnStop> {
        if let Some((end, why)) = self.find_refusal(&mut prepared).await? {
            return Ok(prepared.refuse(end, &why, services));
        }
        let _pause = prepared.waits_for_person().then(|| self.clock.pause());
        let outcome = prepared.run(services).await;
        self.offer_wider(outcome, services).await
    }

    /// Runs a call again with fewer restrictions, if the sandbox may have stopped it and a person agrees; otherwise the
    /// first result stays. Output that mentions a denial is a reason to leave the sandbox only if the command itself
    /// names something outside.
    async fn offer_wider(
        &mut self,
        mut outcome: CallOutcome<'c>,
        services: &CallServices<'c>,
    ) -> Result<CallOutcome<'c>, TurnStop> {
        if self.is_exploring {
            return Ok(outcome);
        }
        let ran_alone = outcome.prepared.lane() == CallLane::Alone;
        let Ok(plan) = &mut outcome.prepared.plan else { return Ok(outcome) };
        if plan.frees_writing && outcome.refused == Some(Refused::Writing) && !self.loses_changes().await {
            return Ok(outcome.run_again(Enclosure::Write, services).await);
        }
        let is_there = self.agent.approver.present() && self.agent.approval != ApprovalMode::Never;
        if let (Some(Refused::Making(made)), true) = (&outcome.refused, is_there) {
            let remark = self.offer_taking_over(&outcome.prepared.call, made).await?;
            outcome.remarks.extend(remark);
            return Ok(outcome);
        }
        let was_opened = plan.enclosure == Enclosure::Opened;
        let needs_network = outcome.refused == Some(Refused::Network) && !plan.reach.opening.network;
        if needs_network && is_there {
            Arc::make_mut(&mut plan.reach).opening.network = true;
        }
        if let (Some(Refused::Changing(paths)), true) = (&outcome.refused, is_there && !was_opened) {
            Arc::make_mut(&mut plan.reach).opening.protected.clone_from(paths);
        }
        let opened = (Enclosure::Opened, AGAIN_OPENED, "with more opened");
        let outside = (Enclosure::Outside, AGAIN_OUTSIDE, "outside of the sandbox");
        let (enclosure, why, where_to) = match &outcome.refused {
            Some(Refused::Writing) => (Enclosure::Write, AGAIN_WRITING, "with the right to write"),
            Some(Refused::Known) if is_there => outside,
            Some(Refused::Changing(_)) if is_there && !was_opened => opened,
            Some(Refused::Network) if is_there && (needs_network || !was_opened) => opened,
            Some(Refused::Claimed) if is_there && !was_opened && !plan.reach.opening.dirs.is_empty() => opened,
            Some(Refused::Claimed) if is_there && plan.leaves && ran_alone => outside,
            _ => return Ok(outcome),
        };
        let verdict = match self.agent.approval {
            ApprovalMode::Never => {
                let why = format!("{why}, and the approval mode `never` refuses whatever would have to ask");
                Verdict::Deny { why, grounds: Grounds::Mode }
            }
            _ => Verdict::Ask { why: why.to_owned(), always: None },
        };
        let run = RunAsked { enclosure, may_edit: false };
        match self.decide(&outcome.prepared, &verdict, run).await? {
            PermissionDecision::Refuse(_, denial) => {
                outcome.remarks.push(format!("It was not run again {where_to}. {denial}"));
                Ok(outcome)
            }
            _ => Ok(outcome.run_again(enclosure, services).await),
        }
    }

    /// The state that calls are judged by now.
    pub(super) fn trust(&self) -> TrustState {
        let taint = self.conversation.session.taint().map(str::to_owned);
        TrustState { taint, only_reads: self.is_exploring, loses_changes: false }
    }

    /// The services for `calls` calls of a plan. The model reads shortened results as usual, but later steps can refer
    /// to the whole results.
    pub(in crate::agent) fn plan_services(&self, calls: usize) -> CallServices<'t> {
        let services = self.call_services(calls);
        let limits = CallLimits { held_tokens: MOST_HELD, of_plan: true, ..services.limits };
        CallServices { limits, ..services }
    }

    /// The services for `calls` calls, which share the room for results.
    fn call_services(&self, calls: usize) -> CallServices<'t> {
        let setting = self.agent.context.tool_result_max_tokens;
        let fixed = self.conversation.ruler.measure_fixed();
        let tokens = window::result_cap(&self.budget(), fixed, setting, calls.clamp(1, MOST_CALLS));
        CallServices {
            agent: self.agent,
            clock: self.clock.clone(),
            shared: Arc::clone(&self.conversation.shared),
            emitter: Arc::clone(&self.run.emitter),
            live: Arc::clone(&self.conversation.live),
            helpers: Arc::new(self.helper_terms()),
            limits: CallLimits {
                shown_tokens: tokens,
                held_tokens: tokens,
                rates: self.conversation.ruler.rates(),
                of_plan: false,
            },
        }
    }
}
