//! `agent map`: one run for each line of stdin, several at a time, one line of JSON for each.

mod input;
mod progress;
#[cfg(feature = "scale")]
mod queued;
mod results;
mod runner;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::agent::assembly::{self, MapOutcome, MapRunner, MapTask, RunOptions, SetupError, TaskIsolation};
use crate::agent::exit::Signal;
use crate::base::digest::hash_sha256;
use crate::base::text;
use crate::conversation::event::RunStatus;
use crate::conversation::message::Usage;
use crate::faces::collector::CollectorExport;
use crate::prompt::AnswerReader;
use crate::screen::{Bar, terminal};
use crate::template::{Template, Undefined, convert_value};

use super::args::MapArgs;
use super::setup::{CliSetup, build_runtime, setting_flags};
use super::signals::Signals;
use super::{CommandFailure, CommandOutcome, close_export, exit, note_progress, run, warn_person};
use input::{MapItem, MapItems};
use progress::{KnownIds, MapProgress, StopSwitch};
use results::{FinishedLine, GoingOn, OpenedResults, ResultRow, ResultWriter, RowPlace, VERSION, WrittenRow};
use runner::TaskRunner;

/// What tasks may do.
fn describe_isolation(isolation: Option<TaskIsolation>) -> &'static str {
    match isolation {
        None => "Tasks only read here; with --isolate each may change files, in a directory of its own.",
        Some(TaskIsolation::Worktree) => {
            "Each task works in a git worktree of its own; its changes are on the branch that its result names."
        }
        Some(TaskIsolation::Copy) => "Each task works in a copy of its own, which goes with it.",
        Some(TaskIsolation::Trial) => {
            "Each task works in a copy of its own; `agent session apply` with the session that its result names applies \
             its changes."
        }
    }
}

/// The time between two lines of progress where no bar is drawn.
const BETWEEN: Duration = Duration::from_secs(10);
/// The time after which progress is looked at again, if nothing happens.
const TICK: Duration = Duration::from_millis(500);

