//! Many tasks, each a run of its own. They share one limiter of requests, one account, and without isolation one agent.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::agent::exit::Ending;
use crate::agent::limits::ReachedLimit;
use crate::agent::window::Ruler;
use crate::agent::{Agent, Cancel, Conversation, Emitter, Run, RunInput, TurnStop, UnfinishedWork, run_input};
use crate::base::output::ToolError;
use crate::config::Config;
use crate::conversation::EventSink;
use crate::conversation::event::Event;
use crate::conversation::message::{Usage, UserText};
use crate::conversation::session::{Session, Store};
use crate::files::workspace::Workspace;
use crate::model::ledger::{RunLedger, SpendingBounds, SpendingRefusal};
use crate::safety::Nobody;

use super::ground::AgentInputs;
use super::paced::{Gate, Paced};
use super::sessions::describe_session;
use super::task::Worktree;
use super::trial::{RunPlace, keep_trial, require_history};
use super::{RunOptions, SetupError, assemble_services, new_run_id};

/// The variable of prompts that holds the item of a task.
const ITEM: &str = "item";

/// Runs tasks.
pub struct MapRunner {
    config: Arc<Config>,
    workspace: Workspace,
    options: RunOptions,
    /// `None` if no session is kept.
    store: Option<Store>,
    isolation: Option<TaskIsolation>,
    gate: Gate,
    /// What all tasks together may spend.
    ledger: Option<RunLedger>,
    /// The agent of all tasks, where they share one.
    shared: Option<Arc<Agent>>,
    /// The sizes of what all tasks begin with, once one has ended.
    ruler: OnceLock<Box<Ruler>>,
    /// What killed runs left, and the worktrees of tasks that could not begin.
    unfinished: Arc<UnfinishedWork>,
    /// What the first assembly warned of.
    pub warnings: Vec<String>,
    /// Opens what sees the events of one task; `None`: nothing does.
    pub open_sink: Option<SinkOpener>,
    /// Stops every task.
    pub cancel: Cancel,
}

/// Opens a sink for the events of one task.
pub type SinkOpener = Arc<dyn Fn() -> Box<dyn EventSink> + Send + Sync>;

/// The directory in which each task may change files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskIsolation {
    /// A git worktree; its changes are kept as a branch.
    Worktree,
    /// A copy that goes with the task.
    Copy,
    /// A copy that is kept until its changes are applied or discarded.
    Trial,
}

/// The directory of a running task.
enum TaskPlace {
    Shared,
    Worktree(Worktree, Workspace),
    Copy(RunPlace),
}

/// One task.
#[derive(Default)]
pub struct MapTask {
    /// `None` if the messages of the prompt ask for themselves.
    pub said: Option<String>,
    /// What prompts read as `vars.item`.
    pub item: Value,
    pub skills: Vec<String>,
    /// Set to the id of its session as soon as that is kept.
    pub session: Arc<OnceLock<String>>,
}

/// The end of one task.
pub struct MapOutcome {
    pub ending: Ending,
    /// The answer: data with a schema, else text; null without one.
    pub result: Value,
    pub usage: Usage,
    /// USD; `None` if that of a part is unknown.
    pub cost: Option<f64>,
    pub duration: Duration,
    pub session: Option<String>,
    /// The branch with its changes, if it was isolated and made some.
    pub branch: Option<String>,
    /// True if what all tasks together may spend left nothing for it.
    pub is_unfunded: bool,
}

impl MapRunner {
    /// Prepares to run tasks, each in a directory of its own where `isolation` says so. `most_usd` is what all together
    /// may cost.
    ///
    /// # Errors
    /// No agent can be assembled.
    pub fn new(
        config: &Arc<Config>,
        workspace: &Workspace,
        options: RunOptions,
        store: Option<Store>,
        isolation: Option<TaskIsolation>,
        most_usd: Option<f64>,
    ) -> Result<Self, SetupError> {
        let needs_repository = isolation == Some(TaskIsolation::Worktree);
        if let Some(why) = needs_repository.then(|| Worktree::find_obstacle(workspace)).flatten() {
            return Err(SetupError::usage(format!("--isolate worktree: {why}, or take --isolate copy")));
        }
        let ledger = most_usd.map(|usd| {
            let ledger = RunLedger::default();
            ledger.bind(SpendingBounds { usd: Some(usd), ..SpendingBounds::default() });
            ledger
        });
        let mut runner = Self {
            config: Arc::clone(config),
            workspace: workspace.clone(),
            options,
            store,
            isolation,
            gate: Gate::default(),
            ledger,
            shared: None,
            ruler: OnceLock::new(),
            unfinished: Arc::default(),
            warnings: Vec::new(),
            open_sink: None,
            cancel: Cancel::default(),
        };
        let (agent, warnings) = runner.assemble(workspace, None)?;
        runner.warnings = warnings;
        runner.unfinished = Arc::clone(&agent.unfinished);
        // Prompts may read the item, and their agent holds what they read.
        runner.shared = (isolation.is_none() && runner.options.prompt.is_none()).then(|| Arc::new(agent));
        Ok(runner)
    }

    /// Returns once a first request was answered.
    pub async fn first_answer(&self) {
        self.gate.first_answer().await;
    }

    /// Does what killed runs and these tasks left to be done. Returns the lines for the person.
    pub async fn finish_left_work(&self) -> Vec<String> {
        self.unfinished.finish().await
    }

    /// The number of tasks whose request waits for the server's limit.
    pub fn count_waiting(&self) -> usize {
        self.gate.count_waiting()
    }

    /// True if all tasks together have spent what they may.
    pub fn is_exhausted(&self) -> bool {
        self.find_refusal().is_some()
    }

