//! Commands in the background: they continue after their call, and end with the run at the latest. An agent may take
//! over those of another one.
//!
//! Their output is redacted as it arrives and goes two ways: whole to the spill store, and as head and tail into
//! the unread output, so that memory is bounded. A separate task feeds both. Protected files are compared whenever
//! something else is about to change files, and when a command ends: changes by commands are undone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::base::{output::ToolError, secrets::Redactor, text};
use crate::safety::process::Leash;
use crate::safety::sandbox::{Protection, Walls};
use crate::safety::{Enclosure, Hold};
use crate::tools::CallContext;

use super::bounded::ShownText;
use super::confined::{Confined, describe_undone};
use super::input::CommandInput;
use super::work::{CommandWork, Unread, WorkEnd, lock_unread};
use crate::tools::bytes_for;

/// The most commands that run at the same time.
const MOST: usize = 8;

/// An agent's access to the background commands of a run.
#[derive(Default)]
pub struct Jobs {
    redactor: Arc<Redactor>,
    /// The reason that no command may be started.
    closed: OnceLock<&'static str>,
    /// Shared with the agent whose commands were taken over.
    table: Mutex<Arc<JobTable>>,
}

/// The background commands of a run. Dropping it kills them.
#[derive(Default)]
struct JobTable(Mutex<JobsState>);

#[derive(Default)]
struct JobsState {
    jobs: BTreeMap<String, BackgroundJob>,
    guard: Option<Protection>,
    /// The number of calls that are about to change files themselves.
    paused: usize,
    /// News for the next result.
    remarks: Vec<String>,
}

struct BackgroundJob {
    /// The command in one short line.
    command: String,
    started: Instant,
    leash: Arc<Leash>,
    input: CommandInput,
    /// The walls that there are; none where a person let it out of them.
    hold: Hold,
    output: Arc<Mutex<Unread>>,
    end: watch::Receiver<Option<WorkEnd>>,
    task: AbortHandle,
    walls: Option<Walls>,
    root: PathBuf,
    /// True if its end was already reported with another result.
    told: bool,
}

/// A command to start.
pub struct Start<'a> {
    pub command: &'a str,
    pub dir: &'a Path,
    /// The longest that it may run, if limited.
    pub lifetime: Option<Duration>,
}

/// The output and state of a command since the last look.
pub struct JobLook {
    pub command: String,
    pub shown: ShownText,
    pub running_for: Duration,
    /// `None` while it runs. A command whose end was read is forgotten.
    pub end: Option<WorkEnd>,
}