pub(super) fn run_map(mut setup: CliSetup, args: MapArgs) -> CommandOutcome {
    refuse_options(&args)?;
    let signals = Signals::listen()?;
    let isolation = args.isolate.or(args.turn.trial.then_some(TaskIsolation::Trial));
    if isolation.is_none() {
        // Tasks side by side would change the same files.
        setup.global.sets.push("permissions.max=read".to_owned());
    }
    let (workspace, config) = setup.load_with(setting_flags(&args.turn))?;
    let schema = args.schema.as_deref().map(run::read_schema).transpose()?;
    let output = if schema.is_some() { AnswerReader::Schema } else { AnswerReader::Json };
    let mut options = RunOptions { output, ..run::read_options(&args.turn, schema)? };
    options.tape = run::open_tape(&args.turn.recording, &config, &workspace)?;
    options.flow = run::choose_flow(&config, &args.turn, args.task.is_some(), &options.vars)?;
    let template = args.task.as_deref().map(|task| Template::compile("TASK", task, Undefined::Error)).transpose();
    let template = template.map_err(|error| CommandFailure::usage(format!("the task: {error}")))?;
    let digest = digest_task(&args, &options);
    if terminal::stdin_is_terminal() {
        return Err(CommandFailure::usage("the items come from stdin, one a line: agent map \"TASK\" < FILE"));
    }
    #[cfg(feature = "scale")]
    let queued = queued::prepare_queue(&setup, &args, &config, &options, &digest)?;
    #[cfg(feature = "scale")]
    if let Some(queued) = &queued
        && !args.queue.collect
    {
        let items = MapItems::read(io::stdin(), args.input, terminal::find_stdin_size());
        return queued.publish_all(items, template.as_ref(), &args, signals);
    }
    let store = (!args.turn.ephemeral).then(|| assembly::open_store(&config));
    // What workers run they export themselves.
    let mut export = CollectorExport::default();
    let make = || {
        export = CollectorExport::open(&config)?;
        let mut runner = MapRunner::new(&config, &workspace, options, store, isolation, args.turn.max_cost)?;
        runner.open_sink = export.opener();
        Ok::<_, SetupError>(runner)
    };
    #[cfg(feature = "scale")]
    let runner = queued.map_or_else(|| make().map(TaskRunner::Here), |queued| Ok(TaskRunner::Queue(queued)))?;
    #[cfg(not(feature = "scale"))]
    let runner = TaskRunner::Here(make()?);
    let going_on = GoingOn { task: &digest, is_forced: args.force, is_ordered: !args.unordered };
    let opened = match &args.output_file {
        Some(path) => results::open_file(path, going_on).map_err(CommandFailure::usage)?,
        None => results::open_stdout(!args.unordered)?,
    };
    if !setup.global.quiet {
        runner.warnings().iter().for_each(|warning| warn_person(warning));
        note_progress(runner.describe_place().unwrap_or_else(|| describe_isolation(isolation)));
        let stay = opened.finished.values().filter(|line| !(args.retry_failed && line.has_failed)).count();
        if stay > 0 {
            note_progress(&format!("{} are finished and are not run again.", count_results(stay)));
        }
    }
    let stop = Arc::new(StopSwitch::default());
    stop.listen(&signals, runner.cancel());
    let job = MapJob {
        template,
        skills: args.turn.skills.clone(),
        digest,
        jobs: args.jobs.map_or_else(|| runner.usual_jobs(), usize::from),
        runner: Arc::new(runner),
        stop,
        retries_failed: args.retry_failed,
        is_ordered: !args.unordered,
        is_quiet: setup.global.quiet,
        bar: setup.bar(),
    };
    let items = MapItems::read(io::stdin(), args.input, terminal::find_stdin_size());
    let runtime = build_runtime()?;
    let ended = runtime.block_on(job.run_all(items, opened));
    // A thread may still read a line.
    runtime.shutdown_background();
    if let Ok(code) = &ended {
        close_export(export, *code);
    }
    ended
}

/// Refuses the options of one run that mean nothing for many.
fn refuse_options(args: &MapArgs) -> Result<(), CommandFailure> {
    let turn = &args.turn;
    let wrong = [
        ("--session", turn.session.is_some()),
        ("--fork", turn.fork.is_some()),
        ("--continue", turn.continue_latest),
        ("--file", !turn.files.is_empty()),
    ];
    if let Some((option, _)) = wrong.iter().find(|(_, given)| *given) {
        return Err(CommandFailure::usage(format!("{option} is about one run, and map makes many: leave it out")));
    }
    if turn.ephemeral && args.isolate == Some(TaskIsolation::Trial) {
        return Err(CommandFailure::usage(
            "--isolate trial is about sessions that are kept: leave --ephemeral out",
        ));
    }
    match (&args.task, &turn.prompt) {
        (None, None) => {
            Err(CommandFailure::usage("no task: agent map \"Summarise {{ item }}\" < FILE, or --prompt"))
        }
        (Some(task), _) if task.trim().is_empty() => Err(CommandFailure::usage("the task is empty")),
        _ => Ok(()),
    }
}

/// A short digest of what decides an answer besides the item.
fn digest_task(args: &MapArgs, options: &RunOptions) -> String {
    let parts = [
        args.task.as_deref().unwrap_or_default(),
        options.prompt.as_deref().unwrap_or_default(),
        args.turn.flow.as_deref().unwrap_or_default(),
        &options.schema.as_ref().map(Value::to_string).unwrap_or_default(),
        &serde_json::to_string(&options.vars).unwrap_or_default(),
    ];
    hash_sha256(parts.iter().flat_map(|part| [part.as_bytes(), b"\0"]))[..8].to_owned()
}

/// The whole work.
struct MapJob {
    template: Option<Template>,
    skills: Vec<String>,
    digest: String,
    runner: Arc<TaskRunner>,
    stop: Arc<StopSwitch>,
    jobs: usize,
    retries_failed: bool,
    is_ordered: bool,
    is_quiet: bool,
    bar: Bar,
}

