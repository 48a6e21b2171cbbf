//! `agent map --queue`: publishes tasks for workers, and collects their results.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OnceCell, oneshot};

use crate::agent::Cancel;
use crate::agent::assembly::{MapOutcome, MapTask, RunOptions, SetupError};
use crate::agent::workers::{FinishedTask, QueuedTask, TaskChoices, TaskQueue};
use crate::base::text;
use crate::config::Config;
use crate::template::Template;

use super::super::args::MapArgs;
use super::super::setup::{CliSetup, build_runtime};
use super::super::signals::Signals;
use super::super::{CommandFailure, CommandOutcome, exit, note_progress, warn_person};
use super::input::MapItems;
use super::progress::KnownIds;
use super::write_task;

/// The time between two tries to reach a queue that is away.
const PAUSE: Duration = Duration::from_secs(1);

/// Tasks that run on the workers of a queue.
pub struct QueuedRunner {
    url: String,
    queue: OnceCell<TaskQueue>,
    job: String,
    choices: TaskChoices,
    waiting: Arc<Mutex<WaitingTasks>>,
    /// True once it was said that the queue is away.
    has_told: AtomicBool,
    pub cancel: Cancel,
}

/// Who waits for results, and results that nobody waits for yet, by the ids of their tasks.
#[derive(Default)]
struct WaitingTasks {
    asked: HashMap<String, oneshot::Sender<FinishedTask>>,
    early: HashMap<String, FinishedTask>,
    /// The ids of results that were handed out.
    given: HashSet<String>,
}

/// The queue that the options name, if they name one. Nothing is connected yet.
///
/// # Errors
/// An option says what a task does not carry, or the prompt does not exist.
pub fn prepare_queue(
    setup: &CliSetup,
    args: &MapArgs,
    config: &Config,
    options: &RunOptions,
    job: &str,
) -> Result<Option<QueuedRunner>, CommandFailure> {
    let Some(url) = &args.queue.queue else { return Ok(None) };
    let turn = &args.turn;
    let not_carried = [
        ("--flow", turn.flow.is_some()),
        ("--mode", turn.mode.is_some()),
        ("--approve", turn.approve.is_some()),
        ("--sandbox", turn.sandbox.is_some()),
        ("--log-wire", turn.log_wire.is_some()),
        ("--record", turn.recording.record.is_some()),
        ("--replay", turn.recording.replay.is_some()),
        ("--max-turns", turn.max_turns.is_some()),
        ("--max-requests", turn.max_requests.is_some()),
        ("--max-time", turn.max_time.is_some()),
        ("--max-tokens", turn.max_tokens.is_some()),
        ("--max-cost", turn.max_cost.is_some()),
        ("--trial", turn.trial),
        ("--ephemeral", turn.ephemeral),
        ("--output-file without --collect", args.output_file.is_some() && !args.queue.collect),
    ];
    if let Some((option, _)) = not_carried.iter().find(|(_, given)| *given) {
        let why = format!(
            "{option} does not travel with --queue: what tasks may do is the configuration of the workers"
        );
        return Err(CommandFailure::usage(why));
    }
    let url = if url == "-" { setup.env.get("AGENT_QUEUE") } else { Some(url.as_str()) };
    let url =
        url.ok_or_else(|| CommandFailure::usage("AGENT_QUEUE is not set: --queue - takes the address from it"))?;
    let choices = TaskChoices::of_options(config, options).map_err(CommandFailure::usage)?;
    Ok(Some(QueuedRunner {
        url: url.to_owned(),
        queue: OnceCell::new(),
        job: job.to_owned(),
        choices,
        waiting: Arc::default(),
        has_told: AtomicBool::new(false),
        cancel: Cancel::default(),
    }))
}

