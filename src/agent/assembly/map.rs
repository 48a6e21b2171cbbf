//! Many tasks, each a run of its own. They share one limiter of requests, one account, and without isolation one agent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::exit::Ending;
use crate::agent::{Agent, Cancel, Conversation, Emitter, Run, RunInput, TurnStop, run_input};
use crate::base::output::ToolError;
use crate::config::Config;
use crate::conversation::EventSink;
use crate::conversation::event::Event;
use crate::conversation::message::{Usage, UserText};
use crate::conversation::session::{Session, Store};
use crate::files::workspace::Workspace;
use crate::model::ledger::{RunLedger, SpendingBounds};
use crate::safety::Nobody;

use super::ground::AgentInputs;
use super::paced::{Gate, Paced};
use super::sessions::describe_session;
use super::task::Worktree;
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
    is_isolated: bool,
    gate: Gate,
    /// What all tasks together may spend.
    ledger: Option<RunLedger>,
    /// The agent of all tasks, where they share one.
    shared: Option<Arc<Agent>>,
    /// What the first assembly warned of.
    pub warnings: Vec<String>,
    /// Stops every task.
    pub cancel: Cancel,
}

/// One task.
pub struct MapTask {
    /// `None` if the messages of the prompt ask for themselves.
    pub said: Option<String>,
    /// What prompts read as `vars.item`.
    pub item: Value,
    pub skills: Vec<String>,
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
}

impl MapRunner {
    /// Prepares to run tasks; with `is_isolated` each works in a git worktree of its own. `most_usd` is what all together
    /// may cost.
    ///
    /// # Errors
    /// No agent can be assembled.
    pub fn new(
        config: &Arc<Config>,
        workspace: &Workspace,
        options: RunOptions,
        store: Option<Store>,
        is_isolated: bool,
        most_usd: Option<f64>,
    ) -> Result<Self, SetupError> {
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
            is_isolated,
            gate: Gate::default(),
            ledger,
            shared: None,
            warnings: Vec::new(),
            cancel: Cancel::default(),
        };
        let (agent, warnings) = runner.assemble(workspace, None)?;
        runner.warnings = warnings;
        // Prompts may read the item, and their agent holds what they read.
        runner.shared = (!is_isolated && runner.options.prompt.is_none()).then(|| Arc::new(agent));
        Ok(runner)
    }

    /// Returns once a first request was answered.
    pub async fn first_answer(&self) {
        self.gate.first_answer().await;
    }

    /// True if all tasks together have spent what they may.
    pub fn is_exhausted(&self) -> bool {
        self.ledger.as_ref().is_some_and(|ledger| ledger.find_exhausted().is_some())
    }

    fn assemble(&self, workspace: &Workspace, item: Option<Value>) -> Result<(Agent, Vec<String>), SetupError> {
        let services = assemble_services(&self.config, workspace, &self.options, Arc::new(Nobody))?;
        let mut agent = services.agent;
        agent.model = Arc::new(Paced { model: Arc::clone(&agent.model), gate: self.gate.clone() });
        if let Some(item) = item {
            agent.briefing.facts.vars.insert(ITEM.to_owned(), item);
        }
        Ok((agent, services.warnings))
    }

    /// Runs one task to its end.
    ///
    /// # Errors
    /// Its agent or its worktree cannot be made.
    pub async fn run(&self, task: MapTask) -> Result<MapOutcome, SetupError> {
        let MapTask { said, item, skills } = task;
        let worktree = if self.is_isolated { Some(self.add_worktree().await?) } else { None };
        let isolated = worktree.as_ref().map(Worktree::workspace).transpose().map_err(refuse_isolation)?;
        let agent = match &self.shared {
            Some(shared) => Arc::clone(shared),
            None => Arc::new(self.assemble(isolated.as_ref().unwrap_or(&self.workspace), Some(item))?.0),
        };
        let now = Timestamp::now();
        // A worktree is removed with its task.
        let about = describe_session(&agent, self.workspace.root());
        let session = match &self.store {
            Some(store) => store.create(about, now),
            None => Session::ephemeral(about, now),
        };
        let mut conversation = Conversation::new(session, now);
        let id = conversation.session.id().to_owned();
        let mut run = Run::new(Emitter::new(id, new_run_id(), Box::new(Unwatched)));
        if let Some(ledger) = &self.ledger {
            run.ledger = ledger.open_below();
        }
        let input = RunInput { said: said.map(UserText::by_person), skills, ..RunInput::default() };
        let end = Box::pin(run_input(&agent, &mut conversation, &mut run, input, &self.cancel)).await;
        let (ending, result) = match end {
            Ok(end) => {
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
        let branch = match worktree {
            Some(worktree) => worktree.keep().await.map_err(refuse_isolation)?,
            None => None,
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
        })
    }

    async fn add_worktree(&self) -> Result<Worktree, SetupError> {
        let ground = AgentInputs::new(&self.config, &self.workspace, &self.options, Arc::new(Nobody));
        Worktree::add(&ground, "map").await.map_err(refuse_isolation)
    }
}

/// Nobody watches one task of many.
struct Unwatched;

impl EventSink for Unwatched {
    fn emit(&mut self, _: &Event) -> io::Result<()> {
        Ok(())
    }
}

fn refuse_isolation(error: ToolError) -> SetupError {
    SetupError::usage(error.message)
}
