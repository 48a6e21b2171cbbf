//! Turns in this process, with a test in place of the person and the screen.

use std::sync::{Arc, Mutex};

use agent::facade::agent::assembly::{self, RunOptions};
use agent::facade::agent::{
    Cancel, Conversation, Emitter, Run as AgentRun, RunEnd, RunInput, Steering, TurnStop, run_input,
};
use agent::facade::config::{Env, LoadOptions, SettingFlags, load_config};
use agent::facade::conversation::EventSink;
use agent::facade::conversation::event::Event;
use agent::facade::conversation::message::UserText;
use agent::facade::conversation::session::{About, Session};
use agent::facade::files::workspace::Workspace;
use agent::facade::safety::{Approval, Approver, PlanReview, PlanSheet, Question};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;

use crate::run::Run;

/// Called with each event; it may steer the turn.
pub type Hear = dyn Fn(&Value, &Steering) + Send;

/// A turn that is over.
pub struct Taken {
    pub end: RunEnd,
    pub events: Vec<Value>,
    /// The person's messages that came meanwhile and are in no request.
    pub rest: Vec<String>,
}

impl Taken {
    /// The events of a type.
    pub fn of<'e>(&'e self, kind: &'e str) -> impl Iterator<Item = &'e Value> {
        self.events.iter().filter(move |event| event["type"] == kind)
    }
}

struct Watching {
    events: Arc<Mutex<Vec<Value>>>,
    steering: Steering,
    hear: Box<Hear>,
}

impl EventSink for Watching {
    fn emit(&mut self, event: &Event) -> std::io::Result<()> {
        let event = serde_json::to_value(event).expect("an event is JSON");
        (self.hear)(&event, &self.steering);
        self.events.lock().expect("no holder panics").push(event);
        Ok(())
    }
}

/// Takes a turn with the environment, files and settings of `run`. Commands run without a sandbox, whose helper is the
/// program itself.
pub fn turn(run: &Run, sets: &[&str], said: &str, person: Arc<dyn Approver>, hear: Box<Hear>) -> Taken {
    let command = run.command();
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let env = Env::from_pairs(command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))));
    let workspace = Workspace::open(&run.place().workspace()).expect("a workspace");
    let sets: Vec<String> = sets.iter().copied().chain(["sandbox.mode=off"]).map(str::to_owned).collect();
    let options = LoadOptions {
        env: &env,
        workspace: &workspace,
        config_dir: None,
        sets: &sets,
        flags: SettingFlags::default(),
        brought: None,
        trust: false,
        tools: &agent::facade::tools::NAMES,
    };
    let config = Arc::new(load_config(&options).expect("the configuration is valid"));
    let services =
        assembly::assemble_services(&config, &workspace, &RunOptions::default(), person).expect("an agent");
    let about = About {
        workspace: workspace.root(),
        copy: None,
        is_layer: false,
        agent: "default",
        model: "scripted-model",
    };
    let now = Timestamp::now();
    let mut conversation = Conversation::new(Session::ephemeral(about, now), now);
    let (events, steering) = (Arc::<Mutex<Vec<Value>>>::default(), Steering::default());
    let watching = Watching { events: Arc::clone(&events), steering: steering.clone(), hear };
    let mut run = AgentRun::new(Emitter::new(String::new(), "run".to_owned(), Box::new(watching)));
    run.steering = steering;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let end = runtime.block_on(async {
        let input = RunInput { said: Some(UserText::by_person(said)), ..RunInput::default() };
        run_input(&services.agent, &mut conversation, &mut run, input, &Cancel::default()).await
    });
    let end = end.expect("the prompt can be rendered");
    assert!(!matches!(end.stop, TurnStop::Failed(_)), "{:?}", end.stop);
    let events = std::mem::take(&mut *events.lock().expect("no holder panics"));
    Taken { end, events, rest: run.steering.take_rest() }
}

/// A person who gives every permission question the same answer.
pub struct Answering {
    answer: Approval,
    /// The command line that each question offered for editing.
    pub offered: Mutex<Vec<Option<String>>>,
}

impl Answering {
    pub fn with(answer: Approval) -> Arc<Self> {
        Arc::new(Self { answer, offered: Mutex::default() })
    }

    pub fn offered(&self) -> Vec<Option<String>> {
        self.offered.lock().expect("no holder panics").clone()
    }
}

impl Approver for Answering {
    fn present(&self) -> bool {
        true
    }

    fn approve<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Approval> {
        self.offered.lock().expect("no holder panics").push(question.editable.map(str::to_owned));
        Box::pin(std::future::ready(self.answer.clone()))
    }

    fn review_plan<'a>(&'a self, _: PlanSheet<'a>) -> BoxFuture<'a, PlanReview> {
        Box::pin(std::future::ready(PlanReview::Run))
    }

    fn answer<'a>(&'a self, _: &'a str, _: &'a [String]) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}
