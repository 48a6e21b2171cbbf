//! Calls that go on while no request of the client is open: those that wait for an answer, and tasks that the client
//! looks after by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use rmcp::model::{DetailedTask, GetTaskResult, Task, TaskPayload, TaskStatus};
use tokio::task::AbortHandle;

use super::{CallStep, McpCall, McpQuestion};

/// How long a question waits for its answer; then it is answered with none, and the call ends.
const ANSWER_TIME: Duration = Duration::from_mins(10);
/// How long the result of a task can be fetched.
const KEPT: Duration = Duration::from_hours(1);
/// The time after which a client looks at a task again, in milliseconds.
const POLL_MS: u64 = 500;

/// The calls of one client that no request waits for.
#[derive(Default)]
pub struct ParkedCalls {
    waiting: Mutex<HashMap<String, (McpCall, McpQuestion)>>,
    tasks: Mutex<HashMap<String, ServedTask>>,
}

/// A call as a task.
struct ServedTask {
    task: Task,
    payload: TaskPayload,
    /// What it asks, until that is answered.
    question: Option<McpQuestion>,
    run: AbortHandle,
}

impl ParkedCalls {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, (McpCall, McpQuestion)>> {
        self.waiting.lock().expect("no holder of the calls panics")
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<String, ServedTask>> {
        self.tasks.lock().expect("no holder of the tasks panics")
    }

    /// Lets a call wait for the answer to its question. Returns the word by which the client goes on with it.
    pub fn park(self: &Arc<Self>, call: McpCall, question: McpQuestion) -> String {
        let state = new_id();
        self.waiting().insert(state.clone(), (call, question));
        let (parked, late) = (Arc::clone(self), state.clone());
        tokio::spawn(async move {
            tokio::time::sleep(ANSWER_TIME).await;
            parked.waiting().remove(&late);
        });
        state
    }

    /// Gives a waiting call its answer, and returns it; `None` if it does not wait.
    pub fn go_on(&self, state: &str, answer: Option<String>) -> Option<McpCall> {
        let (call, question) = self.waiting().remove(state)?;
        // The run may have ended meanwhile.
        let _ = question.answer.send(answer);
        Some(call)
    }

    /// Lets a call go on as a task.
    pub fn begin_task(self: &Arc<Self>, mut call: McpCall) -> Task {
        let id = new_id();
        let now = Timestamp::now().to_string();
        let task = Task::new(id.clone(), TaskStatus::Working, now.clone(), now)
            .with_ttl_ms(u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX))
            .with_poll_interval_ms(POLL_MS);
        let (parked, own) = (Arc::clone(self), id.clone());
        let run = tokio::spawn(async move {
            loop {
                match call.next().await {
                    CallStep::Progress(message) => {
                        parked.change_task(&own, |served| served.task.status_message = Some(message));
                    }
                    CallStep::Ended(result) => {
                        let result = serde_json::to_value(&result).ok();
                        let result = result.and_then(|result| result.as_object().cloned()).unwrap_or_default();
                        parked.end_task(&own, TaskPayload::Completed { result });
                        break;
                    }
                    CallStep::Asks(question) => parked.change_task(&own, |served| {
                        served.payload = TaskPayload::InputRequired { input_requests: question.input_request() };
                        served.question = Some(question);
                    }),
                }
            }
            parked.forget_later(own);
        });
        let served = ServedTask {
            task: task.clone(),
            payload: TaskPayload::Working,
            question: None,
            run: run.abort_handle(),
        };
        self.tasks().insert(id, served);
        task
    }

    fn change_task(&self, id: &str, change: impl FnOnce(&mut ServedTask)) {
        if let Some(served) = self.tasks().get_mut(id) {
            change(served);
            served.task.last_updated_at = Timestamp::now().to_string();
        }
    }

    fn end_task(&self, id: &str, payload: TaskPayload) {
        self.change_task(id, |served| {
            served.task.status_message = None;
            (served.payload, served.question) = (payload, None);
        });
    }

    /// How a task is; `None` if there is none of this id.
    pub fn describe_task(&self, id: &str) -> Option<GetTaskResult> {
        let tasks = self.tasks();
        let served = tasks.get(id)?;
        Some(GetTaskResult::new(DetailedTask::new(served.task.clone(), served.payload.clone())))
    }

    /// Gives a task the answer to what it asks.
    pub fn answer_task(&self, id: &str, answer: Option<String>) -> Option<()> {
        let question = self.tasks().get_mut(id)?.question.take();
        self.change_task(id, |served| served.payload = TaskPayload::Working);
        if let Some(question) = question {
            // The run may have ended meanwhile.
            let _ = question.answer.send(answer);
        }
        Some(())
    }

    /// Ends every call: the client is gone.
    pub fn end_all(&self) {
        self.waiting().clear();
        self.tasks().drain().for_each(|(_, served)| served.run.abort());
    }

    fn forget_later(self: &Arc<Self>, id: String) {
        let parked = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            parked.tasks().remove(&id);
        });
    }

    /// Ends a task that has not ended.
    pub fn cancel_task(self: &Arc<Self>, id: &str) -> Option<()> {
        let is_over = {
            let tasks = self.tasks();
            let served = tasks.get(id)?;
            let is_over = served.payload.status().is_terminal();
            if !is_over {
                served.run.abort();
            }
            is_over
        };
        if !is_over {
            self.end_task(id, TaskPayload::Cancelled);
            self.forget_later(id.to_owned());
        }
        Some(())
    }
}

/// An id that nobody guesses.
fn new_id() -> String {
    let random = std::iter::repeat_with(|| fastrand::alphanumeric().to_ascii_lowercase());
    random.take(24).collect()
}
