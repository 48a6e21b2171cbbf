//! Tasks from a queue, worked off by many machines: what travels, the queue, the database of results, and a worker.
//!
//! Invariants:
//! - A task has one result. It is in the database before the queue forgets the task, so that whatever dies, the task is
//!   delivered again or its result is there.
//! - A worker holds a task by a lease with a fencing number. Who lost the lease writes nothing: the number is compared in
//!   the transaction that writes.
//! - A task carries words and names, never policy, paths or secrets: what it may do is the worker's own configuration.

mod queue;
mod results;
mod tls;
mod work;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::assembly::{MapOutcome, RunOptions};
use crate::agent::exit::{self, Ending};
use crate::config::Config;
use crate::conversation::event::RunStatus;
use crate::conversation::message::Usage;
use crate::prompt::Registry;

pub use queue::{QueueStatus, TaskQueue};
pub use results::{HeldTask, ResultStatus, ResultStore};
pub use work::{Worker, WorkerPlan};

/// The version of what travels.
const VERSION: u32 = 1;
/// The longest id of a task, in bytes: it is part of a key.
const LONGEST_ID: usize = 256;

/// A task in the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedTask {
    pub v: u32,
    /// What the tasks of one command have in common: a digest of the command.
    pub job: String,
    /// The task among those of its job.
    pub id: String,
    /// The message; `None` if the messages of the prompt ask for themselves.
    pub said: Option<String>,
    /// What prompts read as `vars.item`.
    pub item: Value,
    pub skills: Vec<String>,
    pub choices: TaskChoices,
}

/// What a task names of the worker's configuration, and what its answer has to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskChoices {
    pub agent: Option<String>,
    pub model: Option<String>,
    pub prompt: Option<PromptChoice>,
    pub vars: Vec<(String, Value)>,
    pub schema: Option<Value>,
}

/// A prompt by name, and its fingerprint where the task was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptChoice {
    pub reference: String,
    pub fingerprint: String,
}

/// The result of a task, as it travels and is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinishedTask {
    pub v: u32,
    pub job: String,
    pub id: String,
    pub status: RunStatus,
    pub exit_code: u8,
    pub reason: String,
    pub result: Value,
    pub usage: Usage,
    pub cost: Option<f64>,
    pub duration_ms: u64,
    pub session: Option<String>,
    /// The worker that did it.
    pub worker: String,
}

/// What the queue and the database hold.
pub struct ScaleStatus {
    pub queue: QueueStatus,
    pub results: ResultStatus,
}

impl ScaleStatus {
    /// Asks both.
    ///
    /// # Errors
    /// One of them cannot be asked: a sentence.
    pub async fn ask(queue: &TaskQueue, results: &ResultStore) -> Result<Self, String> {
        Ok(Self { queue: queue.status().await?, results: results.status().await? })
    }
}

impl QueuedTask {
    /// Reads a message of the queue.
    ///
    /// # Errors
    /// It is of another version, or no task: a sentence.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            v: u32,
        }
        let Versioned { v } = serde_json::from_slice(bytes).map_err(|error| format!("it is no task: {error}"))?;
        if v != VERSION {
            return Err(format!("it is of version {v}, and this program knows {VERSION}"));
        }
        let task: Self = serde_json::from_slice(bytes).map_err(|error| format!("it is no task: {error}"))?;
        if task.id.len() > LONGEST_ID {
            return Err(format!("its id has more than {LONGEST_ID} bytes"));
        }
        Ok(task)
    }

    /// A task of a job.
    pub fn new(
        job: &str,
        id: &str,
        said: Option<String>,
        item: Value,
        skills: &[String],
        choices: &TaskChoices,
    ) -> Self {
        Self {
            v: VERSION,
            job: job.to_owned(),
            id: id.to_owned(),
            said,
            item,
            skills: skills.to_vec(),
            choices: choices.clone(),
        }
    }
}

