//! Commands in the background: they go on after their call, and end with the run at the latest.
//!
//! What one writes is redacted as it comes and goes two ways: to the spill store, whole, and into head and tail of what
//! nobody has read yet, so that memory is bounded. A task of its own feeds both. Files that no command may change are
//! compared whenever something else is about to change files, and when a command ends: what was changed is put back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::config::{Redacting, Redactor};
use crate::contract::CallContext;
use crate::output::ToolError;
use crate::process::{Cut, Ended, Exit, Leash, Patience, SHELL};
use crate::sandbox::{Protection, Walls};
use crate::spill::{Spill, Writer};
use crate::text;

use super::bounded::{Bounded, Shown};
use super::bytes_for;
use super::confined::{Confined, Order, put_back};
use super::plain::Plain;

/// More commands than these do not run at the same time.
const MOST: usize = 8;
/// How much of the room of a reading goes to its head.
const HEAD_PERCENT: usize = 30;

/// The commands of a run that go on in the background. Dropping it kills them.
#[derive(Default)]
pub struct Jobs {
    spill: Arc<Spill>,
    redactor: Arc<Redactor>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    jobs: BTreeMap<String, Job>,
    /// Why no command may be started.
    closed: Option<&'static str>,
    guard: Option<Protection>,
    /// How many calls are about to change files on their own account.
    paused: usize,
    /// What is to be told with the next result.
    remarks: Vec<String>,
}

struct Job {
    /// In one short line.
    command: String,
    started: Instant,
    leash: Arc<Leash>,
    output: Arc<Mutex<Unread>>,
    end: watch::Receiver<Option<End>>,
    task: AbortHandle,
    walls: Option<Walls>,
    root: PathBuf,
    /// Its end was told, in passing.
    told: bool,
}

/// How a command ended.
#[derive(Debug, Clone)]
pub struct End {
    pub outcome: Result<Ended, ToolError>,
    /// How long it ran.
    pub after: Duration,
    /// Why the sandbox may be the reason.
    pub denied: Option<String>,
}

/// Output that nobody has read.
struct Unread {
    keep: usize,
    text: Bounded<'static>,
    writer: Option<Writer>,
}

/// What to start.
pub struct Start<'a> {
    pub command: &'a str,
    pub dir: &'a Path,
    /// The longest that it may run, if there is such a time.
    pub lifetime: Option<Duration>,
}

/// What a command has done since it was last looked at.
pub struct Look {
    pub command: String,
    pub shown: Shown,
    pub running_for: Duration,
    /// None while it runs. A command whose end was seen is forgotten.
    pub end: Option<End>,
}

impl Jobs {
    /// Keeps the output in `spill`, without what `redactor` takes out.
    #[must_use]
    pub fn new(spill: Arc<Spill>, redactor: Arc<Redactor>) -> Self {
        Self { spill, redactor, state: Mutex::default() }
    }

    /// From now on nothing is started, for this reason.
    pub fn close(&self, why: &'static str) {
        self.state().closed = Some(why);
    }

    /// Starts a command and gives its id.
    ///
    /// # Errors
    /// When it may not be started, or cannot be confined.
    pub fn start(
        self: &Arc<Self>,
        confined: &Arc<Confined>,
        start: Start<'_>,
        context: &CallContext<'_>,
    ) -> Result<String, ToolError> {
        self.admit()?;
        let walls = confined.walls(context.unconfined)?;
        let writer = self.spill.begin().map_err(|error| {
            ToolError::permanent(format!("what a background command writes cannot be kept: {error}"))
        })?;
        let id = writer.id().to_owned();
        let keep = bytes_for(context.max_tokens);
        let output = Unread { keep, text: Bounded::new(keep, None), writer: Some(writer) };
        let (output, leash) = (Arc::new(Mutex::new(output)), Arc::new(Leash::default()));
        let (ended, end) = watch::channel(None);
        let work = Work {
            confined: Arc::clone(confined),
            redactor: Arc::clone(&self.redactor),
            command: start.command.to_owned(),
            dir: start.dir.to_path_buf(),
            lifetime: start.lifetime,
            walls: walls.clone(),
            leash: Arc::clone(&leash),
            output: Arc::clone(&output),
        };
        let job = |task| Job {
            command: text::one_line(start.command, 80),
            started: Instant::now(),
            leash,
            output,
            end,
            task,
            walls,
            root: context.workspace.root().to_path_buf(),
            told: false,
        };
        let mut state = self.state();
        let jobs = Arc::downgrade(self);
        let task = tokio::spawn(async move {
            let end = work.run().await;
            if let Some(jobs) = jobs.upgrade() {
                jobs.settle();
                ended.send_replace(Some(end));
                jobs.state().guard();
            }
        });
        state.jobs.insert(id.clone(), job(task.abort_handle()));
        // The call that starts it is no reason to look away from it.
        let paused = std::mem::take(&mut state.paused);
        state.guard();
        state.paused = paused;
        Ok(id)
    }

