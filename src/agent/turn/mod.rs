//! One turn: from a user's input to the final answer, or to the reason that there is none.

mod ask;
mod attempt;
mod settle;
mod schema;
mod closing;
mod hooked;
mod compress;
mod price;
mod refused_parts;
mod refused_pictures;
mod refused;
mod reply_room;
mod silence;
mod steering;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::clock::{PausableClock, working_time};
use crate::agent::limits::ReachedLimit;
use crate::agent::loops::LoopWatch;
use crate::agent::request::purpose::Purpose;
use crate::agent::window::{Ruler, WindowLayer, describe_enough};
use crate::agent::{Agent, Cancel, Conversation, Run};
use crate::config::Mode;
use crate::conversation::event::plan::PlanCreated;
use crate::conversation::event::{EventKind, EventMessage};
use crate::conversation::message::{FinishReason, Item, Step, UserText};
use crate::model::{ModelError, ModelErrorKind};

use refused::Withheld;

pub use super::stop::TurnStop;
pub use hooked::end_session;
pub(super) use hooked::{hear_hooks, notify_hooks};
pub use schema::AnswerSchema;
pub use steering::Steering;

/// The input of a turn.
pub struct TurnInput {
    /// The items before it in a conversation that has not begun: see [`Agent::opening`].
    pub opening: Vec<Item>,
    /// The person's message.
    pub said: UserText,
}

/// The end of a turn.
#[derive(Debug)]
pub struct TurnEnd {
    pub stop: TurnStop,
    /// The final answer, with `--schema` as JSON text; without a final answer, the model's last words since the
    /// person's.
    pub answer: String,
}

/// A plan that a reply proposed, that is allowed, and that has not begun.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ProposedPlan {
    New(PlanCreated),
    /// The plan that waits goes on.
    Waiting,
}

/// A running turn.
pub(super) struct Turn<'a> {
    pub agent: &'a Agent,
    pub conversation: &'a mut Conversation,
    pub run: &'a mut Run,
    pub clock: PausableClock,
    pub loops: LoopWatch,
    /// The limit of the last reply, if what was left was less than the model could write.
    pub output_cap: Option<u64>,
    /// True if nothing may change until a person approves a proposal.
    pub is_exploring: bool,
    /// What is left out of the running request because its provider does not take it.
    pub withheld: Option<Withheld>,
    /// True if a flow answers: it asks a model only where its file says so.
    pub is_flow: bool,
    /// The plan that the running reply proposed.
    pub proposed: Option<ProposedPlan>,
    /// The plans made in this turn.
    pub plans: u32,
    /// How often hooks had it go on in place of its answer.
    pub held_by_hooks: u32,
}

/// Takes one turn. However it ends, afterwards every call has its answer and the conversation accepts the next
/// message.
pub async fn take_turn(
    agent: &Agent,
    conversation: &mut Conversation,
    run: &mut Run,
    input: TurnInput,
    cancel: &Cancel,
) -> TurnEnd {
    let max_time = agent.limits.max_time.map(Duration::from);
    let emitter = Arc::clone(&run.emitter);
    let mut turn = Turn::new(agent, conversation, run);
    let clock = turn.clock.clone();
    let outcome = tokio::select! {
        biased;
        () = cancel.triggered() => Err(TurnStop::Interrupted),
        () = emitter.wait_closed() => Err(TurnStop::SinkClosed),
        () = clock.reach(max_time.map(working_time)) => Err(TurnStop::Limit(ReachedLimit::Time(max_time.unwrap_or_default()))),
        outcome = emitter.run_paced(Box::pin(turn.work(input))) => outcome,
    };
    let outcome = match outcome {
        Err(TurnStop::Limit(limit)) if !limit.is_of_output() && !turn.is_flow => {
            tokio::select! {
                biased;
                () = cancel.triggered() => Err(TurnStop::Interrupted),
                () = emitter.wait_closed() => Err(TurnStop::SinkClosed),
                closing = turn.close(limit, max_time) => closing,
            }
        }
        outcome => outcome,
    };
    turn.run.ledger.count_turn();
    let end = turn.finish(outcome);
    match end.stop {
        TurnStop::Limit(limit) => TurnEnd { stop: TurnStop::Limit(limit.after(&run.ledger)), ..end },
        _ => end,
    }
}