impl TaskChoices {
    /// What options name of a configuration.
    ///
    /// # Errors
    /// There is no such prompt: a sentence.
    pub fn of_options(config: &Config, options: &RunOptions) -> Result<Self, String> {
        let prompt = options.prompt.as_deref().map(|reference| find_prompt(config, reference)).transpose()?;
        Ok(Self {
            agent: options.agent.clone(),
            model: options.model.clone(),
            prompt,
            vars: options.vars.clone(),
            schema: options.schema.clone(),
        })
    }

    /// The options of a run with these choices, under the configuration of a worker.
    ///
    /// # Errors
    /// The prompt of the worker is another one: a sentence.
    fn to_options(&self, config: &Config, base: &RunOptions) -> Result<RunOptions, String> {
        if let Some(asked) = &self.prompt {
            let own = find_prompt(config, &asked.reference)?;
            if own != *asked {
                return Err(format!(
                    "the prompt `{}` of this worker is another one: its fingerprint is {}, that of the task {}",
                    asked.reference, own.fingerprint, asked.fingerprint
                ));
            }
        }
        Ok(RunOptions {
            agent: self.agent.clone().or_else(|| base.agent.clone()),
            model: self.model.clone().or_else(|| base.model.clone()),
            prompt: self.prompt.as_ref().map(|prompt| prompt.reference.clone()),
            vars: self.vars.clone(),
            schema: self.schema.clone(),
            ..base.clone()
        })
    }
}

fn find_prompt(config: &Config, reference: &str) -> Result<PromptChoice, String> {
    let prompt = Registry::new(&config.prompt_dirs).get(reference).map_err(|error| error.to_string())?;
    Ok(PromptChoice { reference: reference.to_owned(), fingerprint: prompt.fingerprint().to_owned() })
}

impl FinishedTask {
    /// A task that could not be begun.
    fn refuse(task: &QueuedTask, worker: &str, code: u8, reason: String) -> Self {
        Self {
            v: VERSION,
            job: task.job.clone(),
            id: task.id.clone(),
            status: RunStatus::Error,
            exit_code: code,
            reason,
            result: Value::Null,
            usage: Usage::default(),
            cost: None,
            duration_ms: 0,
            session: None,
            worker: worker.to_owned(),
        }
    }

    fn of_outcome(task: &QueuedTask, worker: &str, outcome: MapOutcome) -> Self {
        Self {
            status: outcome.ending.status,
            exit_code: outcome.ending.code,
            reason: outcome.ending.reason,
            result: outcome.result,
            usage: outcome.usage,
            cost: outcome.cost,
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            session: outcome.session,
            ..Self::refuse(task, worker, exit::DONE, String::new())
        }
    }

    /// The outcome, as of a task that ran here.
    pub fn into_outcome(self) -> MapOutcome {
        MapOutcome {
            ending: Ending { code: self.exit_code, status: self.status, reason: self.reason },
            result: self.result,
            usage: self.usage,
            cost: self.cost,
            duration: std::time::Duration::from_millis(self.duration_ms),
            session: self.session,
            branch: None,
            is_unfunded: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_a_task_of_this_version_or_nothing() {
        let task = QueuedTask::new("job", "1", Some("do".to_owned()), json!("x"), &[], &TaskChoices::default());
        let written = serde_json::to_value(&task).expect("JSON");
        assert_eq!(QueuedTask::read(written.to_string().as_bytes()), Ok(task));
        let with = |key: &str, value: Value| {
            let mut other = written.clone();
            other[key] = value;
            QueuedTask::read(other.to_string().as_bytes()).expect_err("it is none")
        };
        assert!(with("v", json!(2)).contains("version 2"));
        assert!(with("id", json!("x".repeat(300))).contains("256 bytes"));
        assert!(with("choices", json!(7)).contains("no task"));
        assert!(QueuedTask::read(b"hello").is_err() && QueuedTask::read(b"{}").is_err());
        // What a task could widen is nothing that it has.
        let mut wide = written.clone();
        wide["approve"] = json!("all");
        let read = QueuedTask::read(wide.to_string().as_bytes()).expect("the rest is a task");
        assert_eq!(serde_json::to_value(&read).expect("JSON"), written);
    }
}
