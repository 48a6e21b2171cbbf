//! A chat: a conversation, its agent and its turns. Each turn is a separate run in the same session.

use std::sync::Arc;

use jiff::Timestamp;

use super::at_hand::AtHand;
use super::look::Heard;
use super::mentions;
use crate::agent::assembly::{self, Options, Services, SessionChoice, SetupError};
use crate::agent::exit::{self, Signal};
use crate::agent::{
    Agent, Cancel, Conversation, Emitter, Input, Run, Stop, TurnEnd, already_loaded, brief, completed,
    load_skills, settle, started, take_turn,
};
use crate::base::image::Image;
use crate::config::{Config, OwnCommand, OwnCommands};
use crate::conversation::EventSink;
use crate::conversation::attachment::{Attachment, attach};
use crate::conversation::message::{Item, Said};
use crate::files::workspace::Workspace;
use crate::safety::Approver;
use crate::screen::{Fanout, Outlets, Rendering};
use crate::skills::Catalogue;

/// The parts needed to open a chat.
pub struct Opening {
    pub config: Arc<Config>,
    pub workspace: Workspace,
    pub options: Options,
    pub approver: Arc<dyn Approver>,
    pub session: SessionChoice,
    /// Files to attach to the first message.
    pub attached: Vec<Attachment>,
    /// Skills to load with the first message.
    pub skills: Vec<String>,
    /// The Markdown switch, shared with the screen.
    pub rendering: Rendering,
    /// The commands of the person and of the project.
    pub own: OwnCommands,
    pub at_hand: AtHand,
}

/// A conversation with an agent. `/clear` replaces the conversation, `switch` the agent.
pub struct Chat {
    pub(super) config: Arc<Config>,
    pub(super) workspace: Workspace,
    pub(super) options: Options,
    pub(super) approver: Arc<dyn Approver>,
    pub(super) services: Services,
    /// The chat's own agent, while a turn uses another model.
    pub(super) own_services: Option<Services>,
    pub(super) conversation: Conversation,
    pub(super) run: Run,
    /// Files to attach to the next message.
    attached: Vec<Attachment>,
    /// Pictures to attach to the next message.
    pub(super) images: Vec<Image>,
    /// Skills to load with the next message.
    pub(super) skills: Vec<String>,
    /// The commands of the person and of the project.
    pub(super) own: Vec<OwnCommand>,
    /// The keys that were set in this chat.
    pub(super) sets: Vec<String>,
    pub(super) at_hand: AtHand,
    pub(super) is_ephemeral: bool,
    pub(super) rendering: Rendering,
    pub(super) heard: Heard,
    /// A turn has begun and its end has not been emitted.
    in_turn: bool,
}

/// The end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It ended; the exit code that it would have as a run.
    With(u8),
    /// stdout is closed: nobody sees later output.
    Unseen,
}

impl Chat {
    /// Assembles the agent and opens the session. Events go to `sink`, at the pace at which `outlets` are read.
    ///
    /// # Errors
    /// The agent cannot be assembled, or the session cannot be opened.
    pub fn open(opening: Opening, sink: Box<dyn EventSink>, outlets: &Outlets) -> Result<Self, SetupError> {
        let Opening { config, workspace, options, approver, session, attached, skills, rendering, own, at_hand } =
            opening;
        let mut services = assembly::assemble(&config, &workspace, &options, Arc::clone(&approver))?;
        let (conversation, notes) =
            assembly::open_conversation(&assembly::store(&config), &workspace, &session, &services.agent)?;
        let heard = Heard::default();
        let sink = Box::new(Fanout { sinks: vec![sink, Box::new(heard.clone())] });
        let emitter = Emitter::new(conversation.session.id().to_owned(), assembly::new_run_id(), sink);
        let run = Run::new(emitter.through(Box::new(outlets.clone())));
        run.emitter.warn(services.warnings.drain(..).chain(notes));
        run.emitter.warn(own.mistakes.iter().map(ToString::to_string).chain(own.warnings));
        let is_ephemeral = matches!(session, SessionChoice::Ephemeral);
        Ok(Self {
            config,
            workspace,
            options,
            approver,
            services,
            own_services: None,
            conversation,
            run,
            attached,
            images: Vec::new(),
            skills,
            own: own.found,
            sets: Vec::new(),
            at_hand,
            is_ephemeral,
            rendering,
            heard,
            in_turn: false,
        })
    }