impl<'a> Turn<'a> {
    pub(super) fn new(agent: &'a Agent, conversation: &'a mut Conversation, run: &'a mut Run) -> Self {
        let (clock, loops) = (PausableClock::start(), LoopWatch::new(&agent.limits));
        let is_exploring = agent.mode == Mode::Explore;
        run.ledger.bind(agent.limits.spending_bounds());
        Self {
            agent,
            conversation,
            run,
            clock,
            loops,
            output_cap: None,
            is_exploring,
            is_flow: false,
            withheld: None,
            proposed: None,
            plans: 0,
            held_by_hooks: 0,
        }
    }

    async fn work(&mut self, input: TurnInput) -> Result<TurnEnd, TurnStop> {
        let TurnInput { opening, said: mut input } = input;
        // `env | agent run …` must neither send nor store a key.
        input.text = self.agent.redactor.redact_known(&input.text).into_owned();
        self.conversation.session.start_turn(&self.run.emitter.run_id(), Timestamp::now());
        self.run.emitter.emit(EventKind::TurnStarted { input: input.text.clone() })?;
        // An input that is too large is refused before it is recorded, so it leaves no trace in later requests.
        if let Some(why) = self.too_large(&opening, &input) {
            // By the server's ratio, which may have been wrong.
            if !self.forget_server() || self.too_large(&opening, &input).is_some() {
                return Err(TurnStop::ContextFull(why));
            }
        }
        self.open_with(opening)?;
        let request = input.text.clone();
        if let Some(note) = self.agent.before_input() {
            self.say(note)?;
        }
        let end = Box::pin(self.take_input(input, request)).await?;
        self.warn_of_waiting()?;
        Ok(end)
    }

    /// Asks the model and runs its calls until it answers.
    pub(super) async fn converse(&mut self) -> Result<TurnEnd, TurnStop> {
        let mut before_pause = String::new();
        loop {
            if let Some(limit) = self.reached_limit() {
                return Err(TurnStop::Limit(limit));
            }
            self.heed()?;
            let step = self.ask(Purpose::Answer).await?;
            if step.finish_reason == FinishReason::Paused {
                before_pause += &step.text();
                self.keep_reply(step)?;
                continue;
            }
            if step.is_silent() {
                match self.take_silence()? {
                    Some(words) => return self.answer(words).await,
                    None => continue,
                }
            }
            let text = std::mem::take(&mut before_pause) + &step.text();
            let is_whole = !matches!(step.finish_reason, FinishReason::Length | FinishReason::ContentFilter);
            let number = match self.keep_reply(step.clone()) {
                // An answer is not lost with the log: the end of the turn tries to write it again, and tells.
                Err(TurnStop::Failed(_)) if is_whole && !step.has_calls() => {
                    return self.stands(&step, text).await;
                }
                kept => kept?,
            };
            if step.has_calls() {
                self.run_calls(number, &step).await?;
                self.carry_out_proposal().await?;
                continue;
            }
            if is_whole && (self.goes_on_after(&text).await? || Box::pin(self.goes_on_for_hooks(&text)).await?) {
                continue;
            }
            return self.stands(&step, text).await;
        }
    }

    /// Takes the text of a reply without calls as the answer, if it is whole.
    pub(super) async fn stands(&mut self, step: &Step, text: String) -> Result<TurnEnd, TurnStop> {
        match step.finish_reason {
            FinishReason::Length => Err(TurnStop::Limit(self.cut_by(step))),
            FinishReason::ContentFilter => {
                let what = "the provider's content filter ended the reply: put the request in other words, or \
                            use another model (-m)";
                Err(TurnStop::Model(self.model_error(ModelErrorKind::BadRequest, what)))
            }
            _ => self.answer(text).await,
        }
    }

