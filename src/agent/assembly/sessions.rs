//! Opens the session of a run.

use std::path::Path;

use jiff::Timestamp;

use crate::agent::{Agent, Conversation};
use crate::base::text;
use crate::config::Config;
use crate::conversation::session::{About, Session, SessionError, Store};
use crate::files::workspace::Workspace;

use super::SetupError;

/// The choice of a session for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    New,
    /// A new one, in memory only.
    Ephemeral,
    /// The latest of this workspace.
    Latest,
    /// One given by its id, the start of it, or its title.
    Id(String),
    /// A copy of one.
    Fork(ForkPoint),
}

/// The session to copy, and up to where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPoint {
    /// Its id, the start of it, or its title.
    pub id: String,
    /// The message of the person before which the copy ends (`m12`), or a checkpoint; all is copied without.
    pub at: Option<String>,
}

/// Copies a session. Returns the id of the copy.
///
/// # Errors
/// There is no such session or message, or a log cannot be read or written.
pub fn fork_session(store: &Store, point: &ForkPoint, now: Timestamp) -> Result<String, SetupError> {
    if let Some(message) = &point.at {
        let (session, _) = store.read(&point.id).map_err(SetupError::session)?;
        session.count_since(message).map_err(SetupError::usage)?;
    }
    let id = store.fork(&point.id, now).map_err(SetupError::session)?;
    if let Some(message) = &point.at {
        let (fork, _) = store.open(&id, now).map_err(SetupError::session)?;
        let messages = fork.count_since(message).map_err(SetupError::usage)?;
        if messages > 0 {
            fork.undo(messages, now).map_err(SetupError::session)?;
        }
    }
    Ok(id)
}

/// The store of sessions.
pub fn open_store(config: &Config) -> Store {
    Store::new(config.session_dir())
}

/// A conversation that was opened or begun.
pub struct OpenedConversation {
    pub conversation: Conversation,
    /// Which conversation goes on, if the choice did not name it.
    pub note: Option<String>,
    /// Repairs, and what was left out.
    pub warnings: Vec<String>,
}

/// Opens or begins a conversation.
///
/// # Errors
/// There is no such session, or it cannot be read or locked.
pub fn open_conversation(
    store: &Store,
    workspace: &Workspace,
    choice: &SessionChoice,
    agent: &Agent,
) -> Result<OpenedConversation, SetupError> {
    let now = Timestamp::now();
    let Some(chosen) = choose_session(store, workspace, choice, now)? else {
        let conversation = match choice {
            SessionChoice::New => {
                let session = store.create(describe_session(agent, workspace.root()), now);
                let conversation = Conversation::new(session, now);
                // The log names the workspace as text, so a later process would not find it.
                if let (None, Some(history)) = (workspace.root().to_str(), conversation.file_history()) {
                    history
                        .stop("changes here cannot be undone: the name of the workspace is not UTF-8".to_owned());
                }
                conversation
            }
            _ => unsaved_conversation(agent, now),
        };
        return Ok(OpenedConversation { conversation, note: None, warnings: Vec::new() });
    };
    let (session, repairs) = store.open(&chosen.id, now).map_err(SetupError::session)?;
    Ok(chosen.opened(session, repairs, now, workspace))
}

/// Changes the log of a conversation's session, which goes on with what the log says then.
///
/// # Errors
/// The log cannot be changed or read.
pub fn edit_session<T>(
    store: &Store,
    workspace: &Workspace,
    agent: &Agent,
    conversation: &mut Conversation,
    change: impl FnOnce(Session) -> Result<T, SessionError>,
) -> Result<T, SetupError> {
    let choice = SessionChoice::Id(conversation.session.id().to_owned());
    let before = std::mem::replace(conversation, unsaved_conversation(agent, Timestamp::now()));
    let grants = before.grants;
    let changed = change(before.session);
    *conversation = open_conversation(store, workspace, &choice, agent)?.conversation;
    // What a person allows holds for the session.
    conversation.grants = grants;
    changed.map_err(SetupError::session)
}

