//! A worker: takes tasks, holds their leases while they run, and hands in their results.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::queue::{ACK_WAIT, Delivery, TaskQueue};
use super::results::{Lease, ResultStore, TaskClaim, Written};
use super::{FinishedTask, QueuedTask, TaskChoices};
use crate::agent::Cancel;
use crate::agent::assembly::{MapRunner, MapTask, RunOptions, SinkOpener, TaskIsolation};
use crate::agent::exit;
use crate::base::digest::hash_sha256;
use crate::config::Config;
use crate::conversation::event::RunStatus;
use crate::conversation::session::Store;
use crate::files::private::make_private_dir;
use crate::files::workspace::Workspace;

/// How often the log of a session is looked at for lines to add, and how many looks a lease is held for at the longest.
const FOLLOW: Duration = Duration::from_secs(1);
const MOST_LOOKS: u64 = ACK_WAIT.as_secs() / 3;
/// The longest that an empty queue is waited for at a time, and so the longest until a signal is heeded.
const WAIT: Duration = Duration::from_secs(2);
/// After how long a task that cannot be begun is delivered again.
const LATER: Duration = Duration::from_secs(5);
/// The first and the longest time between two tries to reach what is gone.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How many workers may begin a task and end before it is done; then it is given up.
const MOST_BEGUN: i32 = 5;

/// The most agents that are kept for tasks to come.
const MOST_RUNNERS: usize = 64;

/// What a worker works with.
pub struct WorkerPlan {
    pub config: Arc<Config>,
    pub workspace: Workspace,
    /// What tasks that name nothing use.
    pub options: RunOptions,
    pub isolation: Option<TaskIsolation>,
    /// The most tasks at a time.
    pub jobs: usize,
    /// Where results and sessions are until they are handed in.
    pub spool: PathBuf,
    /// Opens what sees the events of a task.
    pub open_sink: Option<SinkOpener>,
    /// Tells a person that something is gone, or back.
    pub tell: fn(&str),
}

/// What a worker has done.
#[derive(Debug, Default)]
pub struct WorkerCounts {
    pub done: AtomicU64,
    pub failed: AtomicU64,
    /// Results that another worker had handed in, and tasks whose lease was lost.
    pub dropped: AtomicU64,
    pub running: AtomicU64,
}

/// A worker of a queue.
pub struct Worker {
    plan: WorkerPlan,
    name: String,
    pub queue: TaskQueue,
    pub results: ResultStore,
    runners: Mutex<HashMap<String, Arc<MapRunner>>>,
    pub counts: WorkerCounts,
    /// Takes no task any more.
    pub drain: Cancel,
    /// Gives running tasks back.
    pub cancel: Cancel,
}

/// A result that waits to be handed in, as a file.
#[derive(Serialize, Deserialize)]
struct SpooledResult {
    finished: FinishedTask,
    fence: i64,
}

impl Worker {
    /// A worker that is about to begin.
    ///
    /// # Errors
    /// The directory of its results cannot be made.
    pub fn new(plan: WorkerPlan, queue: TaskQueue, results: ResultStore) -> io::Result<Self> {
        make_private_dir(&plan.spool)?;
        let word: String = std::iter::repeat_with(fastrand::alphanumeric).take(8).collect();
        Ok(Self {
            plan,
            name: format!("{}-{word}", std::process::id()),
            queue,
            results,
            runners: Mutex::default(),
            counts: WorkerCounts::default(),
            drain: Cancel::default(),
            cancel: Cancel::default(),
        })
    }

    /// Works until it is drained, and until what it holds is handed in or given back.
    pub async fn work(self: &Arc<Self>) {
        self.hand_in_earlier().await;
        let slots = Arc::new(Semaphore::new(self.plan.jobs));
        let mut running = JoinSet::new();
        let mut pause = FIRST_PAUSE;
        while !self.drain.is_triggered() {
            let Some(permits) = self.wait_for_slots(&slots).await else { break };
            match self.queue.take(permits.len(), WAIT).await {
                Ok(taken) => {
                    pause = FIRST_PAUSE;
                    for (delivery, permit) in taken.into_iter().zip(permits) {
                        running.spawn(Arc::clone(self).carry(delivery, permit));
                    }
                }
                Err(why) => {
                    (self.plan.tell)(&why);
                    self.wait_a_while(&mut pause).await;
                }
            }
            while running.try_join_next().is_some() {}
        }
        while running.join_next().await.is_some() {}
        self.queue.flush().await;
    }

    /// At least one free slot; `None` once there is no more to take.
    async fn wait_for_slots(&self, slots: &Arc<Semaphore>) -> Option<Vec<OwnedSemaphorePermit>> {
        let first = tokio::select! {
            first = Arc::clone(slots).acquire_owned() => first.ok()?,
            () = self.drain.triggered() => return None,
        };
        let others = std::iter::from_fn(|| Arc::clone(slots).try_acquire_owned().ok());
        Some(std::iter::once(first).chain(others).collect())
    }