impl Jobs {
    /// Redacts the output with `redactor`.
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, ..Self::default() }
    }

    /// Takes over the commands of another agent, in place of its own.
    pub fn take_over(&self, earlier: &Self) {
        let table = earlier.table();
        *self.table.lock().expect("no holder of the table panics") = table;
    }

    /// Refuses to start commands from now on, for this reason.
    pub fn close(&self, why: &'static str) {
        self.closed.get_or_init(|| why);
    }

    /// Starts a command and returns its id.
    ///
    /// # Errors
    /// It may not be started, or cannot be confined.
    pub fn start(
        &self,
        confined: &Arc<Confined>,
        start: Start<'_>,
        context: &CallContext<'_>,
    ) -> Result<String, ToolError> {
        self.admit()?;
        let walls = confined.walls(context)?;
        if walls.is_some() {
            confined.tell_weakness(context);
        }
        let writer = context.spill.begin().map_err(|error| {
            ToolError::permanent(format!("what a background command writes cannot be kept: {error}"))
        })?;
        let id = writer.id().to_owned();
        let keep = bytes_for(context.max_tokens);
        let (output, leash) = (Arc::new(Mutex::new(Unread::new(keep, writer))), Arc::new(Leash::default()));
        let (ended, end) = watch::channel(None);
        let (input, reader) = CommandInput::open()
            .map_err(|error| ToolError::permanent(format!("its input cannot be opened: {error}")))?;
        let is_held = matches!(context.enclosure, Enclosure::Read | Enclosure::Write);
        let hold = if is_held { confined.hold() } else { Hold::Nothing };
        let work = CommandWork {
            confined: Arc::clone(confined),
            redactor: Arc::clone(&self.redactor),
            command: start.command.to_owned(),
            dir: start.dir.to_path_buf(),
            variables: context.variables.to_vec(),
            lifetime: start.lifetime,
            walls: walls.clone(),
            enclosure: context.enclosure,
            leash: Arc::clone(&leash),
            input: reader,
            output: Arc::clone(&output),
        };
        let job = |task| BackgroundJob {
            command: text::one_line(start.command, 80),
            started: Instant::now(),
            leash,
            input,
            hold,
            output,
            end,
            task,
            walls,
            root: context.workspace.root().to_path_buf(),
            told: false,
        };
        let table = self.table();
        let mut state = table.state();
        let kept = Arc::downgrade(&table);
        let task = tokio::spawn(async move {
            let end = work.run().await;
            if let Some(table) = kept.upgrade() {
                table.settle();
                ended.send_replace(Some(end));
                table.state().guard();
            }
        });
        state.jobs.insert(id.clone(), job(task.abort_handle()));
        // The call that starts it must not suspend watching it.
        let paused = std::mem::take(&mut state.paused);
        state.guard();
        state.paused = paused;
        Ok(id)
    }

    fn admit(&self) -> Result<(), ToolError> {
        if let Some(why) = self.closed.get() {
            return Err(ToolError::parameter(*why));
        }
        let table = self.table();
        let state = table.state();
        if state.list_running().count() >= MOST {
            let running = state.list_running().map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(", ");
            let why = format!("{MOST} commands run in the background already ({running}): stop one of them first");
            return Err(ToolError::parameter(why));
        }
        Ok(())
    }

    /// Waits until a command has ended, but at most `wait`; if `stop` is set, asks it to end first. Returns its
    /// output and state since the last look.
    ///
    /// # Errors
    /// There is no such command, or it does not end even when killed.
    pub async fn look(&self, id: &str, wait: Duration, stop: bool) -> Result<JobLook, ToolError> {
        let table = self.table();
        let (mut end, output) = {
            let state = table.state();
            let job = state.jobs.get(id).ok_or_else(|| state.refuse_unknown(id))?;
            if stop {
                job.leash.stop();
            }
            (job.end.clone(), Arc::clone(&job.output))
        };
        // Stopping has its own time limit, and fails if the command cannot be killed.
        let wait = if stop { Duration::MAX } else { wait };
        let _ = tokio::time::timeout(wait, end.wait_for(Option::is_some)).await;
        let end = end.borrow().clone();
        let shown = lock_unread(&output).read();
        let mut state = table.state();
        let job = state.jobs.get(id).ok_or_else(|| state.refuse_unknown(id))?;
        let (command, running_for) = (job.command.clone(), job.started.elapsed());
        if end.is_some() {
            state.jobs.remove(id);
        }
        Ok(JobLook { command, shown, running_for, end })
    }

    /// Gives a running command something to read; an empty text ends its input.
    ///
    /// # Errors
    /// There is no such command, it has ended, or it does not read.
    pub async fn give_input(&self, id: &str, text: &str) -> Result<(), ToolError> {
        let input = {
            let table = self.table();
            let state = table.state();
            let job = state.jobs.get(id).ok_or_else(|| state.refuse_unknown(id))?;
            if !job.is_running() {
                return Err(ToolError::parameter(format!("{id} has ended, so it reads nothing more")));
            }
            job.input.clone()
        };
        input.write(text).await
    }

    /// The command with this id in one short line, and the walls around it.
    pub fn find(&self, id: &str) -> Option<(String, Hold)> {
        let table = self.table();
        let state = table.state();
        state.jobs.get(id).map(|job| (job.command.clone(), job.hold))
    }

    /// True if the command with this id was there and has ended.
    pub fn has_ended(&self, id: &str) -> bool {
        self.table().state().jobs.get(id).is_some_and(|job| !job.is_running())
    }

    /// News since the last call: commands that ended by themselves, and files that were restored.
    pub fn news(&self) -> Vec<String> {
        let table = self.table();
        let mut state = table.state();
        let mut news = std::mem::take(&mut state.remarks);
        for (id, job) in &mut state.jobs {
            if let Some(end) = job.end.borrow().as_ref().filter(|_| !job.told) {
                job.told = true;
                news.push(format!("{id} in the background: {}; `background` reads the rest", end.describe()));
            }
        }
        news
    }

    /// Kills all running commands; returns their descriptions.
    pub fn end_all(&self) -> Vec<String> {
        self.table().end_all()
    }

    /// True if there are commands whose end was not read yet.
    pub fn are_running(&self) -> bool {
        !self.table().state().jobs.is_empty()
    }

    /// Pauses undoing while a call changes files itself; earlier changes by background commands are undone first.
    pub fn pause_guard(&self) -> Paused {
        let table = self.table();
        table.settle();
        table.state().paused += 1;
        Paused(table)
    }

    fn table(&self) -> Arc<JobTable> {
        Arc::clone(&self.table.lock().expect("no holder of the table panics"))
    }
}

