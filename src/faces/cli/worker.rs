//! `agent worker`: works off the tasks of a queue until it is told to end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::agent::assembly::RunOptions;
use crate::agent::exit::Signal;
use crate::agent::workers::{HeldTask, ResultStore, ScaleStatus, TaskQueue, Worker, WorkerPlan};
use crate::base::text;
use crate::config::{SettingFlag, SettingFlags};
use crate::faces::collector::CollectorExport;
use crate::prompt::AnswerReader;

use super::args::{ServingArgs, WorkerArgs, WorkerCommand};
use super::setup::{CliSetup, build_runtime};
use super::signals::{self, Signals};
use super::{
    CommandFailure, CommandOutcome, close_export, exit, note_progress, print_table, print_text, warn_person,
};

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
    let export = CollectorExport::open(&config)?;
    let plan = WorkerPlan {
        open_sink: export.opener(),
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
        #[cfg(feature = "otlp")]
        let mut reporting = std::pin::pin!(report_figures(&worker, &export));
        #[cfg(not(feature = "otlp"))]
        let mut reporting = std::pin::pin!(std::future::pending::<()>());
        loop {
            tokio::select! {
                () = &mut working => break,
                () = &mut drained => {}
                () = &mut reporting => {}
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
    close_export(export, exit::DONE);
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
    let (status, held) = runtime
        .block_on(async {
            let queue = TaskQueue::connect(url).await?;
            store.check().await?;
            Ok((ScaleStatus::ask(&queue, store).await?, store.list_held().await?))
        })
        .map_err(unavailable)?;
    let count = |Figure { value, unit, .. }: &Figure| match value {
        Some(value) => format!("{value}{unit}"),
        None => "-".to_owned(),
    };
    let rows = list_figures(&status).map(|figure| [figure.name.to_owned(), count(&figure)]);
    print_table(&rows.into_iter().chain(held.iter().map(describe_held)).collect::<Vec<_>>())
}

/// A task that runs, and where.
fn describe_held(HeldTask { id, worker, begun, session }: &HeldTask) -> [String; 2] {
    let session = session.as_ref().map(|id| format!(", session {id}")).unwrap_or_default();
    let again = if *begun > 1 { format!(", begun {begun} times") } else { String::new() };
    [format!("  {}", text::one_line(id, 40)), format!("worker {worker}{session}{again}")]
}

/// A figure of the queue and the database: its name for people, that of its gauge, its value and what follows it.
struct Figure {
    name: &'static str,
    #[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "it is exported"))]
    gauge: &'static str,
    value: Option<u64>,
    unit: &'static str,
}

fn list_figures(ScaleStatus { queue, results }: &ScaleStatus) -> [Figure; 7] {
    let figure = |name, gauge, value| Figure { name, gauge, value: Some(value), unit: "" };
    let oldest = queue.oldest.map(|age| age.as_secs());
    [
        figure("waiting", "agent.queue.waiting", queue.waiting),
        figure("running", "agent.queue.running", queue.held),
        Figure { value: oldest, unit: " s", ..figure("age of the oldest", "agent.queue.oldest_age", 0) },
        figure("given up", "agent.queue.given_up", queue.dead),
        figure("finished", "agent.tasks.finished", results.finished.unsigned_abs()),
        figure("failed", "agent.tasks.failed", results.failed.unsigned_abs()),
        figure("finished in the last minute", "agent.tasks.last_minute", results.last_minute.unsigned_abs()),
    ]
}

/// Exports the figures now and then, if there is a collector. Never ends.
#[cfg(feature = "otlp")]
async fn report_figures(worker: &Worker, export: &CollectorExport) {
    let Some(gauges) = export.gauges() else { return std::future::pending().await };
    loop {
        // What is away has no figures.
        if let Ok(status) = ScaleStatus::ask(&worker.queue, &worker.results).await {
            for Figure { gauge, value, .. } in list_figures(&status) {
                gauges.record_gauge(gauge, value.unwrap_or_default());
            }
        }
        tokio::time::sleep(BETWEEN).await;
    }
}

fn unavailable(why: String) -> CommandFailure {
    CommandFailure::word(exit::UNAVAILABLE, why)
}
