//! A call until its result is there: the server may first ask for input (SEP-2322), or take it as a task that it works off
//! while the client looks at it from time to time (SEP-2663).

use std::collections::BTreeSet;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, GetTaskParams, InputRequest,
    InputRequests, InputResponses, JsonObject, Task, TaskPayload, UpdateTaskParams,
};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tokio::runtime::Handle;

use super::client::{LONGEST_PROGRESS, McpConnection, put_question};
use crate::base::text;

/// How often a server may ask for input in one call.
const MOST_ROUNDS: usize = 10;
/// The wait before a call is sent again of which the server only wants its state back.
const SAME_AGAIN: Duration = Duration::from_millis(200);
/// The time between two looks at a task, if the server names none, and its bounds.
const LOOK: Duration = Duration::from_secs(1);
const SHORTEST_LOOK: Duration = Duration::from_millis(50);
const LONGEST_LOOK: Duration = Duration::from_secs(10);

impl McpConnection {
    /// Sends a call until it has a result.
    ///
    /// # Errors
    /// The server refuses the call, or asks for ever.
    pub(super) async fn complete_call(
        &self,
        mut request: CallToolRequestParams,
    ) -> Result<CallToolResult, ServiceError> {
        for _ in 0..MOST_ROUNDS {
            match self.service.call_tool_once(request.clone()).await? {
                CallToolResponse::Complete(result) => return Ok(result),
                CallToolResponse::Task(begun) => return self.await_task(begun.task).await,
                CallToolResponse::InputRequired(asked) => {
                    request.request_state = asked.request_state;
                    request.input_responses = match asked.input_requests {
                        Some(requests) => Some(self.answer(requests).await),
                        None => {
                            tokio::time::sleep(SAME_AGAIN).await;
                            None
                        }
                    };
                }
                _ => return Err(ServiceError::UnexpectedResponse),
            }
        }
        Err(ServiceError::InputRequiredRoundsExceeded { max_rounds: MOST_ROUNDS })
    }

    /// Looks at a task until it is done. Dropping the future cancels it.
    async fn await_task(&self, mut task: Task) -> Result<CallToolResult, ServiceError> {
        let id = task.task_id.clone();
        let mut running = RunningTask { peer: self.service.peer().clone(), id: Some(id.clone()) };
        let (mut told, mut answered) = (None, BTreeSet::new());
        loop {
            if let Some(message) = task.status_message.take().filter(|message| told.as_ref() != Some(message)) {
                // Without a call that waits, nobody wants to know.
                let _ = self.progress.send(text::take_head(&message, LONGEST_PROGRESS).to_owned());
                told = Some(message);
            }
            let look = task.poll_interval_ms.map_or(LOOK, Duration::from_millis);
            tokio::time::sleep(look.clamp(SHORTEST_LOOK, LONGEST_LOOK)).await;
            let seen = self.service.get_task(GetTaskParams::new(&id)).await?.task;
            task = seen.task;
            match seen.payload {
                TaskPayload::InputRequired { mut input_requests } => {
                    input_requests.retain(|key, _| answered.insert(key.clone()));
                    if !input_requests.is_empty() {
                        let answers = self.answer(input_requests).await;
                        self.service.update_task(UpdateTaskParams::new(&id, answers)).await?;
                    }
                }
                TaskPayload::Completed { result } => {
                    running.id = None;
                    let result = serde_json::from_value(Value::Object(result));
                    return result.map_err(|_| ServiceError::UnexpectedResponse);
                }
                TaskPayload::Failed { error } => {
                    running.id = None;
                    return Err(ServiceError::McpError(read_failure(error)));
                }
                TaskPayload::Cancelled => {
                    running.id = None;
                    let why = "the server cancelled the task that it had made of the call";
                    return Err(ServiceError::McpError(ErrorData::internal_error(why, None)));
                }
                _ => {}
            }
        }
    }

    /// Answers what a server asks for. Only what goes to a person can be had.
    async fn answer(&self, requests: InputRequests) -> InputResponses {
        let mut answers = InputResponses::new();
        for (key, request) in requests {
            let InputRequest::Elicitation(asked) = request else { continue };
            let answer = put_question(&self.questions, asked.params).await;
            answers.insert(key, serde_json::to_value(answer).unwrap_or_default());
        }
        answers
    }
}

/// The failure of a task, which is an error of the protocol as text.
fn read_failure(error: JsonObject) -> ErrorData {
    let words = Value::Object(error);
    serde_json::from_value(words.clone()).unwrap_or_else(|_| ErrorData::internal_error(words.to_string(), None))
}

/// A task that nobody waits for any more is cancelled when this is dropped.
struct RunningTask {
    peer: Peer<RoleClient>,
    id: Option<String>,
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else { return };
        let peer = self.peer.clone();
        // A server that does not hear it works in vain.
        runtime.spawn(async move { peer.cancel_task(CancelTaskParams::new(id)).await });
    }
}
