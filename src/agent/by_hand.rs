//! A call made by a person. It takes the same path as a model's call: checked, judged, asked about, run, measured
//! and recorded.

use serde_json::Value;

use crate::conversation::message::{CallStatus, FinishReason, Step, ToolCall};

use super::clock::Clock;
use super::purpose::open;
use super::turn::{Stop, Turn};
use super::{Agent, Cancel, Conversation, Run};

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    pub status: CallStatus,
    /// Exactly what the model would read.
    pub content: String,
}

/// Makes one call in a conversation that nothing else uses.
///
/// # Errors
/// It was interrupted, or the program itself failed; a failure of the tool is not an error.
pub async fn call_by_hand(
    agent: &Agent,
    conversation: &mut Conversation,
    run: &mut Run,
    (name, arguments): (&str, &Value),
    cancel: &Cancel,
) -> Result<Called, Stop> {
    agent.jobs.close("background: true needs a run that goes on, and this one ends with its call.");
    let call = ToolCall { id: "by_hand".to_owned(), name: name.to_owned(), arguments: arguments.to_string() };
    let step = Step { parts: vec![open(call)], finish_reason: FinishReason::ToolCalls, ..Step::default() };
    let clock = Clock::start();
    let mut turn = Turn::new(agent, conversation, run, &clock);
    let number = turn.keep_reply(step.clone())?;
    tokio::select! {
        biased;
        () = cancel.triggered() => return Err(Stop::Interrupted),
        outcome = turn.run_calls(number, &step) => outcome?,
    }
    let items = turn.conversation.session.items();
    let call = items.last().and_then(|item| item.as_step()?.calls().next());
    match call.and_then(|call| call.answer.as_ref()) {
        Some(answer) => Ok(Called { status: answer.status, content: answer.content.clone() }),
        None => Err(Stop::Failed(anyhow::anyhow!("the call was not answered"))),
    }
}