    async fn wait_a_while(&self, pause: &mut Duration) {
        tokio::select! {
            () = tokio::time::sleep(*pause) => {}
            () = self.cancel.triggered() => {}
        }
        *pause = (*pause * 2).min(LONGEST_PAUSE);
    }

    async fn carry(self: Arc<Self>, delivery: Delivery, _slot: OwnedSemaphorePermit) {
        if self.drain.is_triggered() {
            return delivery.give_back(Duration::ZERO).await;
        }
        let task = match &delivery.task {
            Ok(task) => task.clone(),
            Err(why) => {
                (self.plan.tell)(&format!("A message is no task, and lies with the dead: {why}"));
                // One that cannot be laid there is delivered again.
                if self.queue.bury(&delivery, why).await.is_ok() {
                    delivery.finish().await;
                }
                return;
            }
        };
        let Some(claim) = self.claim(&task, &delivery).await else {
            return delivery.give_back(LATER).await;
        };
        let (fence, begun) = match claim {
            TaskClaim::Held { fence, begun } => (fence, begun),
            TaskClaim::Taken if delivery.is_last => return self.give_up(&delivery).await,
            // If the other worker died, its lease ends about when the queue notices.
            TaskClaim::Taken => return delivery.give_back(Duration::from_secs(1)).await,
            TaskClaim::Finished(finished) => {
                self.counts.dropped.fetch_add(1, Ordering::Relaxed);
                if self.queue.report(&finished).await.is_ok() {
                    delivery.finish().await;
                }
                return;
            }
        };
        let lease = Lease { task: &task, fence };
        if begun > MOST_BEGUN {
            let why = format!("given up: {} workers began it, and ended before it was done", begun - 1);
            // Its result says it as well.
            let _ = self.queue.bury(&delivery, &why).await;
            let finished = FinishedTask::refuse(&task, &self.name, exit::FAILED, why);
            return self.hand_in(finished, &lease, &delivery).await;
        }
        self.counts.running.fetch_add(1, Ordering::Relaxed);
        let session = Arc::<OnceLock<String>>::default();
        let finished = tokio::select! {
            finished = self.run(&task, &session) => finished,
            () = self.hold(&lease, &delivery, &session) => {
                // Another worker has it: what ran here is stopped, and nothing is written.
                self.counts.dropped.fetch_add(1, Ordering::Relaxed);
                self.counts.running.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            () = self.cancel.triggered() => None,
        };
        match finished {
            Some(finished) => self.hand_in(finished, &lease, &delivery).await,
            None => {
                // A lease that is not given back runs out.
                if let Some(id) = session.get()
                    && self.results.renew(&lease, Some(id), 0, &self.read_log(id, 0)).await == Ok(true)
                {
                    let _ = self.sessions().delete(id);
                }
                let _ = self.results.release(&lease).await;
                delivery.give_back(Duration::ZERO).await;
            }
        }
        self.counts.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Asks for the lease of a task, and waits while the database is away; `None` once the worker is to end.
    async fn claim(&self, task: &QueuedTask, delivery: &Delivery) -> Option<TaskClaim> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.results.claim(task, &self.name).await {
                Ok(claim) => return Some(claim),
                Err(why) if pause == FIRST_PAUSE => (self.plan.tell)(&why),
                Err(_) => {}
            }
            if self.drain.is_triggered() {
                return None;
            }
            delivery.keep_alive().await;
            self.wait_a_while(&mut pause).await;
        }
    }

    /// Lays a message with the dead that is delivered for the last time.
    async fn give_up(&self, delivery: &Delivery) {
        if self.queue.bury(delivery, "delivered too often").await.is_ok() {
            delivery.finish().await;
        }
    }

    /// Holds a task until its lease is lost, and adds to the log of its session in the database. Without the database it is
    /// held on: its lines and its result will wait.
    async fn hold(&self, lease: &Lease<'_>, delivery: &Delivery, session: &OnceLock<String>) {
        let (mut sent, mut end) = (0, 0);
        for look in 1.. {
            tokio::time::sleep(FOLLOW).await;
            let id = session.get().map(String::as_str);
            let log = id.map(|id| self.read_log(id, end)).unwrap_or_default();
            let is_due = look % MOST_LOOKS == 0;
            if is_due || !log.is_empty() {
                match self.results.renew(lease, id, sent, &log).await {
                    Ok(true) => (sent, end) = (sent + log.lines().count(), end + log.len() as u64),
                    Ok(false) => return,
                    Err(_) => {}
                }
            }
            if is_due {
                delivery.keep_alive().await;
            }
        }
    }

    /// The whole lines that the log of a session has by now after so many bytes.
    fn read_log(&self, id: &str, after: u64) -> String {
        let read = || {
            let mut file = fs::File::open(self.sessions().find(id).ok()?).ok()?;
            file.seek(SeekFrom::Start(after)).ok()?;
            io::read_to_string(file).ok()
        };
        let mut log = read().unwrap_or_default();
        log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
        log
    }

