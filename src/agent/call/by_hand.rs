//! A call made by a person. It takes the same path as a model's call: checked, judged, asked about, run, measured
//! and recorded.

use serde_json::Value;

use crate::agent::clock::PausableClock;
use crate::agent::purpose::open_call;
use crate::agent::turn::{Turn, TurnStop};
use crate::agent::{Agent, Cancel, Conversation, Run};
use crate::conversation::message::{FinishReason, Step, ToolCall};

use super::end::CallEnd;

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledByHand {
    pub end: CallEnd,
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
    name: &str,
    arguments: &Value,
    cancel: &Cancel,
) -> Result<CalledByHand, TurnStop> {
    agent.jobs.close("background: true needs a run that goes on, and this one ends with its call.");
    let call = ToolCall { id: "by_hand".to_owned(), name: name.to_owned(), arguments: arguments.to_string() };
    let step =
        Step { parts: vec![open_call(call.clone())], finish_reason: FinishReason::ToolCalls, ..Step::default() };
    let clock = PausableClock::start();
    let mut turn = Turn::new(agent, conversation, run, &clock);
    let number = turn.keep_reply(step)?;
    let end = tokio::select! {
        biased;
        () = cancel.triggered() => return Err(TurnStop::Interrupted),
        outcome = turn.run_only(number, &call) => outcome?,
    };
    let items = turn.conversation.session.items();
    let call = items.last().and_then(|item| item.as_step()?.calls().next());
    match call.and_then(|call| call.answer.as_ref()) {
        Some(answer) => Ok(CalledByHand { end, content: answer.content.clone() }),
        None => Err(TurnStop::Failed(anyhow::anyhow!("the call was not answered"))),
    }
}
