//! Everything that a run needs, assembled as the program does it, with the model and its commands from the plan.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent::facade::agent::assembly::{self, RunOptions};
use agent::facade::agent::window::Budget;
use agent::facade::agent::{Agent, Cancel, Conversation, Emitter, Run, RunInput, ToolTerms, TurnStop, run_input};
use agent::facade::config::{self, ApprovalMode, Env, LoadOptions, Strategy};
use agent::facade::conversation::EventSink;
use agent::facade::conversation::event::{Event, EventKind};
use agent::facade::conversation::message::UserText;
use agent::facade::conversation::session::{About, Session};
use agent::facade::files::workspace::Workspace;
use agent::facade::model::ModelInfo;
use agent::facade::safety::Nobody;
use jiff::Timestamp;

use crate::model::{Command, Planned, Play};
use crate::workload::Workload;

const NOON: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// The settings of a play of the work.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub strategy: Strategy,
    window: u64,
    /// `None` for what the window leaves.
    budget: Option<u64>,
    /// The most tokens that one result brings in.
    result: u64,
}

impl Setting {
    /// A budget, whatever the window.
    pub fn budget(strategy: Strategy, budget: u64) -> Self {
        Self { strategy, window: budget * 5 / 4, budget: Some(budget), result: 8000 }
    }

    /// A window that holds everything, whatever the model takes.
    pub fn endless(result: u64) -> Self {
        /// Tokens.
        const ENDLESS: u64 = 10_000_000;
        Self { strategy: Strategy::Staged, window: ENDLESS, budget: Some(ENDLESS), result }
    }

    /// A window, divided by the defaults.
    pub fn window(window: u64, result: u64) -> Self {
        Self { strategy: Strategy::Staged, window, budget: None, result }
    }
}

/// The limits of a request.
pub fn budget(window: u64) -> Budget {
    let dir = tempfile::tempdir().expect("a directory");
    let play = Play::new(Workload::reads(0, 0, 0));
    agent(dir.path(), &play, Setting::window(window, 0)).budget
}

/// Plays the whole work. Returns how long each compression took without the model's own time: from the end of what
/// came before it until the next request could be sent.
pub fn play(play: &Arc<Play>, setting: Setting) -> Vec<Duration> {
    let dir = tempfile::tempdir().expect("a directory");
    for (path, text) in &play.work.files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    let agent = agent(dir.path(), play, setting);
    let mut conversation = conversation(dir.path());
    play.state().kept.archive = Some(conversation.session.archive());
    let watch = Watch { play: Arc::clone(play), last: Instant::now(), begun: None, took: Arc::default() };
    let took = Arc::clone(&watch.took);
    let mut run =
        Run::new(Emitter::new(conversation.session.id().to_owned(), assembly::new_run_id(), Box::new(watch)));
    let runtime = runtime();
    for (said, _) in &play.work.turns {
        let input = RunInput { said: Some(UserText::by_person(said)), ..RunInput::default() };
        let end = runtime.block_on(run_input(&agent, &mut conversation, &mut run, input, &Cancel::default()));
        let end = end.expect("the prompt can be rendered");
        assert!(matches!(end.stop, TurnStop::Answered), "{:?}", end.stop);
    }
    let mut state = play.state();
    assert_eq!(state.taken, play.work.steps.len(), "every step was taken");
    if state.figures.checks.is_empty() {
        let kept = state.kept.clone();
        state.figures.check(conversation.session.items(), &play.work.facts, &kept);
    }
    std::mem::take(&mut took.lock().expect("nobody panics with it"))
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built")
}

pub fn conversation(dir: &Path) -> Conversation {
    let about = About { workspace: dir, copy: None, is_layer: false, agent: "default", model: "default" };
    Conversation::new(Session::ephemeral(about, NOON), NOON)
}

pub fn agent(dir: &Path, play: &Arc<Play>, setting: Setting) -> Agent {
    let workspace = Workspace::open(dir).expect("a directory");
    let pairs = [("HOME", "/nonexistent/home"), ("OPENAI_API_KEY", "sk-bench"), ("AGENT_MODEL", "gpt-5-mini")];
    let env = Env::from_pairs(pairs);
    let (config_dir, brought) = (None, None);
    let options = LoadOptions {
        env: &env,
        workspace: &workspace,
        config_dir,
        sets: &[],
        flags: config::SettingFlags::default(),
        brought,
        trust: false,
        tools: &[],
    };
    let config = config::load_config(&options).expect("the built-in configuration is sound");
    let assembled =
        assembly::assemble_services(&Arc::new(config), &workspace, &RunOptions::default(), Arc::new(Nobody));
    let mut agent = assembled.expect("the built-in agent").agent;
    let info = ModelInfo { context_window: setting.window, max_output_tokens: None, ..agent.model.info().clone() };
    // The prompt names the place: it is to be as long on every machine.
    let place = &mut agent.briefing.facts.workspace;
    (place.dir, place.os, place.shell) = ("/work".to_owned(), "linux".to_owned(), "sh".to_owned());
    agent.context.strategy = setting.strategy;
    agent.context.budget = setting.budget;
    agent.context.tool_result_max_tokens = usize::try_from(setting.result).expect("small");
    agent.budget = Budget::new(&info, &agent.context).expect("there is room");
    agent.limits.max_turns = None;
    agent.limits.max_time = None;
    agent.approval = ApprovalMode::All;
    agent.model = Arc::new(Planned { info, play: Arc::clone(play) });
    let definition = agent.tools.find("run_command").expect("a built-in tool").tool.definition().clone();
    agent.tools.register(Arc::new(Command { definition, play: Arc::clone(play) }), ToolTerms::default());
    agent
}

/// Sees the compressions.
struct Watch {
    play: Arc<Play>,
    /// The time of the last event.
    last: Instant,
    /// The beginning of a compression, and the model's time until then.
    begun: Option<(Instant, u64)>,
    took: Arc<Mutex<Vec<Duration>>>,
}

impl EventSink for Watch {
    fn emit(&mut self, event: &Event) -> std::io::Result<()> {
        let now = Instant::now();
        match &event.kind {
            EventKind::ContextCompressing { .. } => {
                self.begun = Some((self.last, self.play.thinking.load(Ordering::Relaxed)));
            }
            EventKind::ContextCompressed(_) => {
                let (begun, thought) = self.begun.take().expect("it was begun");
                let thinking = Duration::from_nanos(self.play.thinking.load(Ordering::Relaxed) - thought);
                self.took.lock().expect("nobody panics with it").push((now - begun).saturating_sub(thinking));
                let mut state = self.play.state();
                state.compressed = true;
                state.figures.compressions += 1;
            }
            _ => {}
        }
        self.last = now;
        Ok(())
    }
}
