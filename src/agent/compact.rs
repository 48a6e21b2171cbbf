//! What a person does to the context by hand: looks at what fills it, compresses it, or asks what a compression would
//! do.

use crate::config::Strategy;
use crate::context::{self, Basis, Fate, Usage};
use crate::event::{Compressed, CompressionReason};
use crate::message::Message;
use crate::session::Session;

use super::clock::Clock;
use super::limits::Meter;
use super::repeat::RepeatDetector;
use super::turn::{Stop, Turn};
use super::{Agent, Cancel, Run};

/// What a compression would do to one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub what: &'static str,
    /// The message, in a few words.
    pub message: String,
    /// What it weighs now.
    pub tokens: u64,
}

/// What a compression would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub changes: Vec<Change>,
    pub before: u64,
    /// An estimate.
    pub after: u64,
}

/// Compresses a conversation. `focus` is what a summary is to keep above all. `None` when there is nothing to gain.
///
/// # Errors
/// When it was interrupted, or something of ours failed.
pub async fn compact(
    agent: &Agent,
    session: &mut Session,
    run: &mut Run,
    focus: &str,
    cancel: &Cancel,
) -> Result<Option<Compressed>, Stop> {
    let clock = Clock::start();
    let mut turn = by_hand(agent, session, run, &clock);
    tokio::select! {
        biased;
        () = cancel.triggered() => Err(Stop::Interrupted),
        done = turn.compress(CompressionReason::Manual, focus) => done,
    }
}

/// What [`compact`] would do. It asks nobody and changes nothing.
#[must_use]
pub fn preview(agent: &Agent, session: &mut Session, run: &mut Run) -> Preview {
    let clock = Clock::start();
    let mut turn = by_hand(agent, session, run, &clock);
    let before = turn.measure().tokens;
    let goal = turn.goal(CompressionReason::Manual, before);
    let plan = turn.plan(goal);
    if plan.tokens >= before {
        return Preview { changes: Vec::new(), before, after: before };
    }
    let weights = turn.run.ruler.weights();
    let summarises = matches!(agent.context.strategy, Strategy::Staged | Strategy::Summary);
    let parts = plan.fates.iter().zip(turn.session.messages()).zip(weights);
    let changes = parts.filter_map(|((fate, message), tokens)| {
        let what = match fate {
            Fate::Keep => return None,
            Fate::Shorten => "shorten",
            Fate::Unload(_) => "unload",
            Fate::Remove if summarises => "summarise",
            Fate::Remove => "leave out",
        };
        Some(Change { what, message: context::in_short(message), tokens })
    });
    Preview { changes: changes.collect(), before, after: plan.tokens }
}

/// What fills the window, counted, and what the counts rest on.
#[must_use]
pub fn usage(agent: &Agent, session: &mut Session, run: &mut Run) -> (Usage, Basis) {
    let clock = Clock::start();
    let mut turn = by_hand(agent, session, run, &clock);
    let basis = turn.measure_exactly().basis;
    (turn.usage(), basis)
}

/// Pins the messages that contain `text`; without one, what the person said last and what was answered. Returns them
/// in a few words each.
pub fn pin(session: &mut Session, text: &str, now: jiff::Timestamp) -> Vec<String> {
    let messages = session.messages();
    let chosen: Vec<usize> = if text.is_empty() {
        let said = messages.iter().rposition(Message::is_from_person);
        let answer = messages
            .iter()
            .rposition(|message| matches!(message, Message::Assistant(reply) if reply.tool_calls.is_empty()));
        said.into_iter().chain(answer.filter(|answer| said.is_some_and(|said| said < *answer))).collect()
    } else {
        let matches = |index: &usize| {
            !matches!(messages[*index], Message::System { .. }) && messages[*index].content().contains(text)
        };
        (0..messages.len()).filter(matches).collect()
    };
    let numbers: Vec<u64> = chosen.iter().map(|index| session.ids()[*index].number).collect();
    let named = chosen.iter().map(|index| context::in_short(&messages[*index])).collect();
    if !numbers.is_empty() {
        session.pin(&numbers, now);
    }
    named
}

fn by_hand<'a>(agent: &'a Agent, session: &'a mut Session, run: &'a mut Run, clock: &'a Clock) -> Turn<'a> {
    Turn { agent, session, run, clock, meter: Meter::default(), repeats: RepeatDetector::new(0, 0) }
}