    /// Runs a task; `None` if it was interrupted.
    async fn run(&self, task: &QueuedTask, session: &Arc<OnceLock<String>>) -> Option<FinishedTask> {
        let runner = match self.find_runner(&task.choices) {
            Ok(runner) => runner,
            Err(why) => return Some(FinishedTask::refuse(task, &self.name, exit::CONFIGURATION, why)),
        };
        let QueuedTask { said, item, skills, .. } = task.clone();
        let work = MapTask { said, item, skills, session: Arc::clone(session) };
        match runner.run(work).await {
            Ok(outcome) if outcome.ending.status == RunStatus::Interrupted => None,
            Ok(outcome) => Some(FinishedTask::of_outcome(task, &self.name, outcome)),
            Err(error) => Some(FinishedTask::refuse(task, &self.name, exit::FAILED, error.message)),
        }
    }

    /// The runner of tasks with these choices: they share an agent.
    fn find_runner(&self, choices: &TaskChoices) -> Result<Arc<MapRunner>, String> {
        let key = serde_json::to_string(choices).map_err(|error| error.to_string())?;
        let mut runners = self.runners.lock().expect("no holder of the runners panics");
        if let Some(runner) = runners.get(&key) {
            return Ok(Arc::clone(runner));
        }
        let plan = &self.plan;
        let options = choices.to_options(&plan.config, &plan.options)?;
        let store = Some(self.sessions());
        let mut runner = MapRunner::new(&plan.config, &plan.workspace, options, store, plan.isolation, None)
            .map_err(|error| error.message)?;
        runner.open_sink.clone_from(&plan.open_sink);
        let runner = Arc::new(runner);
        if runners.len() == MOST_RUNNERS {
            runners.clear();
        }
        runners.insert(key, Arc::clone(&runner));
        Ok(runner)
    }

    /// The sessions that are not handed in yet.
    fn sessions(&self) -> Store {
        Store::new(self.plan.spool.join("sessions"))
    }

    /// Hands a result in, and takes its task out of the queue. Until the database and the queue have it, it is in a file.
    async fn hand_in(&self, finished: FinishedTask, lease: &Lease<'_>, delivery: &Delivery) {
        let name = hash_sha256([finished.job.as_bytes(), b"\0", finished.id.as_bytes()]);
        let path = self.plan.spool.join(format!("{}.json", &name[..24]));
        let spooled = SpooledResult { finished, fence: lease.fence };
        let kept = serde_json::to_vec(&spooled).map_err(io::Error::from);
        if let Err(error) = kept.and_then(|bytes| fs::write(&path, bytes)) {
            (self.plan.tell)(&format!("{}: {error}", path.display()));
        }
        let mut pause = FIRST_PAUSE;
        let mut has_told = false;
        loop {
            match self.deliver(&spooled).await {
                Ok(written) => {
                    let counts = &self.counts;
                    let count = match (written, spooled.finished.exit_code) {
                        (Written::Known | Written::LeaseLost, _) => &counts.dropped,
                        (Written::Kept, exit::DONE) => &counts.done,
                        (Written::Kept, _) => &counts.failed,
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                    // It is in the database now.
                    let _ = fs::remove_file(&path);
                    // Whoever has the lease answers the queue.
                    if written != Written::LeaseLost {
                        delivery.finish().await;
                    }
                    return;
                }
                // The file is handed in by the next worker that starts here.
                Err(_) if self.cancel.is_triggered() => return delivery.give_back(Duration::ZERO).await,
                Err(why) => {
                    if !std::mem::replace(&mut has_told, true) {
                        (self.plan.tell)(&format!("{why}; the result waits in {}", path.display()));
                    }
                    delivery.keep_alive().await;
                    self.wait_a_while(&mut pause).await;
                }
            }
        }
    }

    /// Writes a result into the database, then into the stream of results.
    async fn deliver(&self, spooled: &SpooledResult) -> Result<Written, String> {
        let session = spooled.finished.session.as_deref();
        let log = session.map(|id| self.read_log(id, 0)).unwrap_or_default();
        let FinishedTask { job, id, .. } = &spooled.finished;
        let written = self.results.finish(&spooled.finished, spooled.fence, &log).await?;
        if written == Written::Kept {
            self.queue.report(&spooled.finished).await?;
        } else if let Some(kept) = self.results.find(job, id).await? {
            self.queue.report(&kept).await?;
        }
        if let Some(id) = session {
            // What stays takes room and nothing else.
            let _ = self.sessions().delete(id);
        }
        Ok(written)
    }

    /// Hands in what an earlier worker left here.
    async fn hand_in_earlier(&self) {
        let files = fs::read_dir(&self.plan.spool).into_iter().flatten().flatten();
        for path in files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "json"))
        {
            let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<SpooledResult>(&bytes).ok());
            let Some(spooled) = read else { continue };
            match self.deliver(&spooled).await {
                Ok(_) => drop(fs::remove_file(&path)),
                Err(why) => (self.plan.tell)(&format!("{}: {why}", path.display())),
            }
        }
    }
}
