//! One turn: from a user's input to the answer that stands, or to the reason why none does.

use std::time::Duration;

use jiff::Timestamp;

use crate::context::Layer;
use crate::contract::{ModelError, ModelErrorKind, ToolChoice};
use crate::event::EventKind;
use crate::message::{AssistantMessage, FinishReason, Message};
use crate::session::Session;

use super::clock::{Clock, calling_time, working_time};
use super::emitter::SinkClosed;
use super::limits::{Limit, Meter};
use super::repeat::RepeatDetector;
use super::{Agent, Cancel, Emitter, Run, execute};

/// How a turn ended.
#[derive(Debug)]
pub struct TurnEnd {
    pub stop: Stop,
    /// The final answer; under `--schema` the JSON text of it. Empty where there is none.
    pub answer: String,
}

/// Why a turn ended.
#[derive(Debug)]
pub enum Stop {
    /// The model's answer stands.
    Answered,
    Limit(Limit),
    /// The request cannot be made to fit.
    ContextFull(String),
    Model(ModelError),
    /// The answer does not match the schema; the text says where.
    SchemaMismatch(String),
    /// The sandbox, which the configuration asks for, is not to be had; the text says what is missing.
    Unavailable(String),
    /// Cancelled from outside.
    Interrupted,
    /// Nobody can see the output any more.
    SinkClosed,
    /// Something of ours failed: the disk, a template.
    Failed(anyhow::Error),
}

impl From<SinkClosed> for Stop {
    fn from(_: SinkClosed) -> Self {
        Self::SinkClosed
    }
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ModelError> for Stop {
    fn from(error: ModelError) -> Self {
        if error.kind == ModelErrorKind::ContextTooLong {
            return Self::ContextFull(format!("the request does not fit the model's context: {error}"));
        }
        Self::Model(error)
    }
}

/// The state of a turn while it runs.
pub(super) struct Turn<'a> {
    pub agent: &'a Agent,
    pub session: &'a mut Session,
    pub run: &'a mut Run,
    pub clock: &'a Clock,
    pub meter: Meter,
    pub repeats: RepeatDetector,
}

/// Takes one turn. Whatever ends it, afterwards every call has its answer and the session takes the next message.
pub async fn take_turn(
    agent: &Agent,
    session: &mut Session,
    run: &mut Run,
    input: String,
    cancel: &Cancel,
) -> TurnEnd {
    let clock = Clock::start();
    let max_time = agent.limits.max_time;
    let closed = run.emitter.closed_switch();
    let repeats = RepeatDetector::new(agent.limits.loop_window, agent.limits.loop_threshold);
    let mut turn = Turn { agent, session, run, clock: &clock, meter: Meter::default(), repeats };
    let outcome = tokio::select! {
        biased;
        () = cancel.triggered() => Err(Stop::Interrupted),
        () = closed.triggered() => Err(Stop::SinkClosed),
        () = clock.reach(max_time.map(working_time)) => Err(Stop::Limit(Limit::Time(max_time.unwrap_or_default()))),
        outcome = turn.work(input) => outcome,
    };
    let outcome = match outcome {
        Err(Stop::Limit(limit)) if limit != Limit::Output => {
            tokio::select! {
                biased;
                () = cancel.triggered() => Err(Stop::Interrupted),
                () = closed.triggered() => Err(Stop::SinkClosed),
                closing = turn.close(limit, max_time) => closing,
            }
        }
        outcome => outcome,
    };
    turn.run.totals.turns += 1;
    turn.finish(outcome)
}