    /// The limit of all tasks together that leaves no room for a request, if there is one.
    fn find_refusal(&self) -> Option<SpendingRefusal> {
        let ledger = self.ledger.as_ref()?;
        ledger.find_exhausted().or_else(|| ledger.find_refused())
    }

    /// True if that limit ended a task.
    fn has_stopped(&self, stop: &TurnStop) -> bool {
        let TurnStop::Limit(ReachedLimit::Spending(refusal)) = stop else { return false };
        self.find_refusal().is_some_and(|own| own.limit == refusal.limit)
    }

    fn assemble(&self, workspace: &Workspace, item: Option<Value>) -> Result<(Agent, Vec<String>), SetupError> {
        let services = assemble_services(&self.config, workspace, &self.options, Arc::new(Nobody))?;
        let mut agent = services.agent;
        agent.model = Arc::new(Paced { model: Arc::clone(&agent.model), gate: self.gate.clone() });
        if self.ledger.is_some() {
            // It is that of all together, not of each.
            agent.limits.max_cost = None;
        }
        if let Some(item) = item {
            agent.briefing.facts.vars.insert(ITEM.to_owned(), item);
        }
        Ok((agent, services.warnings))
    }

    /// Runs one task to its end.
    ///
    /// # Errors
    /// Its agent or its directory cannot be made.
    pub async fn run(&self, task: MapTask) -> Result<MapOutcome, SetupError> {
        let MapTask { said, item, skills, session: known_session } = task;
        let place = self.make_place().await?;
        let workspace = match &place {
            TaskPlace::Shared => &self.workspace,
            TaskPlace::Worktree(_, workspace) | TaskPlace::Copy(RunPlace { workspace, .. }) => workspace,
        };
        let agent = match &self.shared {
            Some(shared) => Arc::clone(shared),
            None => Arc::new(self.assemble(workspace, Some(item))?.0),
        };
        let now = Timestamp::now();
        let about = describe_session(&agent, self.workspace.root());
        let session = match &self.store {
            Some(store) => store.create(about, now),
            None => Session::ephemeral(about, now),
        };
        let mut conversation = Conversation::new(session, now);
        conversation.ruler = self.ruler.get().map_or_else(Ruler::default, |known| Ruler::clone(known));
        let is_trial = self.isolation == Some(TaskIsolation::Trial);
        if is_trial {
            require_history(&conversation)?;
        }
        let id = conversation.session.id().to_owned();
        if self.store.is_some() {
            let _ = known_session.set(id.clone());
        }
        let sink =
            self.open_sink.as_ref().map_or_else(|| Box::new(Unwatched) as Box<dyn EventSink>, |open| open());
        let mut run = Run::new(Emitter::new(id, new_run_id(), sink));
        if let Some(ledger) = &self.ledger {
            run.ledger = ledger.open_below();
        }
        let input = RunInput { said: said.map(UserText::by_person), skills, ..RunInput::default() };
        let end = Box::pin(run_input(&agent, &mut conversation, &mut run, input, &self.cancel)).await;
        self.ruler.get_or_init(|| Box::new(conversation.ruler.begin_alike()));
        let mut is_unfunded = false;
        let (ending, result) = match end {
            Ok(end) => {
                is_unfunded = self.has_stopped(&end.stop);
                let is_answer = matches!(end.stop, TurnStop::Answered);
                let result = match &agent.schema {
                    Some(_) if is_answer => serde_json::from_str(&end.answer).unwrap_or_default(),
                    Some(_) => Value::Null,
                    None if end.answer.is_empty() => Value::Null,
                    None => Value::String(end.answer),
                };
                (end.ending, result)
            }
            Err(refused) => (refused, Value::Null),
        };
        let branch = match place {
            TaskPlace::Worktree(worktree, _) => worktree.keep().await.map_err(refuse_isolation)?,
            TaskPlace::Copy(RunPlace { copy: Some(copy), .. }) if is_trial => {
                keep_trial(copy, &conversation)?;
                None
            }
            TaskPlace::Copy(_) | TaskPlace::Shared => None,
        };
        let spent = run.ledger.spent();
        Ok(MapOutcome {
            ending,
            result,
            usage: spent.usage,
            cost: spent.cost.usd(),
            duration: run.ledger.elapsed(),
            session: conversation.session.path().map(|_| conversation.session.id().to_owned()),
            branch,
            is_unfunded,
        })
    }

    async fn make_place(&self) -> Result<TaskPlace, SetupError> {
        match self.isolation {
            None => Ok(TaskPlace::Shared),
            Some(TaskIsolation::Worktree) => {
                let mut ground = AgentInputs::new(&self.config, &self.workspace, &self.options, Arc::new(Nobody));
                ground.unfinished = Arc::clone(&self.unfinished);
                let worktree = Worktree::add(&ground, "map").await.map_err(refuse_isolation)?;
                let workspace = worktree.workspace(&self.workspace).map_err(refuse_isolation)?;
                Ok(TaskPlace::Worktree(worktree, workspace))
            }
            Some(TaskIsolation::Copy | TaskIsolation::Trial) => {
                let (config, workspace) = (Arc::clone(&self.config), self.workspace.clone());
                let copied = tokio::task::spawn_blocking(move || RunPlace::copied(&config, &workspace)).await;
                copied.map_err(SetupError::from_failure)?.map(TaskPlace::Copy)
            }
        }
    }
}

/// Nobody watches the events of a task.
struct Unwatched;

impl EventSink for Unwatched {
    fn emit(&mut self, _: &Event) -> io::Result<()> {
        Ok(())
    }
}

fn refuse_isolation(error: ToolError) -> SetupError {
    SetupError::usage(error.message)
}