/// Reads or begins a conversation, none of which is kept.
///
/// # Errors
/// There is no such session, or it cannot be read.
pub fn read_conversation(
    store: &Store,
    workspace: &Workspace,
    choice: &SessionChoice,
    agent: &Agent,
) -> Result<OpenedConversation, SetupError> {
    let now = Timestamp::now();
    let source = match choice {
        SessionChoice::Fork(ForkPoint { id, at: None }) => &SessionChoice::Id(id.clone()),
        SessionChoice::Fork(_) => {
            let why = "--at changes a copy, so nothing can be shown of it: `agent session fork` makes one";
            return Err(SetupError::usage(why));
        }
        other => other,
    };
    let Some(chosen) = choose_session(store, workspace, source, now)? else {
        let conversation = unsaved_conversation(agent, now);
        return Ok(OpenedConversation { conversation, note: None, warnings: Vec::new() });
    };
    let (session, repairs) = store.read_settled(&chosen.id, now).map_err(SetupError::session)?;
    Ok(chosen.opened(session, repairs, now, workspace))
}

/// A conversation in memory only.
pub(super) fn unsaved_conversation(agent: &Agent, now: Timestamp) -> Conversation {
    Conversation::new(Session::ephemeral(describe_session(agent, agent.workspace.root()), now), now)
}

/// An earlier session that goes on.
struct ChosenSession {
    id: String,
    note: Option<String>,
    left_out: Vec<String>,
}

impl ChosenSession {
    fn opened(
        self,
        session: Session,
        repairs: Vec<String>,
        now: Timestamp,
        workspace: &Workspace,
    ) -> OpenedConversation {
        let warnings = self.left_out.into_iter().chain(repairs).collect();
        let (conversation, here) = (Conversation::new(session, now), workspace.root());
        let (its, root) = (conversation.session.describe().workspace, conversation.session.find_root());
        // Its journal is of the files there.
        if let Some(history) = conversation.shared.history.as_ref().filter(|_| its != here && root != here) {
            history.stop(format!("changes here cannot be undone: the session is of {}", its.display()));
        }
        OpenedConversation { conversation, note: self.note, warnings }
    }
}

/// The earlier session that the choice means, if it is one.
fn choose_session(
    store: &Store,
    workspace: &Workspace,
    choice: &SessionChoice,
    now: Timestamp,
) -> Result<Option<ChosenSession>, SetupError> {
    match choice {
        SessionChoice::New | SessionChoice::Ephemeral => Ok(None),
        SessionChoice::Id(id) => Ok(Some(ChosenSession { id: id.clone(), note: None, left_out: Vec::new() })),
        SessionChoice::Fork(point) => {
            let id = fork_session(store, point, now)?;
            let note = Some(format!("A copy of {} goes on (session {id}).", text::make_visible(&point.id)));
            Ok(Some(ChosenSession { id, note, left_out: Vec::new() }))
        }
        SessionChoice::Latest => {
            let (latest, left_out) = store.latest(workspace.root(), now).map_err(SetupError::from_failure)?;
            let left_out: Vec<String> = left_out.iter().map(|error| format!("left out: {error}")).collect();
            let latest = latest.ok_or_else(|| {
                let why = "there is no session in this workspace to continue; leave --continue out";
                SetupError::usage(
                    std::iter::once(why).chain(left_out.iter().map(String::as_str)).collect::<Vec<_>>().join("; "),
                )
            })?;
            let title = if latest.title.is_empty() { "a session without a message" } else { &latest.title };
            let note = format!("Continuing {title:?}, {} (session {}).", latest.describe_age(now), latest.id);
            Ok(Some(ChosenSession { note: Some(text::make_visible(&note).into_owned()), id: latest.id, left_out }))
        }
    }
}

/// What a session says about the agent that writes it.
pub(super) fn describe_session<'a>(agent: &'a Agent, workspace: &'a Path) -> About<'a> {
    let layer = agent.workspace.layer();
    let copy = layer.or_else(|| Some(agent.workspace.root()).filter(|root| *root != workspace));
    About { workspace, copy, is_layer: layer.is_some(), agent: &agent.name, model: &agent.model.info().id }
}

/// Makes an id for the run of one process, or of one turn in a chat.
pub fn new_run_id() -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(12).map(|c| c.to_ascii_lowercase()).collect()
}