/// A task that ran, as its result names it.
struct EndedTask {
    at: usize,
    id: String,
    /// Its failed line of an earlier run.
    replaced: Option<RowPlace>,
    ended: Result<MapOutcome, SetupError>,
}

impl MapJob {
    async fn run_all(self, mut items: MapItems, opened: OpenedResults) -> CommandOutcome {
        let OpenedResults { writer, mut finished } = opened;
        let (mut running, mut progress) = (JoinSet::<EndedTask>::new(), MapProgress::default());
        let (mut ids, began) = (KnownIds::default(), Instant::now());
        let (mut is_warm, mut wrong) = (false, None);
        self.runner.finish_left_work().await;
        loop {
            let is_stopping = self.stop.is_draining() || self.runner.is_exhausted() || writer.has_failed();
            // The common beginning is sent once before the others ask.
            let width = if is_warm { self.jobs } else { 1 };
            let wants = !is_stopping && !progress.is_read && running.len() < width;
            if !wants && running.is_empty() {
                break;
            }
            let changed = self.stop.changed();
            tokio::select! {
                Some(ended) = running.join_next() => {
                    is_warm = true;
                    self.take_end(ended?, &writer, &mut progress);
                }
                item = items.next(), if wants => match item {
                    Ok(Some(item)) => {
                        let at = progress.read;
                        progress.read += 1;
                        self.take_item(at, ids.name(item), &mut finished, &writer, &mut running, &mut progress);
                    }
                    Ok(None) => progress.is_read = true,
                    Err(error) => {
                        wrong = Some(error);
                        progress.is_read = true;
                    }
                },
                () = self.runner.first_answer(), if !is_warm && !running.is_empty() => is_warm = true,
                () = changed => {}
                () = tokio::time::sleep(TICK) => {}
            }
            progress.estimate(began.elapsed(), items.estimate_count(progress.read));
            self.tell(&mut progress, running.len());
        }
        self.runner.finish_left_work().await;
        let waiting = writer.finish();
        drop(self.bar);
        match waiting {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(exit::DONE),
            Err(error) => {
                return Err(CommandFailure::word(exit::FAILED, format!("cannot write the results: {error}")));
            }
            Ok(0) => {}
            Ok(waiting) if !self.is_quiet => note_progress(&format!(
                "{} wait in the journal for results before them, or for their items; the same command goes on.",
                count_results(waiting)
            )),
            Ok(_) => {}
        }
        if !self.is_quiet {
            note_progress(&progress.describe(0, 0));
            if self.runner.is_exhausted() {
                note_progress(
                    "--max-cost is reached. With --output-file the same command with a higher one goes on.",
                );
            }
        }
        if let Some(error) = wrong {
            return Err(CommandFailure::word(exit::FAILED, format!("stdin cannot be read: {error}")));
        }
        Ok(match self.runner.cancel().signal() {
            Some(signal) => signal.code(),
            None if self.stop.is_draining() => Signal::Interrupt.code(),
            None if self.runner.is_exhausted() => exit::LIMIT,
            None if progress.failed + progress.kept_failed > 0 => exit::FAILED,
            None => exit::DONE,
        })
    }

