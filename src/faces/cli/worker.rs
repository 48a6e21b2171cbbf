//! `agent worker`: works off the tasks of a queue until it is told to end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::agent::assembly::RunOptions;
use crate::agent::exit::Signal;
use crate::agent::workers::{ResultStore, TaskQueue, Worker, WorkerPlan};
use crate::base::text;
use crate::config::{SettingFlag, SettingFlags};
use crate::prompt::AnswerReader;

use super::args::{ServingArgs, WorkerArgs, WorkerCommand};
use super::setup::{CliSetup, build_runtime};
use super::signals::{self, Signals};
use super::{CommandFailure, CommandOutcome, exit, note_progress, print_table, print_text, warn_person};

/// The time between two lines about what was done.
const BETWEEN: Duration = Duration::from_secs(10);

pub(super) fn run_worker(mut setup: CliSetup, args: WorkerArgs) -> CommandOutcome {
    let address = |given: &Option<String>, variable: &str, option: &str| {
        given
            .clone()
            .or_else(|| setup.env.get(variable).map(str::to_owned))
            .ok_or_else(|| CommandFailure::usage(format!("a worker needs {option}: {option} URL, or {variable}")))
    };
    let queue_url = address(&args.queue, "AGENT_QUEUE", "--queue");
    let store =
        ResultStore::new(&address(&args.store, "AGENT_STORE", "--store")?).map_err(CommandFailure::usage)?;
    let runtime = build_runtime()?;
    match args.command {
        None => {}
        Some(WorkerCommand::Init) => {
            let made = runtime.block_on(async {
                // Either can be made alone.
                if let Ok(url) = &queue_url {
                    TaskQueue::connect(url).await?.prepare().await?;
                }
                store.prepare().await
            });
            let is_new = made.map_err(unavailable)?;
            return print_text(if is_new { "The tables are made.\n" } else { "The tables are there already.\n" });
        }
        Some(WorkerCommand::Session { id }) => {
            let log = runtime.block_on(store.read_log(&id)).map_err(unavailable)?;
            if log.is_empty() {
                return Err(CommandFailure::usage(format!(
                    "the store has no session `{}`",
                    text::one_line(&id, 60)
                )));
            }
            return print_text(log);
        }
        Some(WorkerCommand::Status) => return print_status(&runtime, &queue_url?, &store),
    }
    let signals = Signals::listen()?;
    if args.isolate.is_none() {
        // Tasks side by side would change the same files.
        setup.global.sets.push("permissions.max=read".to_owned());
    }
    let ServingArgs { agent, model, approve } = args.serving;
    let approve = approve.map(|mode| mode.name().to_owned());
    let flags = SettingFlags::default().of_agent(agent.clone()).with(SettingFlag::Approve, approve);
    let (workspace, config) = setup.load_with(flags)?;
    let plan = WorkerPlan {
        spool: config.dirs.state.join("worker"),
        workspace,
        options: RunOptions { agent, model, output: AnswerReader::Json, ..RunOptions::default() },
        isolation: args.isolate,
        jobs: usize::from(args.jobs),
        tell: warn_person,
        config,
    };
    let queue_url = queue_url?;
    let worker = runtime.block_on(async {
        let queue = TaskQueue::connect(&queue_url).await?;
        queue.prepare().await?;
        store.check().await?;
        Worker::new(plan, queue, store).map_err(|error| error.to_string())
    });
    let worker = Arc::new(worker.map_err(unavailable)?);
    listen(&signals, &worker);
    let say = if setup.global.quiet { |_: &str| {} } else { note_progress };
    say("Waiting for tasks. Ctrl-C or SIGTERM lets running ones end.");
    runtime.block_on(async {
        let mut working = std::pin::pin!(worker.work());
        let mut told = String::new();
        let drained = async {
            worker.drain.triggered().await;
            tokio::time::sleep(args.grace).await;
            worker.cancel.trigger();
            std::future::pending::<()>().await;
        };
        let mut drained = std::pin::pin!(drained);
        loop {
            tokio::select! {
                () = &mut working => break,
                () = &mut drained => {}
                () = tokio::time::sleep(BETWEEN) => {
                    let line = describe_counts(&worker);
                    if line != told {
                        say(&line);
                        told = line;
                    }
                }
            }
        }
    });
    say(&describe_counts(&worker));
    Ok(worker.drain.signal().map_or(exit::DONE, Signal::code))
}

/// The first signal lets running tasks end, the second gives them back, the third ends the program.
fn listen(signals: &Signals, worker: &Arc<Worker>) {
    let (drain, cancel) = (worker.drain.clone(), worker.cancel.clone());
    signals.pass(move |signal| {
        if cancel.is_triggered() {
            signals::die_at_once(signal);
        }
        if drain.is_triggered() {
            cancel.trigger();
        } else {
            drain.trigger_by(signal);
        }
    });
}

fn describe_counts(worker: &Worker) -> String {
    let counts = &worker.counts;
    let [done, failed, dropped, running] = [&counts.done, &counts.failed, &counts.dropped, &counts.running]
        .map(|count| count.load(Ordering::Relaxed));
    let dropped = if dropped > 0 { format!(", {dropped} were done elsewhere") } else { String::new() };
    format!("{done} done, {failed} failed, {running} running{dropped}")
}

fn print_status(runtime: &tokio::runtime::Runtime, url: &str, store: &ResultStore) -> CommandOutcome {
    let (queue, results) = runtime
        .block_on(async {
            let queue = TaskQueue::connect(url).await?.status().await?;
            store.check().await?;
            Ok((queue, store.status().await?))
        })
        .map_err(unavailable)?;
    let oldest = queue.oldest.map_or_else(|| "-".to_owned(), |age| format!("{} s", age.as_secs()));
    let rows = [
        ("waiting", queue.waiting.to_string()),
        ("running", queue.held.to_string()),
        ("age of the oldest", oldest),
        ("given up", queue.dead.to_string()),
        ("finished", results.finished.to_string()),
        ("failed", results.failed.to_string()),
        ("finished in the last minute", results.last_minute.to_string()),
    ];
    let rows: Vec<[String; 2]> = rows.map(|(name, value)| [name.to_owned(), value]).into();
    print_table(&rows)
}

fn unavailable(why: String) -> CommandFailure {
    CommandFailure::word(exit::UNAVAILABLE, why)
}