impl JobTable {
    fn end_all(&self) -> Vec<String> {
        let (jobs, guard) = {
            let mut state = self.state();
            (std::mem::take(&mut state.jobs), state.guard.take())
        };
        let mut ended = Vec::new();
        for (id, job) in jobs {
            job.leash.kill();
            job.task.abort();
            if job.is_running() {
                ended.push(format!("{id} `{}`", job.command));
            }
        }
        // Dropped after the commands that might have changed something.
        drop(guard);
        ended
    }

    fn settle(&self) {
        let Some(guard) = self.state().guard.take() else { return };
        let undone = guard.end();
        self.state().remarks.extend(describe_undone(&undone));
    }

    fn state(&self) -> MutexGuard<'_, JobsState> {
        self.0.lock().expect("no holder of the jobs panics")
    }
}

/// Dropping it resumes watching, with the state of the files at that time as the one to keep.
pub struct Paused(Arc<JobTable>);

impl Drop for Paused {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.paused -= 1;
        state.guard();
    }
}

impl Drop for JobTable {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl JobsState {
    fn list_running(&self) -> impl Iterator<Item = (&String, &BackgroundJob)> {
        self.jobs.iter().filter(|(_, job)| job.is_running())
    }

    fn guard(&mut self) {
        if self.guard.is_some() || self.paused > 0 {
            return;
        }
        let confined = self.list_running().find_map(|(_, job)| Some((job.walls.clone()?, job.root.clone())));
        self.guard = confined.map(|(walls, root)| Protection::begin(&walls, &root));
    }

    fn refuse_unknown(&self, id: &str) -> ToolError {
        let known: Vec<&str> = self.jobs.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let id = text::one_line(id, 40);
        ToolError::parameter(format!("There is no background command `{id}` (there are: {known})."))
    }
}

impl BackgroundJob {
    fn is_running(&self) -> bool {
        self.end.borrow().is_none()
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use serde_json::json;

    use super::*;
    use crate::safety::net::Proxies;
    use crate::tools::Tool;
    use crate::tools::background::Background;
    use crate::tools::run_command::RunCommand;
    use crate::tools::testing::Place;

    #[test]
    fn none_survives_a_panic() {
        let place = Place::new();
        let fifo = place.path("alive");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO can be made");
        let read = std::thread::spawn(move || std::fs::read_to_string(fifo).expect("the FIFO can be read"));
        let confined =
            Confined::new(vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())], None, Proxies::default());
        let tool = RunCommand::new(confined, Arc::default());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let live = |_: &str| panic!("in the middle of the call");
            let command = "trap '' TERM; exec 3>alive; echo up >&3; echo up; sleep 600 & sleep 600";
            place.watched(&tool, json!({ "command": command, "background": true }), &live)
        }));
        assert!(outcome.is_err());
        // The FIFO ends with its last holder.
        assert_eq!(read.join().expect("it is read to its end"), "up\n");
        drop(tool);
    }

    #[test]
    fn a_flood_that_nobody_reads_is_bounded() {
        let place = Place { max_tokens: 500, ..Place::new() };
        let jobs = Arc::new(Jobs::default());
        let confined =
            Confined::new(vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())], None, Proxies::default());
        let tool = RunCommand::new(confined, Arc::clone(&jobs));
        // It waits for a line: a call that finds it ended already forgets it.
        let command = "head -c 30000000 /dev/zero | tr '\\0' x; echo; read line; echo end";
        let background = Background::new(jobs);
        let calls: Vec<(&dyn Tool, _)> = vec![
            (&tool, json!({ "command": command, "background": true })),
            (&background, json!({ "id": "r1", "input": "go\n", "wait": 60 })),
        ];
        for output in place.one_after_another(calls) {
            let output = output.expect("it can be run");
            assert!(output.observation.len() <= 2100, "{}", output.observation.len());
        }
        let kept = std::fs::read(place.spill.path("r1").expect("it is kept")).expect("a file");
        assert!(kept.starts_with(b"xxx"));
    }

    #[test]
    fn there_are_so_many_and_no_more() {
        let place = Place { timeout: Duration::from_millis(1), ..Place::new() };
        let tool = RunCommand::new(Confined::new(Vec::new(), None, Proxies::default()), Arc::default());
        let start = || place.call(&tool, json!({ "command": "sleep 600", "background": true }));
        for number in 1..=MOST {
            assert_eq!(start().expect("there is room").result["id"], json!(format!("r{number}")));
        }
        let refused = start().expect_err("there is none").message;
        assert!(refused.starts_with("8 commands run in the background already (r1, r2,"), "{refused}");
    }
}
