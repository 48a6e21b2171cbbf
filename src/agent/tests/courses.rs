//! Property tests: whole conversations of random replies, faults, cancellations, compressions and resumes, with
//! invariants for each request.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::puppet::{Act, LookOutcome, Looker, Puppet, Shared, Watching, text};
use crate::agent::run::compact::compress_conversation;
use crate::agent::window::Budget;
use crate::agent::window::tests::desk;
use crate::agent::{
    Agent, Briefing, Cancel, Conversation, Emitter, Hooks, Run, RunInput, ToolTerms, Toolbox, TurnStop, run_input,
};
use crate::base::secrets::Redactor;
use crate::config::Permission;
use crate::config::{
    ApprovalMode, Mode, PromptSource, RetryConfig, SkillDisclosure, ToolOutputSettings, WrittenDuration,
};
use crate::conversation::message::UserText;
use crate::conversation::session::{About, Store};
use crate::files::workspace::Workspace;
use crate::model::{ModelErrorKind, ModelInfo, ToolDefinition};
use crate::prompt::{PromptContext, Registry};
use crate::safety::Nobody;
use crate::safety::policy::PolicyRules;
use crate::skills::{RunVariables, SkillCatalogue};
use crate::tools::Jobs;

#[derive(Debug, Clone)]
enum Move {
    /// The acts of the model, and the numbers of events between things that the person says during the turn.
    Turn(Vec<Act>, Vec<u8>),
    /// A message that is larger than the window.
    TooLarge,
    Resume,
    Compact,
    Restore,
}

fn agent(dir: &Path, window: u64, shared: &Shared) -> Agent {
    let info = ModelInfo {
        name: "puppet".to_owned(),
        id: "puppet".to_owned(),
        retry: RetryConfig {
            attempts: 3,
            base_delay: WrittenDuration::from_secs(0),
            max_delay: WrittenDuration::from_secs(0),
        },
        scripted: false,
        ..desk::model(window)
    };
    let context = desk::settings();
    let limits = serde_json::from_value(json!({
        "max_turns": 30, "max_requests": null, "max_time": null, "max_tokens": null, "max_cost": null, "tool_timeout": "10s",
        "max_tool_timeout": "10s", "tool_idle_timeout": null, "max_parallel": 4, "max_depth": 1, "loop_window": 12,
        "loop_threshold": 3,
    }))
    .expect("limits");
    let prompts = Registry::new(&[]);
    let prompt =
        |text: &str| prompts.resolve(&PromptSource::Inline(text.to_owned()), "test", false).expect("a prompt");
    let mut tools = Toolbox::default();
    let definition = ToolDefinition {
        name: "look".to_owned(),
        description: "Looks.".to_owned(),
        parameters: json!({ "type": "object" }).into(),
        permission: Permission::Read,
        default: true,
        ..ToolDefinition::default()
    };
    tools.register(Arc::new(Looker { definition, shared: shared.clone() }), ToolTerms::default());
    let redactor = Arc::new(Redactor::new(Vec::new()));
    Agent {
        titler: None,
        sandbox: None,
        name: "default".to_owned(),
        budget: Budget::new(&info, &context).expect("a budget"),
        model: Arc::new(Puppet { info, shared: shared.clone() }),
        tools,
        briefing: Briefing {
            system: prompt("You look at things."),
            own: None,
            termination: prompt("Say how far you came."),
            compression: prompts.get_released("compression").expect("a prompt"),
            facts: PromptContext {
                agent: crate::prompt::AgentFacts::default(),
                session: crate::prompt::SessionFacts::default(),
                workspace: crate::prompt::WorkspaceFacts::default(),
                env: crate::template::convert_value(&()),
                open_env: crate::template::convert_value(&()),
                datetime: crate::template::convert_value(&()),
                vars: serde_json::Map::new(),
                state: serde_json::Map::new(),
                instructions: String::new(),
                ending: None,
                summary: None,
            },
            catalogue: Arc::new(SkillCatalogue::discover(&[], dir, RunVariables::default())),
            disclosure: SkillDisclosure::Message,
        },
        limits,
        context,
        tool_output: ToolOutputSettings::default(),
        approval: ApprovalMode::All,
        needs_undo: false,
        mode: Mode::Direct,
        orchestration: crate::agent::Orchestration::default(),
        unfinished: Arc::default(),
        rules: PolicyRules::new(&[]).expect("no rules"),
        hooks: Hooks::default(),
        workspace: Workspace::open(dir).expect("a directory"),
        readable: Vec::new(),
        approver: Arc::new(Nobody),
        jobs: Arc::new(Jobs::new(Arc::clone(&redactor))),
        redactor,
        tape: None,
        schema: None,
    }
}