    /// The reason that an input is too large for the window, if it is.
    pub(super) fn too_large(&mut self, opening: &[Item], input: &UserText) -> Option<String> {
        /// An estimate may be too high, but never by more than this.
        const FARTHEST: u64 = 3;
        let (ruler, layers, budget) = (&self.conversation.ruler, &self.agent.context.layers, self.budget());
        let excess = |weigh: fn(&Ruler, &str) -> u64| {
            let before: u64 = opening.iter().flat_map(Item::texts).map(|text| weigh(ruler, text)).sum();
            let tokens: u64 = input.texts().map(|text| weigh(ruler, text)).sum();
            let parts = [("your message", tokens), ("the messages of the prompt", before)];
            let parts = if opening.is_empty() { &parts[..1] } else { &parts[..] };
            let enough = |tokens| describe_enough(tokens, self.agent.model.info(), &self.agent.context);
            let why = WindowLayer::Input.describe_excess(layers, budget.divide_by_layers(), parts, enough)?;
            Some((why, tokens + before))
        };
        let (why, tokens) = excess(Ruler::weigh)?;
        if tokens > budget.tokens * FARTHEST { Some(why) } else { excess(Ruler::count).map(|(why, _)| why) }
    }

    /// The limit that cut a reply: the window was full, or the output limit was reached.
    fn cut_by(&self, step: &Step) -> ReachedLimit {
        let window = self.agent.budget.window;
        // Servers end a little before the declared end of the window.
        let window = self.stated_limit().unwrap_or(window).min(window);
        let is_full = step.usage.total() >= window - window / 50;
        match self.output_cap {
            _ if is_full => ReachedLimit::Window { tokens: window },
            Some(tokens) => ReachedLimit::Remainder { tokens, spent: self.run.ledger.spent() },
            None => ReachedLimit::Output,
        }
    }

    /// One step: asks the model and records its reply. Returns its number.
    pub(super) async fn step(&mut self, purpose: Purpose) -> Result<(u64, Step), TurnStop> {
        self.run.emitter.warn(self.agent.tools.take_failures());
        let step = self.ask(purpose).await?;
        let number = self.keep_reply(step.clone())?;
        Ok((number, step))
    }

    /// Adds a message: on disk, then in memory, then as an event.
    pub(super) fn say(&mut self, said: UserText) -> Result<(), TurnStop> {
        let event = EventKind::Message(EventMessage::from_user_text(&said));
        self.conversation.note_knowledge(Timestamp::now());
        self.conversation.session.say(said, Timestamp::now()).map_err(anyhow::Error::from)?;
        Ok(self.run.emitter.emit(event)?)
    }

    /// Records a reply, with secrets masked: on disk, then in memory, then as an event.
    pub(super) fn keep_reply(&mut self, step: Step) -> Result<u64, TurnStop> {
        let step = step.mask(|text| self.agent.redactor.redact_known(text));
        let event = EventKind::Message(EventMessage::reply(&step));
        let number = self.conversation.session.reply(step, Timestamp::now()).map_err(anyhow::Error::from)?;
        self.run.emitter.emit(event)?;
        Ok(number)
    }

    /// Makes a model error that the server did not report.
    pub(super) fn model_error(&self, kind: ModelErrorKind, message: &str) -> ModelError {
        ModelError {
            kind,
            status: None,
            message: message.to_owned(),
            model: self.agent.model.info().id.clone(),
            retry_after: None,
            is_lesson: false,
        }
    }

    /// Settles everything left open and returns the end of the turn.
    fn finish(&mut self, outcome: Result<TurnEnd, TurnStop>) -> TurnEnd {
        let stop = match outcome {
            Ok(end) => return end,
            Err(stop) => stop,
        };
        if let Err(failure) = self.settle(&stop) {
            return TurnEnd { stop: failure, answer: String::new() };
        }
        TurnEnd { stop, answer: self.last_text() }
    }

    /// Keeps streamed text, counts the running request, and answers open calls.
    pub(super) fn settle(&mut self, stop: &TurnStop) -> Result<(), TurnStop> {
        let why = match stop {
            TurnStop::Limit(limit) => limit.to_string(),
            TurnStop::Interrupted => "interrupted".to_owned(),
            _ => "the turn ended before the call did".to_owned(),
        };
        self.settle_calls(&why)?;
        self.settle_reply()
    }

    /// The model's last words since the person's.
    fn last_text(&self) -> String {
        let text = |item: &Item| match item {
            Item::Step(step) => Some(step.text()),
            Item::Said(said) if said.author.is_person() => Some(String::new()),
            Item::Said(_) | Item::Summary(_) => None,
        };
        self.conversation.session.items().iter().rev().find_map(text).unwrap_or_default()
    }
}
