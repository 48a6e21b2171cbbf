//! A session of an editor: a conversation with an agent, and what the person chose for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};

use super::content::{read_prompt, replay_items};
use super::editor::{EditorOffers, EditorPerson};
use super::place::read_place;
use super::rpc::{RpcError, RpcPeer};
use super::updates::{AskedCall, UpdateSink, chunk, send_update};
use crate::agent::assembly::{self, RunOptions, Services, SessionChoice, SetupError};
use crate::agent::{
    Cancel, Conversation, Emitter, ReachedLimit, Run, RunInput, TurnStop, end_session, exit, run_compression,
    run_input,
};
use crate::config::{ApprovalMode, Config, LoadOptions, Mode, OwnCommand, SettingFlag};
use crate::conversation::message::UserText;
use crate::faces::chat;
use crate::faces::chat::undo::{UndoGround, bring_back, parse_undo, take_back};
use crate::faces::collector::CollectorExport;
use crate::faces::serving::{ClientAdditions, ServingError, ServingSetup, load_with_additions};
use crate::files::workspace::Workspace;
use crate::model::effort::Effort;
use crate::safety::{Approver, sandbox};
use crate::tools;

/// A session that is open.
pub struct AcpSession {
    /// Stops its turn.
    pub cancel: Cancel,
    /// The mode that the next message begins with, if it was chosen while another is answered.
    wanted_mode: Mutex<Option<String>>,
    seat: tokio::sync::Mutex<SessionSeat>,
}

/// Everything that a turn uses.
struct SessionSeat {
    peer: Arc<RpcPeer>,
    config: Arc<Config>,
    workspace: Workspace,
    options: RunOptions,
    approver: Arc<dyn Approver>,
    services: Services,
    conversation: Conversation,
    run: Run,
    export: CollectorExport,
    /// The servers of tools that the editor passed.
    added: ClientAdditions,
    /// The commands of the person and of the project.
    own: Vec<OwnCommand>,
    /// Warnings of the beginning, which the first turn shows: an editor knows the session only then.
    warnings: Vec<String>,
}

/// How to get a model.
pub const MODEL_ADVICE: &str = "`agent acp --setup` in a terminal asks for one, `agent key set` keeps a key";

/// The level that leaves the effort to the model's file.
const OWN_EFFORT: &str = "default";

impl AcpSession {
    /// Opens or begins a session; returns its id as well.
    ///
    /// # Errors
    /// The directory, the configuration or the session cannot be used, or there is no model yet.
    pub fn open(
        setup: &ServingSetup,
        peer: &Arc<RpcPeer>,
        offers: EditorOffers,
        params: &Value,
        choice: &SessionChoice,
    ) -> Result<(String, Self), RpcError> {
        let (cwd, added) = read_place(params)?;
        let (workspace, config) = setup.load_with(cwd, &added, setup.flags.clone())?;
        sandbox::limit_rendering(*config.settings.templates.timeout);
        setup.check_model(&config, MODEL_ADVICE)?;
        let (id, asked) = (Arc::new(OnceLock::new()), AskedCall::default());
        let (peer_of_person, session) = (Arc::clone(peer), Arc::clone(&id));
        let person = EditorPerson { peer: peer_of_person, session, asked: Arc::clone(&asked), offers };
        let approver: Arc<dyn Approver> = Arc::new(person);
        let options = RunOptions { chat: true, ..setup.options.clone() };
        let mut services = assembly::assemble_services(&config, &workspace, &options, Arc::clone(&approver))
            .map_err(refuse_setup)?;
        let store = assembly::open_store(&config);
        let opened = assembly::open_conversation(&store, &workspace, choice, &services.agent);
        let opened = opened.map_err(|error| RpcError::new(RpcError::NOT_FOUND, error.message))?;
        let conversation = opened.conversation;
        if conversation.session.find_copy().is_some() {
            let why =
                "this session is a trial in a copy of the workspace: `agent session apply` or `discard` ends it";
            return Err(RpcError::new(RpcError::NOT_FOUND, why));
        }
        let name = id.get_or_init(|| conversation.session.id().to_owned()).clone();
        let window = services.agent.model.info().context_window;
        let sink = UpdateSink::new(peer, &name, workspace.root(), window, &asked);
        let export = CollectorExport::open(&config).map_err(refuse_setup)?;
        let emitter = Emitter::new(name.clone(), assembly::new_run_id(), export.attach(Box::new(sink)));
        let run = Run::new(emitter.set_outlets(peer.queue()));
        let own = config.own_commands(chat::is_built_in).found;
        let warnings = services.warnings.drain(..).chain(opened.warnings).collect();
        let peer = Arc::clone(peer);
        let seat = SessionSeat {
            peer,
            config,
            workspace,
            options,
            approver,
            services,
            conversation,
            run,
            export,
            added,
            own,
            warnings,
        };
        Ok((
            name,
            Self { cancel: Cancel::default(), wanted_mode: Mutex::default(), seat: tokio::sync::Mutex::new(seat) },
        ))
    }