/// A conversation in progress.
struct PlayedCourse {
    dir: tempfile::TempDir,
    store: Store,
    agent: Agent,
    shared: Shared,
    run: Run,
}

impl PlayedCourse {
    fn new(window: u64) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let shared = Shared::default();
        let agent = agent(dir.path(), window, &shared);
        shared.with(|stage| stage.budget = agent.budget.tokens);
        let run = Run::new(Emitter::new(String::new(), "run".to_owned(), Box::new(Watching(shared.clone()))));
        shared.with(|stage| stage.steering = run.steering.clone());
        let store = Store::new(dir.path().join("sessions"));
        Self { dir, store, agent, shared, run }
    }

    async fn play(&mut self, moves: Vec<Move>) -> Result<(), TestCaseError> {
        let workspace = self.dir.path().to_owned();
        let about =
            About { workspace: &workspace, copy: None, is_layer: false, agent: "default", model: "puppet" };
        let mut conversation = Conversation::new(self.store.create(about, Timestamp::now()), Timestamp::now());
        for (number, next) in moves.into_iter().enumerate() {
            self.shared.with(|stage| stage.cancel = Cancel::default());
            match next {
                Move::Turn(acts, pauses) => {
                    self.shared.with(|stage| stage.pauses = pauses.into());
                    self.say(&mut conversation, format!("demand-{number}"), 10, acts).await?;
                }
                Move::TooLarge => {
                    let most = usize::try_from(self.agent.budget.tokens).unwrap_or(0);
                    let stop =
                        self.turn(&mut conversation, format!("large-{number} {}", text(most)), vec![]).await?;
                    prop_assert!(matches!(stop, TurnStop::ContextFull(_)), "{stop:?}");
                }
                Move::Resume => {
                    let id = conversation.session.id().to_owned();
                    drop(conversation);
                    let now = Timestamp::now();
                    let session = match self.store.open(&id, now) {
                        Ok((session, warnings)) => {
                            prop_assert!(warnings.is_empty(), "{warnings:?}");
                            session
                        }
                        // Nothing was said yet.
                        Err(_) => self.store.create(about, now),
                    };
                    conversation = Conversation::new(session, now);
                }
                Move::Compact => {
                    let cancel = self.shared.with(|stage| {
                        stage.acts.clear();
                        stage.cancel.clone()
                    });
                    let told =
                        compress_conversation(&self.agent, &mut conversation, &mut self.run, "", &cancel).await;
                    prop_assert!(told.is_ok(), "{told:?}");
                }
                Move::Restore => {
                    conversation.session.restore(Timestamp::now()).expect("the disk is there");
                    self.shared.with(|stage| stage.broken = true);
                }
            }
        }
        self.shared.with(|stage| stage.cancel = Cancel::default());
        let stop = self.say(&mut conversation, "hello".to_owned(), 1, vec![]).await?;
        prop_assert!(matches!(stop, TurnStop::Answered), "the session is dead: {stop:?}");
        Ok(())
    }

    async fn say(
        &mut self,
        conversation: &mut Conversation,
        name: String,
        tokens: usize,
        acts: Vec<Act>,
    ) -> Result<TurnStop, TestCaseError> {
        self.shared.with(|stage| stage.said.insert(name.clone()));
        let said = format!("{name} {}", text(tokens));
        self.turn(conversation, said, acts).await
    }

    async fn turn(
        &mut self,
        conversation: &mut Conversation,
        said: String,
        acts: Vec<Act>,
    ) -> Result<TurnStop, TestCaseError> {
        let cancel = self.shared.with(|stage| {
            stage.acts = acts.into();
            stage.cancel.clone()
        });
        let input = RunInput { said: Some(UserText::by_person(said)), ..RunInput::default() };
        let end = Box::pin(run_input(&self.agent, conversation, &mut self.run, input, &cancel)).await;
        let end = end.expect("the prompt can be rendered");
        let faults = self.shared.with(|stage| std::mem::take(&mut stage.faults));
        prop_assert!(faults.is_empty(), "{faults:#?}");
        let (steered, mut heard) = self.shared.with(|stage| {
            stage.pauses.clear();
            (std::mem::take(&mut stage.steered), std::mem::take(&mut stage.taken))
        });
        heard.extend(self.run.steering.take_rest());
        prop_assert_eq!(heard, steered, "each is taken or given back, once and in order");
        prop_assert!(conversation.session.open_calls().is_empty(), "a call stayed open");
        prop_assert!(!matches!(end.stop, TurnStop::Failed(_)), "{:?}", end.stop);
        Ok(end.stop)
    }
}