impl Turn<'_> {
    async fn work(&mut self, input: String) -> Result<TurnEnd, Stop> {
        // `env | agent run …` must not send a key, nor keep it.
        let input = self.agent.redactor.redact_known(&input).into_owned();
        self.session.start_turn(&self.run.emitter.run_id(), Timestamp::now());
        self.run.emitter.emit(EventKind::TurnStarted { input: input.clone() })?;
        let input_tokens = self.run.ruler.weigh(&input);
        self.record(Message::user(input))?;
        let (shares, budget) = (&self.agent.context.layers, self.budget().tokens);
        if let Some(why) = Layer::Input.over(shares, budget, &[("your message", input_tokens)]) {
            return Err(Stop::ContextFull(why));
        }
        loop {
            if let Some(limit) = self.meter.reached(&self.agent.limits).or_else(|| self.out_of_time()) {
                return Err(Stop::Limit(limit));
            }
            let reply = self.step(ToolChoice::Auto).await?;
            if !reply.tool_calls.is_empty() {
                self.run_calls(&reply).await?;
                continue;
            }
            return match reply.finish_reason {
                FinishReason::Length => Err(Stop::Limit(Limit::Output)),
                FinishReason::ContentFilter => {
                    let what = "the provider's content filter ended the reply";
                    Err(Stop::Model(self.model_error(ModelErrorKind::BadRequest, what)))
                }
                _ => self.answer(reply.content).await,
            };
        }
    }

    /// Whether what is left of the time is for the closing answer.
    fn out_of_time(&self) -> Option<Limit> {
        let over = |max_time: &Duration| self.clock.elapsed() >= calling_time(*max_time);
        self.agent.limits.max_time.filter(over).map(Limit::Time)
    }

    /// One step: asks the model and keeps its reply.
    pub(super) async fn step(&mut self, choice: ToolChoice) -> Result<AssistantMessage, Stop> {
        let reply = self.ask(choice).await?;
        self.record(Message::Assistant(reply.clone()))?;
        Ok(reply)
    }

    /// The only way a message enters the conversation: on disk, then in memory, then seen.
    pub(super) fn record(&mut self, message: Message) -> Result<(), Stop> {
        self.session.record(message.clone(), Timestamp::now()).map_err(anyhow::Error::from)?;
        self.run.emitter.emit(EventKind::Message(message))?;
        Ok(())
    }

    /// A failure of the model that its server did not report as one.
    pub(super) fn model_error(&self, kind: ModelErrorKind, message: &str) -> ModelError {
        ModelError {
            kind,
            status: None,
            message: message.to_owned(),
            model: self.agent.model.info().id.clone(),
            retry_after: None,
        }
    }

    /// Settles what was left open and says how the turn ended.
    fn finish(&mut self, outcome: Result<TurnEnd, Stop>) -> TurnEnd {
        let stop = match outcome {
            Ok(end) => return end,
            Err(stop) => stop,
        };
        if let Err(failure) = self.settle(&stop) {
            return TurnEnd { stop: failure, answer: String::new() };
        }
        let answer = match stop {
            Stop::Limit(Limit::Output) | Stop::Interrupted => self.last_text(),
            _ => String::new(),
        };
        TurnEnd { stop, answer }
    }

    /// Keeps what was streamed and answers the calls that were not answered.
    pub(super) fn settle(&mut self, stop: &Stop) -> Result<(), Stop> {
        let why = match stop {
            Stop::Limit(limit) => limit.to_string(),
            Stop::Interrupted => "interrupted".to_owned(),
            _ => "the turn ended before the call did".to_owned(),
        };
        Ok(settle(self.session, &self.run.emitter, &why)?)
    }

    /// What the model said last in this turn.
    fn last_text(&self) -> String {
        let said = self.session.messages().iter().rev().find_map(|message| match message {
            Message::Assistant(message) => Some(message.content.clone()),
            message if message.is_from_person() => Some(String::new()),
            _ => None,
        });
        said.unwrap_or_default()
    }
}

/// After a turn was cut short or dropped: keeps what was streamed and answers the calls that were not answered, so
/// that the next request is valid.
///
/// # Errors
/// When the session cannot be written.
pub fn settle(session: &mut Session, emitter: &Emitter, why: &str) -> anyhow::Result<()> {
    let known = session.messages().len();
    session.settle(why, Timestamp::now())?;
    for message in &session.messages()[known..] {
        if let Message::Tool(answer) = message {
            emitter.notify(execute::cancelled(answer));
        }
        emitter.notify(EventKind::Message(message.clone()));
    }
    Ok(())
}
