//! One call made by a person, the way a model's calls are made: checked, judged, asked about, run, measured and
//! written down alike.

use serde_json::Value;

use crate::message::{AssistantMessage, CallStatus, FinishReason, Message, ToolCall};
use crate::session::Session;

use super::clock::Clock;
use super::limits::Meter;
use super::repeat::RepeatDetector;
use super::turn::{Stop, Turn};
use super::{Agent, Cancel, Run};

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    pub status: CallStatus,
    /// Exactly what the model would read.
    pub content: String,
}

/// Makes one call in a session that nothing else uses.
///
/// # Errors
/// When it was interrupted, or something of ours failed; that the tool failed is no error.
pub async fn call_by_hand(
    agent: &Agent,
    session: &mut Session,
    run: &mut Run,
    (name, arguments): (&str, &Value),
    cancel: &Cancel,
) -> Result<Called, Stop> {
    agent.jobs.close("background: true needs a run that goes on, and this one ends with its call.");
    let call = ToolCall { id: "by_hand".to_owned(), name: name.to_owned(), arguments: arguments.to_string() };
    let reply = AssistantMessage {
        tool_calls: vec![call],
        finish_reason: FinishReason::ToolCalls,
        ..AssistantMessage::default()
    };
    let clock = Clock::start();
    let repeats = RepeatDetector::new(0, 0);
    let mut turn = Turn { agent, session, run, clock: &clock, meter: Meter::default(), repeats };
    turn.record(Message::Assistant(reply.clone()))?;
    tokio::select! {
        biased;
        () = cancel.triggered() => return Err(Stop::Interrupted),
        outcome = turn.run_calls(&reply) => outcome?,
    }
    match turn.session.messages().last() {
        Some(Message::Tool(answer)) => Ok(Called { status: answer.status, content: answer.content.clone() }),
        _ => Err(Stop::Failed(anyhow::anyhow!("the call was not answered"))),
    }
}