fn acts(window: usize) -> impl Strategy<Value = Vec<Act>> {
    let look = prop_oneof![
        6 => (1..window / 3).prop_map(LookOutcome::Return),
        1 => Just(LookOutcome::Fail),
        1 => Just(LookOutcome::Hang),
        1 => Just(LookOutcome::Garbage),
        1 => Just(LookOutcome::Unknown),
    ];
    let kind = || {
        prop_oneof![
            Just(ModelErrorKind::Transient),
            Just(ModelErrorKind::Incomplete),
            Just(ModelErrorKind::TooLarge),
            Just(ModelErrorKind::ContextTooLong),
            Just(ModelErrorKind::BadRequest),
        ]
    };
    let act = prop_oneof![
        3 => (1..window / 8).prop_map(Act::Say),
        1 => (1..window).prop_map(Act::RunOn),
        9 => proptest::collection::vec((0..3_u8, look), 1..4).prop_map(Act::Call),
        1 => Just(Act::Empty),
        1 => kind().prop_map(Act::Fail),
        1 => (1..200_usize, kind()).prop_map(|(tokens, kind)| Act::Cut(tokens, kind)),
        1 => (1..200_usize).prop_map(Act::Hang),
    ];
    proptest::collection::vec(act, 0..10)
}

fn pauses() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0..12_u8, 0..4)
}

fn moves(window: usize) -> impl Strategy<Value = Vec<Move>> {
    let next = prop_oneof![
        8 => (acts(window), pauses()).prop_map(|(acts, pauses)| Move::Turn(acts, pauses)),
        1 => Just(Move::TooLarge),
        2 => Just(Move::Resume),
        1 => Just(Move::Compact),
        1 => Just(Move::Restore),
    ];
    proptest::collection::vec(next, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 300, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn whatever_happens_every_request_is_whole_and_the_session_goes_on(
        (window, moves) in (4096..16_384_usize).prop_flat_map(|window| (Just(window), moves(window))),
    ) {
        played(window as u64, moves)?;
    }
}

fn played(window: u64, moves: Vec<Move>) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(PlayedCourse::new(window).play(moves))
}

/// The budget learned from the refusal would leave no room for any message.
#[test]
fn a_server_that_refuses_a_tiny_request_is_asked_again_by_the_next_message() {
    let refused = vec![Act::Cut(1, ModelErrorKind::ContextTooLong)];
    played(4096, vec![Move::Turn(refused, vec![])]).unwrap_or_else(|error| panic!("{error}"));
}