    fn admit(&self) -> Result<(), ToolError> {
        let state = self.state();
        if let Some(why) = state.closed {
            return Err(ToolError::parameter(why));
        }
        if state.running().count() >= MOST {
            let running = state.running().map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(", ");
            let why = format!("{MOST} commands run in the background already ({running}): stop one of them first");
            return Err(ToolError::parameter(why));
        }
        Ok(())
    }

    /// Waits until a command has ended, for so long at most; asks it to end first if `stop` says so. Then what it has
    /// done since the last look.
    ///
    /// # Errors
    /// When there is no such command, or it does not end though it was killed.
    pub async fn look(&self, id: &str, wait: Duration, stop: bool) -> Result<Look, ToolError> {
        let (mut end, output) = {
            let state = self.state();
            let job = state.jobs.get(id).ok_or_else(|| state.unknown(id))?;
            if stop {
                job.leash.stop();
            }
            (job.end.clone(), Arc::clone(&job.output))
        };
        // It keeps its own time, and says so when it cannot be killed.
        let wait = if stop { Duration::MAX } else { wait };
        let _ = tokio::time::timeout(wait, end.wait_for(Option::is_some)).await;
        let end = end.borrow().clone();
        let shown = unread(&output).read(id);
        let mut state = self.state();
        let job = state.jobs.get(id).ok_or_else(|| state.unknown(id))?;
        let (command, running_for) = (job.command.clone(), job.started.elapsed());
        if end.is_some() {
            state.jobs.remove(id);
        }
        Ok(Look { command, shown, running_for, end })
    }

    /// What is to be told in passing: which commands ended by themselves, and what had to be put back.
    #[must_use]
    pub fn news(&self) -> Vec<String> {
        let mut state = self.state();
        let mut news = std::mem::take(&mut state.remarks);
        for (id, job) in &mut state.jobs {
            if let Some(end) = job.end.borrow().as_ref().filter(|_| !job.told) {
                job.told = true;
                news.push(format!("{id} in the background: {}; `background` reads the rest", end.told()));
            }
        }
        news
    }

    /// Kills everything that runs; what it was.
    pub fn end_all(&self) -> Vec<String> {
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
        // After those who might have changed something.
        drop(guard);
        ended
    }

    /// While a call changes files on its own account, nothing is put back; what background commands changed before is.
    pub fn pause_guard(&self) -> Paused<'_> {
        self.settle();
        self.state().paused += 1;
        Paused(self)
    }

    fn settle(&self) {
        let Some(guard) = self.state().guard.take() else { return };
        let undone = guard.end();
        self.state().remarks.extend(put_back(&undone));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the jobs panics")
    }
}

/// Dropping it begins to watch again: what is there by then is what has to stay.
pub struct Paused<'a>(&'a Jobs);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.paused -= 1;
        state.guard();
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl State {
    fn running(&self) -> impl Iterator<Item = (&String, &Job)> {
        self.jobs.iter().filter(|(_, job)| job.is_running())
    }

    fn guard(&mut self) {
        if self.guard.is_some() || self.paused > 0 {
            return;
        }
        let confined = self.running().find_map(|(_, job)| Some((job.walls.clone()?, job.root.clone())));
        self.guard = confined.map(|(walls, root)| Protection::begin(&walls, &root));
    }

    fn unknown(&self, id: &str) -> ToolError {
        let known: Vec<&str> = self.jobs.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let id = text::one_line(id, 40);
        ToolError::parameter(format!("There is no background command `{id}` (there are: {known})."))
    }
}

impl Job {
    fn is_running(&self) -> bool {
        self.end.borrow().is_none()
    }
}

impl End {
    /// `exit 1 after 3 s`
    #[must_use]
    pub fn told(&self) -> String {
        let after = self.after.as_secs();
        match &self.outcome {
            Ok(Ended { cut: Some(Cut::Asked), .. }) => format!("stopped after {after} s"),
            Ok(Ended { cut: Some(_), .. }) => format!("timed out after {after} s"),
            Ok(Ended { exit: Exit::Code(code), .. }) => format!("exit {code} after {after} s"),
            Ok(Ended { exit: Exit::Signal(name), .. }) => format!("killed by {name} after {after} s"),
            Err(error) => format!("failed: {error}"),
        }
    }
}

