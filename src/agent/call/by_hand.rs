//! A call made by a person. It takes the same path as a model's call: checked, judged, asked about, run, measured
//! and recorded.

use anyhow::Context;
use serde_json::Value;

use crate::agent::turn::{Turn, TurnStop};
use crate::agent::{Agent, Cancel, Conversation, Run};
use crate::conversation::message::ToolCall;

use super::end::CallEnd;
use super::given::wrap_call;

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
    let mut turn = Turn::new(agent, conversation, run);
    let number = turn.keep_reply(wrap_call(&call))?;
    let end = tokio::select! {
        biased;
        () = cancel.triggered() => return Err(TurnStop::Interrupted),
        outcome = turn.run_only(number, &call) => outcome?,
    };
    let items = turn.conversation.session.items();
    let call = items.last().and_then(|item| item.as_step()?.calls().next());
    let answer = call.and_then(|call| call.answer.as_ref()).context("the call was not answered")?;
    Ok(CalledByHand { end, content: answer.content.clone() })
}
