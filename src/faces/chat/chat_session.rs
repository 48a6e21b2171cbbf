//! A chat: a conversation, its agent and its turns. Each turn is a separate run in the same session.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::at_hand::AtHand;
use super::look::CallFollower;
use super::mentions::{self, CLOSING, Mentioned};
use super::trial::end_trial;
use crate::agent::assembly::{
    self, OpenedConversation, RunOptions, RunPlace, Services, SessionChoice, SetupError, SetupErrorKind,
    require_history,
};
use crate::agent::exit::{self, Ending};
use crate::agent::{
    Agent, Cancel, Conversation, Emitter, Run, RunEnd, RunInput, end_session, refresh_prompt, run_input,
    title_conversation,
};
use crate::config::{ApprovalMode, Config, OwnCommand, OwnCommands};
use crate::conversation::EventSink;
use crate::conversation::attachment::{Attachment, Attachments};
use crate::conversation::message::{Item, Step, UserText};
use crate::files::workspace::Workspace;
use crate::model::ModelInfo;
use crate::safety::{Approver, Reach};
use crate::screen::{Fanout, Outlets, Rendering};
use crate::skills::SkillCatalogue;
use crate::tools::McpServers;

/// The parts needed to open a chat.
pub struct Opening {
    pub config: Arc<Config>,
    pub workspace: Workspace,
    /// Where it works: the workspace, or a copy of it.
    pub place: RunPlace,
    pub options: RunOptions,
    pub approver: Arc<dyn Approver>,
    pub session: SessionChoice,
    /// What it begins with, as if it had been typed.
    pub first: Option<FirstInput>,
    /// Files to attach to the first message.
    pub attached: Attachments,
    /// Skills to load with the first message.
    pub skills: Vec<String>,
    /// The Markdown switch, shared with the screen.
    pub rendering: Rendering,
    /// The commands of the person and of the project.
    pub own: OwnCommands,
    pub at_hand: AtHand,
}

/// What the command line has a chat begin with.
pub enum FirstInput {
    Message(String),
    /// The choice of an earlier conversation.
    Resume,
}

/// A conversation with an agent. `/clear` replaces the conversation, `switch` the agent.
pub struct Chat {
    pub(super) config: Arc<Config>,
    /// The workspace of its sessions and its configuration.
    pub(super) origin: Workspace,
    /// The directory in which it works: that, or a copy of it.
    pub(super) workspace: Workspace,
    pub(super) options: RunOptions,
    pub(super) approver: Arc<dyn Approver>,
    pub(super) services: Services,
    /// The chat's own agent, while a turn uses another model.
    pub(super) own_services: Option<Services>,
    pub(super) conversation: Conversation,
    pub(super) run: Run,
    /// What came with the command line.
    pub(super) first: Option<FirstInput>,
    /// Files to attach to the next message.
    pub(super) attached: Attachments,
    /// Skills to load with the next message.
    pub(super) skills: Vec<String>,
    /// The commands of the person and of the project.
    pub(super) own: Vec<OwnCommand>,
    /// The keys that were set in this chat.
    pub(super) sets: Vec<String>,
    pub(super) at_hand: AtHand,
    pub(super) is_ephemeral: bool,
    /// True if a turn is over, and nobody has asked for a title since.
    may_need_title: bool,
    /// Which conversation goes on, if the person did not name it.
    pub note: Option<String>,
    pub(super) rendering: Rendering,
    pub(super) heard: CallFollower,
    /// Stops the running turn.
    cancel: Cancel,
}

impl Chat {
    /// Assembles the agent and opens the session. Events go to `sink`, at the pace at which `outlets` are read.
    ///
    /// # Errors
    /// The agent cannot be assembled, or the session cannot be opened.
    pub fn open(opening: Opening, sink: Box<dyn EventSink>, outlets: &Outlets) -> Result<Self, SetupError> {
        let Opening {
            config,
            workspace: origin,
            place,
            options,
            approver,
            session,
            first,
            attached,
            skills,
            rendering,
            own,
            at_hand,
        } = opening;
        let RunPlace { workspace, copy, note: place_note, warning } = place;
        let mut services = assembly::assemble_services(&config, &workspace, &options, Arc::clone(&approver))?;
        let OpenedConversation { conversation, note, warnings } =
            assembly::open_conversation(&assembly::open_store(&config), &origin, &session, &services.agent)?;
        if let Some(copy) = copy {
            require_history(&conversation)?;
            copy.keep();
        }
        let heard = CallFollower::default();
        let sink = Box::new(Fanout { sinks: vec![sink, Box::new(heard.clone())] });
        let emitter = Emitter::new(conversation.session.id().to_owned(), assembly::new_run_id(), sink);
        let run = Run::new(emitter.set_outlets(Box::new(outlets.clone())));
        run.emitter.warn(services.warnings.drain(..).chain(warning).chain(warnings));
        run.emitter.warn(own.mistakes.iter().map(ToString::to_string).chain(own.warnings));
        let is_ephemeral = matches!(session, SessionChoice::Ephemeral);
        Ok(Self {
            config,
            origin,
            workspace,
            options,
            approver,
            services,
            own_services: None,
            conversation,
            run,
            first,
            attached,
            skills,
            own: own.found,
            sets: Vec::new(),
            at_hand,
            is_ephemeral,
            may_need_title: false,
            note: place_note.or(note),
            rendering,
            heard,
            cancel: Cancel::default(),
        })
    }