/// A command and where its output goes.
struct Work {
    confined: Arc<Confined>,
    redactor: Arc<Redactor>,
    command: String,
    dir: PathBuf,
    lifetime: Option<Duration>,
    walls: Option<Walls>,
    leash: Arc<Leash>,
    output: Arc<Mutex<Unread>>,
}

impl Work {
    async fn run(self) -> End {
        let started = Instant::now();
        let (mut plain, mut redacting) = (Plain::default(), Redacting::new(&self.redactor));
        let mut piece = String::new();
        let mut take = |piece: &mut String| {
            if !piece.is_empty() {
                unread(&self.output).push(&redacting.push(piece));
                piece.clear();
            }
        };
        let arguments = [SHELL[1], &self.command];
        let patience = Patience { call: self.lifetime, leash: Some(&self.leash), ..Patience::default() };
        let order = Order { program: SHELL[0], arguments: &arguments, dir: &self.dir, patience };
        let heard = |bytes: &[u8]| {
            plain.push(bytes, &mut piece);
            take(&mut piece);
        };
        let outcome = self.confined.run_within(self.walls.as_ref(), order, heard).await;
        plain.finish(&mut piece);
        take(&mut piece);
        let denied = match (&outcome, &self.walls) {
            (Ok(ended), Some(_)) => self.confined.denied(ended, unread(&self.output).text.tail()),
            _ => None,
        };
        End { outcome, after: started.elapsed(), denied }
    }
}

fn unread(output: &Mutex<Unread>) -> MutexGuard<'_, Unread> {
    output.lock().expect("no holder of the output panics")
}

impl Unread {
    fn push(&mut self, text: &str) {
        self.text.push(text);
        // A disk that is full is no reason to lose what is shown.
        if self.writer.as_mut().is_some_and(|writer| writer.write(text.as_bytes()).is_err()) {
            self.writer = None;
        }
    }

    fn read(&mut self, id: &str) -> Shown {
        let kept = self.writer.is_some().then(|| id.to_owned());
        std::mem::replace(&mut self.text, Bounded::new(self.keep, None)).show_kept(HEAD_PERCENT, kept)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use serde_json::json;

    use super::super::run_command::RunCommand;
    use super::super::testing::Place;
    use super::*;

    #[test]
    fn none_survives_a_panic() {
        let place = Place::new();
        let fifo = place.path("alive");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO can be made");
        let read = std::thread::spawn(move || std::fs::read_to_string(fifo).expect("the FIFO can be read"));
        let confined = Confined::new(vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())], None);
        let tool = RunCommand::new(confined, Arc::default());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let live = |_: &str| panic!("in the middle of the call");
            let command = "trap '' TERM; exec 3>alive; echo up >&3; echo up; sleep 600 & sleep 600";
            place.watched(&tool, json!({ "command": command, "background": true }), &live)
        }));
        assert!(outcome.is_err());
        // The FIFO ends with the last who holds it.
        assert_eq!(read.join().expect("it is read to its end"), "up\n");
        drop(tool);
    }

    #[test]
    fn a_flood_that_nobody_reads_is_bounded() {
        let place = Place { max_tokens: 500, ..Place::new() };
        let jobs = Arc::new(Jobs::default());
        let confined = Confined::new(vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())], None);
        let tool = RunCommand::new(confined, Arc::clone(&jobs));
        let command = "head -c 30000000 /dev/zero | tr '\\0' x; echo; echo end";
        let output = place.call(&tool, json!({ "command": command, "background": true })).expect("it can be run");
        assert!(output.observation.len() <= 2100, "{}", output.observation.len());
        let id = output.result["id"].as_str().expect("an id").to_owned();
        assert!(jobs.spill.read(&id, 1, 1, 100).expect("it is kept").text.starts_with("xxx"));
    }

    #[test]
    fn there_are_so_many_and_no_more() {
        let place = Place { timeout: Duration::from_millis(1), ..Place::new() };
        let tool = RunCommand::new(Confined::new(Vec::new(), None), Arc::default());
        let start = || place.call(&tool, json!({ "command": "sleep 600", "background": true }));
        for number in 1..=MOST {
            assert_eq!(start().expect("there is room").result["id"], json!(format!("r{number}")));
        }
        let refused = start().expect_err("there is none").message;
        assert!(refused.starts_with("8 commands run in the background already (r1, r2,"), "{refused}");
    }
}