impl QueuedRunner {
    /// Publishes a task, and waits for its result, also while the queue is away.
    ///
    /// # Errors
    /// The queue cannot be reached at first, or the run is interrupted.
    pub async fn run(&self, id: &str, task: MapTask) -> Result<MapOutcome, SetupError> {
        let queue = self.queue.get_or_try_init(|| self.begin_collecting()).await.map_err(SetupError::usage)?;
        let (sender, finished) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock().expect("no holder of the results panics");
            if let Some(finished) = waiting.early.remove(id) {
                return Ok(finished.into_outcome());
            }
            waiting.asked.insert(id.to_owned(), sender);
        }
        let task = self.write(id, task);
        let published = async {
            let mut finished = finished;
            for time in 0.. {
                let connections = queue.count_connections();
                while let Err(why) = queue.publish(&task, time).await {
                    self.tell_away(&why);
                    tokio::time::sleep(PAUSE).await;
                }
                // After a reconnection it is asked for again: a worker that has its result says it once more.
                tokio::select! {
                    finished = &mut finished => return finished,
                    () = queue.wait_for_reconnection(connections) => {}
                }
            }
            finished.await
        };
        let interrupted = || SetupError::usage("interrupted");
        tokio::select! {
            finished = published => finished.map(FinishedTask::into_outcome).map_err(|_| interrupted()),
            () = self.cancel.triggered() => Err(interrupted()),
        }
    }

    fn tell_away(&self, why: &str) {
        if !self.has_told.swap(true, Ordering::Relaxed) {
            warn_person(&format!("{why}; it is waited for"));
        }
    }

    fn write(&self, id: &str, task: MapTask) -> QueuedTask {
        QueuedTask::new(&self.job, id, task.said, task.item, &task.skills, &self.choices)
    }

    /// Connects, and hands out results from now on.
    async fn begin_collecting(&self) -> Result<TaskQueue, String> {
        let queue = TaskQueue::connect(&self.url).await?;
        queue.prepare().await?;
        let (collecting, job, waiting) = (queue.clone(), self.job.clone(), Arc::clone(&self.waiting));
        tokio::spawn(async move {
            let mut take = |finished: FinishedTask| {
                let mut waiting = waiting.lock().expect("no holder of the results panics");
                match waiting.asked.remove(&finished.id) {
                    Some(asked) => {
                        waiting.given.insert(finished.id.clone());
                        // Whoever waited may have been interrupted.
                        drop(asked.send(finished));
                    }
                    None if waiting.given.contains(&finished.id) => {}
                    None => drop(waiting.early.insert(finished.id.clone(), finished)),
                }
            };
            // A queue that was away gives all results again.
            loop {
                let connections = collecting.count_connections();
                tokio::select! {
                    _ = collecting.collect(&job, &mut take) => tokio::time::sleep(PAUSE).await,
                    () = collecting.wait_for_reconnection(connections) => {}
                }
            }
        });
        Ok(queue)
    }

    /// Publishes the task of each item, and waits for no result.
    pub fn publish_all(
        &self,
        mut items: MapItems,
        template: Option<&Template>,
        args: &MapArgs,
        signals: Signals,
    ) -> CommandOutcome {
        signals.trigger(&self.cancel);
        let runtime = build_runtime()?;
        let (mut published, mut wrong, mut ids) = (0_u64, 0_u64, KnownIds::default());
        let done: Result<(), String> = runtime.block_on(async {
            let queue = TaskQueue::connect(&self.url).await?;
            queue.prepare().await?;
            while !self.cancel.is_triggered()
                && let Some(item) = items.next().await.map_err(|error| format!("stdin cannot be read: {error}"))?
            {
                let item = ids.name(item);
                let task = item.value.and_then(|value| {
                    Ok(MapTask {
                        said: write_task(template, &value)?,
                        item: value,
                        skills: args.turn.skills.clone(),
                        ..MapTask::default()
                    })
                });
                match task {
                    Ok(task) => {
                        queue.publish(&self.write(&item.id, task), 0).await?;
                        published += 1;
                    }
                    Err(why) => {
                        wrong += 1;
                        warn_person(&format!("{}: {why}", text::one_line(&item.id, 60)));
                    }
                }
            }
            Ok(())
        });
        // A thread may still read a line.
        runtime.shutdown_background();
        if done.is_ok() || published > 0 {
            let tasks = text::count_noun(published, "task", "tasks");
            note_progress(&format!(
                "Published {tasks} as job {}; the same command with --collect collects the results.",
                self.job
            ));
        }
        done.map_err(|why| CommandFailure::word(exit::FAILED, why))?;
        Ok(match self.cancel.signal() {
            Some(signal) => signal.code(),
            None if wrong > 0 => exit::FAILED,
            None => exit::DONE,
        })
    }
}