    /// What an editor shows of a session that it just opened.
    pub async fn describe(&self) -> Value {
        let seat = self.seat.lock().await;
        json!({ "modes": seat.modes(), "configOptions": seat.config_options() })
    }

    /// The commands that a message may begin with.
    pub async fn commands(&self) -> Value {
        let seat = self.seat.lock().await;
        let own = seat.own.iter().map(|command| {
            let input = (!command.hint.is_empty()).then(|| json!({ "hint": command.hint }));
            json!({ "name": command.name, "description": command.about, "input": input })
        });
        let compact = json!({
            "name": "compact",
            "description": "Make room in the context",
            "input": { "hint": "what must be kept above all" },
        });
        let undo = json!({
            "name": "undo",
            "description": "Take messages back, and what they changed in files",
            "input": { "hint": "how many; --force overwrites what changed since" },
        });
        let redo = json!({ "name": "redo", "description": "Take the last undo back" });
        let commands: Vec<Value> = [compact, undo, redo].into_iter().chain(own).collect();
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands })
    }

    /// Tells the whole conversation.
    ///
    /// # Errors
    /// Its log cannot be read.
    pub async fn replay(&self) -> Result<(), RpcError> {
        let seat = self.seat.lock().await;
        let session = &seat.conversation.session;
        let items = session.originals().map_err(|error| RpcError::new(RpcError::INTERNAL, error.to_string()))?;
        for update in replay_items(&items, seat.workspace.root()) {
            send_update(&seat.peer, session.id(), &update);
        }
        Ok(())
    }

    /// Takes one turn. The caller lets one message in at a time.
    ///
    /// # Errors
    /// The message is wrong, or the turn failed.
    pub async fn prompt(&self, params: &Value) -> Result<Value, RpcError> {
        let mut seat = self.seat.lock().await;
        let (text, attached) = read_prompt(&params["prompt"])?;
        self.apply_mode(&mut seat)?;
        if !attached.pictures.is_empty() && !seat.services.agent.model.info().sees {
            return Err(RpcError::params("the model sees no pictures (session option `model` names another)"));
        }
        let SessionSeat { services, conversation, run, own, peer, warnings, config, workspace, .. } = &mut *seat;
        run.begin(conversation.session.id(), assembly::new_run_id());
        let (command, argument) =
            text.strip_prefix('/').unwrap_or_default().split_once(' ').unwrap_or_else(|| {
                let whole = text.strip_prefix('/').unwrap_or_default();
                (whole, "")
            });
        if command == "compact" {
            let done = run_compression(&services.agent, conversation, run, argument.trim(), &self.cancel).await;
            let said = match done {
                Ok(Some(made)) => {
                    format!("Made room: {} tokens became {}.", made.tokens_before, made.tokens_after)
                }
                Ok(None) => "There is nothing to make room for.".to_owned(),
                Err(ending) => return Err(RpcError::new(RpcError::INTERNAL, ending.reason)),
            };
            send_update(peer, conversation.session.id(), &chunk("agent_message_chunk", &said));
            return Ok(json!({ "stopReason": "end_turn" }));
        }
        if matches!(command, "undo" | "redo") {
            let ground = UndoGround { config, workspace, agent: &services.agent };
            let done = parse_undo(&conversation.session, argument);
            let done = done.and_then(|(messages, forced)| match command {
                "undo" => take_back(conversation, &ground, messages, forced),
                _ => bring_back(conversation, &ground, forced),
            });
            let said = done.unwrap_or_else(|why| format!("Nothing was taken back: {why}"));
            send_update(peer, conversation.session.id(), &chunk("agent_message_chunk", &said));
            return Ok(json!({ "stopReason": "end_turn" }));
        }
        let said = match own.iter().find(|own| own.name == command) {
            Some(own) => chat::write_message(own, argument).map_err(RpcError::params)?,
            None => text,
        };
        let input = RunInput {
            said: Some(UserText::by_person(said)),
            attached,
            warnings: std::mem::take(warnings),
            keeps_background: true,
            ..RunInput::default()
        };
        let end = run_input(&services.agent, conversation, run, input, &self.cancel).await;
        let end = end.map_err(|ending| RpcError::new(RpcError::INTERNAL, ending.reason))?;
        let reason = match &end.stop {
            TurnStop::Interrupted | TurnStop::SinkClosed => "cancelled",
            TurnStop::Limit(ReachedLimit::Output | ReachedLimit::Remainder { .. }) => "max_tokens",
            TurnStop::Limit(_) => "max_turn_requests",
            TurnStop::Answered | TurnStop::Escalated(_) | TurnStop::Unasked(_) => "end_turn",
            _ if end.ending.code == exit::AUTHENTICATION => {
                return Err(RpcError::new(RpcError::AUTHENTICATION, end.ending.reason));
            }
            _ => return Err(RpcError::new(RpcError::INTERNAL, end.ending.reason)),
        };
        Ok(json!({ "stopReason": reason }))
    }

    /// Changes an option once no message is being answered; returns how all of them are.
    ///
    /// # Errors
    /// There is no such option or value.
    pub async fn choose(&self, option: &str, value: &Value) -> Result<Value, RpcError> {
        let mut seat = self.seat.lock().await;
        let value = value.as_str().ok_or_else(|| RpcError::params("a value is a text"))?;
        seat.choose(option, value)?;
        Ok(seat.config_options())
    }

    /// Chooses the mode: now, or for the next message while one is being answered.
    ///
    /// # Errors
    /// There is no such mode, or it cannot be used.
    pub fn set_mode(&self, mode: &Value) -> Result<Value, RpcError> {
        let known = mode.as_str().filter(|mode| ApprovalMode::find(mode).is_some());
        let known = known.ok_or_else(|| RpcError::params(format!("{mode} is no mode")))?;
        *self.wanted_mode.lock().expect("no holder of the mode panics") = Some(known.to_owned());
        if let Ok(mut seat) = self.seat.try_lock() {
            self.apply_mode(&mut seat)?;
        }
        Ok(json!({}))
    }

    fn apply_mode(&self, seat: &mut SessionSeat) -> Result<(), RpcError> {
        let wanted = self.wanted_mode.lock().expect("no holder of the mode panics").take();
        let Some(mode) = wanted else { return Ok(()) };
        seat.choose("approve", &mode)?;
        let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode });
        send_update(&seat.peer, seat.conversation.session.id(), &update);
        Ok(())
    }

    /// Stops the turn and the background commands.
    pub async fn close(&self) {
        self.cancel.trigger();
        let mut seat = self.seat.lock().await;
        let agent = &seat.services.agent;
        agent.end_background();
        seat.run.emitter.report_hooks(end_session(agent, &seat.conversation, "exit").await);
        // Nobody reads what was not exported.
        let export = std::mem::take(&mut seat.export);
        let _ = tokio::task::spawn_blocking(|| export.close()).await;
    }
}