    /// The agent's skills.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.services.catalogue
    }

    /// Attaches the files that `message` mentions. Returns the reasons that others are not attached.
    pub(super) fn attach_mentioned(&mut self, message: &str) -> Vec<String> {
        let (attachments, refused) = mentions::expand(message, |name| mentions::read(&self.workspace, name));
        self.attached.extend(attachments);
        refused
    }

    /// Attaches a text to the next message, with known secrets masked.
    pub(super) fn attach(&mut self, name: String, content: &str) {
        let content = self.services.agent.redactor.redact(content).into_owned();
        self.attached.push(Attachment { name, content });
    }

    /// True if the prompt's messages end with a user message, so the model answers first. Also true if that cannot be
    /// determined: the turn then reports the error.
    pub(super) fn is_asked(&self) -> bool {
        let opening = self.services.agent.opening(&self.conversation, &self.run.emitter.run_id());
        opening.map_or(true, |items| matches!(items.last(), Some(Item::Said(_))))
    }

    /// Takes one turn. The sink shows everything that happens in it. Dropping the future stops it.
    ///
    /// Without a message, the turn answers the user message that ends the prompt's messages.
    pub(super) async fn turn(&mut self, message: Option<String>) -> Ended {
        self.in_turn = true;
        self.begin_run();
        self.heard.begin(self.conversation.left_out());
        let agent = &self.services.agent;
        self.run.emitter.notify(started(agent, self.conversation.session.id()));
        let opened = agent.opening(&self.conversation, &self.run.emitter.run_id());
        let (mut said, opened) = with_asked(message, opened);
        let (skills, attached) = (std::mem::take(&mut self.skills), std::mem::take(&mut self.attached));
        let prepared = load_skills(agent, &self.conversation, &mut said, &skills)
            .map_err(anyhow::Error::from)
            .and_then(|events| Ok((events, opened?)))
            .and_then(|(events, opening)| {
                self.run.emitter.warn(already_loaded(&skills, &events));
                for event in events {
                    self.run.emitter.notify(event);
                }
                Ok((brief(agent, &mut self.conversation, &self.run)?, opening))
            });
        said.text = attach(&said.text, &attached);
        said.images.append(&mut self.images);
        let end = match prepared {
            Ok((notes, opening)) => {
                self.run.emitter.warn(notes);
                let input = Input { opening, said };
                take_turn(agent, &mut self.conversation, &mut self.run, input, &Cancel::default()).await
            }
            Err(error) => TurnEnd { stop: Stop::Failed(error), answer: String::new() },
        };
        self.finish(&end, None)
    }

    /// Begins the run of a turn or of a compression.
    pub(super) fn begin_run(&mut self) {
        self.run.begin(self.conversation.session.id(), assembly::new_run_id());
    }

    /// Settles the turn that Ctrl-C dropped.
    pub(super) fn interrupted(&mut self) -> Ended {
        self.end_background();
        self.settle_turn(None)
    }

    /// Settles the command that Ctrl-C dropped: counts its unfinished request.
    pub(super) fn command_interrupted(&mut self) {
        if let Err(stop) = self.settle() {
            self.run.emitter.warn([self.reason(&stop)]);
        }
    }

    /// Settles the turn that a signal dropped, if one was running.
    pub fn ended_by(&mut self, signal: Signal) {
        self.end_background();
        if self.in_turn {
            self.settle_turn(Some(signal));
        }
    }

    /// Kills the background commands, because the person stopped a turn, left the conversation or is gone.
    pub fn end_background(&self) {
        self.run.emitter.warn(self.services.agent.end_background());
    }

    fn settle_turn(&mut self, signal: Option<Signal>) -> Ended {
        let stop = self.settle().err().unwrap_or(Stop::Interrupted);
        self.finish(&TurnEnd { stop, answer: String::new() }, signal)
    }

    fn settle(&mut self) -> Result<(), Stop> {
        settle(&self.services.agent, &mut self.conversation, &mut self.run, &Stop::Interrupted)
    }

    /// Records the end of the turn in the session, and emits it.
    fn finish(&mut self, end: &TurnEnd, signal: Option<Signal>) -> Ended {
        self.in_turn = false;
        let agent = &self.services.agent;
        let mut ending = exit::ending(&end.stop, self.run.totals.unasked, signal);
        ending.reason = agent.redactor.redact(&ending.reason).into_owned();
        if let Err(error) = self.conversation.session.end_turn(&ending.reason, ending.code, Timestamp::now()) {
            let message = format!("the session is not kept on disk: {:#}", anyhow::Error::from(error));
            self.run.emitter.warn([message]);
        }
        let seen = self.run.emitter.emit(completed(agent, &self.run, &ending, end));
        self.take_back();
        match seen {
            Ok(()) => Ended::With(ending.code),
            Err(_) => Ended::Unseen,
        }
    }

    /// The reason of `stop`, with secrets masked.
    pub(super) fn reason(&self, stop: &Stop) -> String {
        self.services.agent.redactor.redact(&exit::ending(stop, 0, None).reason).into_owned()
    }

    /// Renders a table of the next request. The system prompt is rendered first, because it is part of the request.
    pub(super) fn table(
        &mut self,
        table: fn(&Agent, &mut Conversation, &mut Run) -> String,
    ) -> Result<String, String> {
        let agent = &self.services.agent;
        let notes = brief(agent, &mut self.conversation, &self.run).map_err(|error| format!("{error:#}"))?;
        self.run.emitter.warn(notes);
        Ok(table(agent, &mut self.conversation, &mut self.run))
    }

    /// Replaces the conversation with a new one. Returns the old one.
    pub(super) fn clear(&mut self) -> Result<Conversation, SetupError> {
        let choice = if self.is_ephemeral { SessionChoice::Ephemeral } else { SessionChoice::New };
        let agent = &self.services.agent;
        let (conversation, _) =
            assembly::open_conversation(&assembly::store(&self.config), &self.workspace, &choice, agent)?;
        self.end_background();
        Ok(std::mem::replace(&mut self.conversation, conversation))
    }
}

/// Returns the input of a turn and the messages before it. Without a message, the last of them is the input.
fn with_asked(message: Option<String>, opened: anyhow::Result<Vec<Item>>) -> (Said, anyhow::Result<Vec<Item>>) {
    let Some(message) = message else {
        let mut items = opened;
        let asked = items.as_mut().ok().and_then(|items| items.pop_if(|last| matches!(last, Item::Said(_))));
        return match asked {
            Some(Item::Said(said)) => (said, items),
            _ => (Said::by_person(""), items),
        };
    };
    (Said::by_person(message), opened)
}