    /// Begins the task of an item, unless it is finished or wrong.
    fn take_item(
        &self,
        at: usize,
        item: MapItem,
        finished: &mut HashMap<String, FinishedLine>,
        writer: &ResultWriter,
        running: &mut JoinSet<EndedTask>,
        progress: &mut MapProgress,
    ) {
        let MapItem { id, value, .. } = item;
        let is_retried = |line: &FinishedLine| self.retries_failed && line.has_failed;
        // It is taken once: a later line with the same id replaces nothing.
        let replaced = if finished.get(&id).is_some_and(is_retried) { finished.remove(&id) } else { None };
        let replaced = replaced.map(|line| line.place);
        if let Some(kept) = finished.get(&id).filter(|_| value.is_ok()) {
            progress.kept += 1;
            progress.kept_failed += usize::from(kept.has_failed);
            if self.is_ordered {
                writer.add(WrittenRow::Kept(at, kept.place));
            }
            return;
        }
        let task = value.and_then(|item| {
            let said = write_task(self.template.as_ref(), &item)?;
            Ok(MapTask { said, item, skills: self.skills.clone(), ..MapTask::default() })
        });
        match task {
            Ok(task) => {
                let runner = Arc::clone(&self.runner);
                running.spawn(async move {
                    let ended = runner.run(&id, task).await;
                    EndedTask { at, id, replaced, ended }
                });
            }
            Err(why) => {
                progress.failed += 1;
                let line = self.fail(&id, exit::USAGE, &why).write();
                writer.add(WrittenRow::New { at, line, replaced });
            }
        }
    }

    fn fail<'a>(&'a self, id: &'a str, exit_code: u8, reason: &'a str) -> ResultRow<'a> {
        ResultRow {
            v: VERSION,
            id,
            status: RunStatus::Error,
            exit_code,
            reason: Some(reason),
            result: Value::Null,
            usage: Usage::default(),
            cost: None,
            duration_ms: 0,
            session: None,
            branch: None,
            task: &self.digest,
        }
    }

    /// Writes the result of a task. One that was interrupted, or that `--max-cost` of all tasks stopped, is not finished.
    fn take_end(&self, task: EndedTask, writer: &ResultWriter, progress: &mut MapProgress) {
        let EndedTask { at, id, replaced, ended } = task;
        if let Ok(outcome) = &ended {
            progress.usage += outcome.usage;
            progress.cost.add(&outcome.usage, outcome.cost);
            progress.unfunded += usize::from(outcome.is_unfunded);
        }
        let row = match &ended {
            Err(_) if self.runner.cancel().is_triggered() => return,
            Ok(outcome) if outcome.is_unfunded || outcome.ending.status == RunStatus::Interrupted => return,
            Err(error) => self.fail(&id, exit::FAILED, &error.message),
            Ok(outcome) => {
                let ending = &outcome.ending;
                ResultRow {
                    status: ending.status,
                    reason: (ending.code != exit::DONE).then_some(ending.reason.as_str()),
                    result: outcome.result.clone(),
                    usage: outcome.usage,
                    cost: outcome.cost,
                    duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
                    session: outcome.session.as_deref(),
                    branch: outcome.branch.as_deref(),
                    ..self.fail(&id, ending.code, "")
                }
            }
        };
        if row.exit_code == exit::DONE {
            progress.done += 1;
        } else {
            progress.failed += 1;
        }
        writer.add(WrittenRow::New { at, line: row.write(), replaced });
    }

    fn tell(&self, progress: &mut MapProgress, running: usize) {
        let ended = progress.done + progress.failed + progress.kept;
        let waiting = self.runner.count_waiting();
        let tells = !self.is_quiet && !terminal::stderr_is_terminal();
        if tells && waiting > 0 && !std::mem::replace(&mut progress.has_waited, true) {
            note_progress("The server's limit is reached: requests wait, and go on more slowly.");
        }
        self.bar.set(ended, progress.read, &progress.describe(running, waiting));
        let is_due = progress.told.get_or_insert_with(Instant::now).elapsed() > BETWEEN;
        if is_due && tells {
            progress.told = Some(Instant::now());
            note_progress(&progress.describe(running, waiting));
        }
    }
}

/// The message of a task.
fn write_task(template: Option<&Template>, item: &Value) -> Result<Option<String>, String> {
    let Some(template) = template else { return Ok(None) };
    let context = convert_value(&serde_json::json!({ "item": item }));
    template.render(&context).map(Some).map_err(|error| error.to_string())
}

fn count_results(count: usize) -> String {
    text::count_noun(count as u64, "result", "results")
}