impl SessionSeat {
    fn choose(&mut self, option: &str, value: &str) -> Result<(), RpcError> {
        let servers = self.services.agent.tools.servers().cloned();
        let mut options = RunOptions { servers, ..self.options.clone() };
        let flag = match option {
            "approve" if ApprovalMode::find(value).is_some() => Some(SettingFlag::Approve),
            "mode" if Mode::find(value).is_some() => Some(SettingFlag::Mode),
            "model" if self.offered_models().iter().any(|model| model == value) => {
                (options.model, options.effort) = (Some(value.to_owned()), None);
                None
            }
            "effort" if value == OWN_EFFORT || Effort::read(value).is_some() => {
                options.effort = Some(value.to_owned()).filter(|value| value != OWN_EFFORT);
                None
            }
            "approve" | "mode" | "effort" | "model" => {
                return Err(RpcError::params(format!("`{value}` is no value of {option}")));
            }
            _ => return Err(RpcError::params(format!("there is no option `{option}`"))),
        };
        let config = match flag {
            Some(flag) => {
                let flags = self.config.flags().clone().with(flag, Some(value.to_owned()));
                let again = self.config.again(&self.workspace, self.config.sets(), &tools::NAMES);
                load_with_additions(&LoadOptions { flags, ..again }, &self.added)?
            }
            None => Arc::clone(&self.config),
        };
        let services = assembly::assemble_services(&config, &self.workspace, &options, Arc::clone(&self.approver))
            .map_err(refuse_setup)?;
        self.run.emitter.warn(services.follow(&self.services));
        options.servers = None;
        (self.config, self.options, self.services) = (config, options, services);
        Ok(())
    }