    /// What goes with the next message.
    pub fn attached(&self) -> &Attachments {
        &self.attached
    }

    /// The model that answers.
    pub fn model(&self) -> &ModelInfo {
        self.services.agent.model.info()
    }

    /// The approval mode.
    pub fn approval(&self) -> ApprovalMode {
        self.services.agent.approval
    }

    /// The agent's skills.
    pub fn catalogue(&self) -> &SkillCatalogue {
        &self.services.catalogue
    }

    /// The servers of tools.
    ///
    /// # Errors
    /// None is configured.
    pub(super) fn servers(&self) -> Result<Arc<McpServers>, &'static str> {
        self.services.agent.tools.servers().cloned().ok_or("no server of tools is configured")
    }

    /// Notes that what follows contains text of somebody else.
    pub(super) fn take_from_outside(&mut self, source: &str) {
        self.conversation.session.mark_tainted(source, Timestamp::now());
    }

    /// Attaches the files that `message` mentions, and the resources of servers (`@SERVER:ADDRESS`). Returns the reasons that
    /// others are not attached. Dropping the future attaches nothing.
    pub(super) async fn attach_mentioned(&mut self, message: &str) -> Vec<String> {
        let servers = self.servers().ok();
        let denied = self.services.agent.rules.denied_to("read_file");
        let reach = Reach::new(&self.services.agent.workspace, Vec::new(), denied);
        let omits = |path: &Path| reach.omits(path, reach.workspace().root());
        let mut resources = Vec::new();
        let (attachments, mut refused) = mentions::expand_mentions(message, |name| {
            let resource = name.split_once(':').filter(|(_, uri)| !uri.is_empty() && !uri.ends_with(CLOSING));
            match (mentions::read_mention(&self.workspace, name, omits), resource, &servers) {
                (Mentioned::Nothing, Some((server, uri)), Some(servers)) if servers.find(server).is_some() => {
                    resources.push((server.to_owned(), uri.to_owned()));
                    Mentioned::Elsewhere
                }
                (read, ..) => read,
            }
        });
        let mut read = Vec::new();
        for (server, uri) in resources {
            let Some(servers) = &servers else { break };
            match servers.read_resource(&server, &uri).await {
                Ok(text) => read.push((server, uri, text)),
                Err(why) => refused.push(format!("@{server}:{uri} is not attached: {why}")),
            }
        }
        self.attached.texts.extend(attachments);
        for (server, uri, text) in read {
            self.take_from_outside(&format!("the server {server}"));
            self.attach(format!("{server}:{uri}"), &text);
        }
        refused
    }

    /// Attaches a text to the next message, with known secrets masked.
    pub(super) fn attach(&mut self, name: String, content: &str) {
        let content = self.services.agent.redactor.redact(content).into_owned();
        self.attached.texts.push(Attachment { name, content });
    }

    /// The switch that stops the running turn.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// True if the prompt's messages end with a user message, so the model answers first. Also true if that cannot be
    /// determined: the turn then reports the error.
    pub(super) fn is_asked(&self) -> bool {
        self.services.agent.is_asked(&self.conversation, &self.run.emitter.run_id()).unwrap_or(true)
    }

    /// Takes one turn. The sink shows everything that happens in it. Dropping the future stops it.
    ///
    /// Without a message, the turn answers the user message that ends the prompt's messages.
    ///
    /// # Errors
    /// It did not begin: a skill or a prompt is wrong.
    pub(super) async fn turn(&mut self, message: Option<String>) -> Result<RunEnd, Ending> {
        self.begin_run();
        self.heard.begin(self.conversation.left_out());
        let input = RunInput {
            said: message.map(UserText::by_person),
            skills: std::mem::take(&mut self.skills),
            attached: std::mem::take(&mut self.attached),
            keeps_background: true,
            ..RunInput::default()
        };
        let agent = &self.services.agent;
        let ended = run_input(agent, &mut self.conversation, &mut self.run, input, &self.cancel).await;
        self.may_need_title = ended.as_ref().is_ok_and(|end| end.ending.code == exit::DONE);
        self.take_back();
        ended
    }

    /// Gives the conversation a title after its first turn.
    pub(super) async fn give_title(&mut self) {
        if std::mem::take(&mut self.may_need_title) {
            let agent = &self.services.agent;
            let warning = title_conversation(agent, &mut self.conversation, &mut self.run, &self.cancel).await;
            self.run.emitter.warn(warning);
        }
    }

    /// Begins the run of a turn or of a compression.
    pub(super) fn begin_run(&mut self) {
        self.cancel.reset();
        self.run.begin(self.conversation.session.id(), assembly::new_run_id());
    }

    /// What a person who leaves says to come back.
    pub fn tell_way_back(&self) -> Option<String> {
        let session = &self.conversation.session;
        let is_kept = !self.is_ephemeral && session.turns() > 0;
        is_kept.then(|| format!("To go on with this: agent --continue, or agent --session {}", session.id()))
    }

    /// The last exchange of a conversation that goes on.
    pub fn last_exchange(&self) -> Option<(&str, String)> {
        let items = self.conversation.session.items();
        let (at, said) =
            items.iter().enumerate().rev().find_map(|(at, item)| Some((at, item.said_by_person()?)))?;
        let answer =
            items[at..].iter().rev().filter_map(Item::as_step).map(Step::text).find(|text| !text.is_empty());
        Some((said, answer.unwrap_or_default()))
    }

    /// Kills the background commands, because the person left the conversation or is gone.
    pub fn end_background(&self) {
        self.run.emitter.warn(self.services.agent.end_background());
    }

    /// Renders a table of the next request. The system prompt is rendered first, because it is part of the request.
    pub(super) fn table(
        &mut self,
        table: fn(&Agent, &mut Conversation, &mut Run) -> String,
    ) -> Result<String, String> {
        let agent = &self.services.agent;
        refresh_prompt(agent, &mut self.conversation, &self.run, &self.cancel)
            .map_err(|refused| refused.reason)?;
        Ok(table(agent, &mut self.conversation, &mut self.run))
    }

    /// Goes on with another conversation. If that cannot be opened, this one stays.
    pub(super) async fn go_to(&mut self, choice: &SessionChoice) -> Result<(), SetupError> {
        let store = assembly::open_store(&self.config);
        let opened = assembly::open_conversation(&store, &self.origin, choice, &self.services.agent)?;
        self.require_place(opened.conversation.session.find_copy())?;
        self.run.emitter.warn(opened.warnings);
        let before = std::mem::replace(&mut self.conversation, opened.conversation);
        self.is_ephemeral = false;
        self.run.emitter.report_hooks(end_session(&self.services.agent, &before, "resume").await);
        Ok(())
    }

    /// Replaces the conversation with a new one. Returns the old one.
    pub(super) async fn clear(&mut self) -> Result<Conversation, SetupError> {
        self.require_place(None)?;
        let choice = if self.is_ephemeral { SessionChoice::Ephemeral } else { SessionChoice::New };
        let agent = &self.services.agent;
        let opened =
            assembly::open_conversation(&assembly::open_store(&self.config), &self.origin, &choice, agent)?;
        self.end_background();
        let before = std::mem::replace(&mut self.conversation, opened.conversation);
        self.run.emitter.report_hooks(end_session(&self.services.agent, &before, "clear").await);
        Ok(before)
    }

    /// Tells the hooks that the person leaves, and shows which of them failed. Old sessions go, if the settings say so.
    pub async fn tell_end(&self) {
        self.run.emitter.report_hooks(end_session(&self.services.agent, &self.conversation, "exit").await);
        assembly::apply_retention(&self.config);
    }

    /// Takes in what a trial changed; returns what is to be shown. `None` if this is none.
    pub fn end_trial(&self) -> Option<String> {
        end_trial(&self.config, &self.conversation)
    }

    /// A conversation belongs to one directory: to the workspace (`None`), or to a copy of it.
    fn require_place(&self, copy: Option<&Path>) -> Result<(), SetupError> {
        let root = self.workspace.root();
        let own = self.workspace.layer().or_else(|| Some(root).filter(|root| *root != self.origin.root()));
        let why = match (own, copy) {
            _ if own == copy => return Ok(()),
            (Some(_), _) => "a trial has one conversation: leave this chat for another one",
            (None, _) => "that one is a trial, with files of its own: agent --session ID goes on with it",
        };
        Err(SetupError { kind: SetupErrorKind::Usage, message: why.to_owned() })
    }
}