    fn modes(&self) -> Value {
        let modes = [ApprovalMode::Ask, ApprovalMode::Edits, ApprovalMode::All, ApprovalMode::Never];
        let modes =
            modes.map(|mode| json!({ "id": mode.name(), "name": mode.name(), "description": mode.explain() }));
        json!({ "currentModeId": self.services.agent.approval.name(), "availableModes": modes })
    }

    /// The configured models, and the one in use.
    fn offered_models(&self) -> Vec<String> {
        let current = &self.services.agent.model.info().name;
        let mut models: Vec<String> = self.config.models.keys().cloned().collect();
        if !models.contains(current) {
            models.push(current.clone());
        }
        models
    }

    fn config_options(&self) -> Value {
        let select = |id: &str, name: &str, category: &str, current: &str, values: Vec<String>| {
            let values = values.into_iter().map(|value| json!({ "value": value, "name": value }));
            json!({
                "id": id, "name": name, "category": category, "type": "select", "currentValue": current,
                "options": values.collect::<Vec<_>>(),
            })
        };
        let agent = &self.services.agent;
        let current = &agent.model.info().name;
        let efforts = std::iter::once(OWN_EFFORT).chain(Effort::ALL.map(Effort::word)).map(str::to_owned);
        let effort = self.options.effort.as_deref().unwrap_or(OWN_EFFORT);
        let ways = Mode::ALL.map(|mode| mode.name().to_owned());
        json!([
            select("model", "Model", "model", current, self.offered_models()),
            select("effort", "Reasoning effort", "thought_level", effort, efforts.collect()),
            select("mode", "How a task is carried out", "other", agent.mode.name(), ways.into()),
        ])
    }
}

impl From<ServingError> for RpcError {
    fn from(error: ServingError) -> Self {
        let code = match error {
            ServingError::Directory(_) => Self::PARAMS,
            ServingError::Configuration(_) => Self::INTERNAL,
            ServingError::NoModel(_) => Self::AUTHENTICATION,
        };
        Self::new(code, error.into_message())
    }
}

fn refuse_setup(error: SetupError) -> RpcError {
    RpcError::new(RpcError::INTERNAL, error.message)
}

/// The sessions that are open, by id.
pub type OpenSessions = Mutex<BTreeMap<String, Arc<AcpSession>>>;
