//! Opens the session of a run.

use std::path::Path;

use jiff::Timestamp;

use crate::agent::{Agent, Conversation};
use crate::base::text;
use crate::config::Config;
use crate::conversation::session::{About, Session, Store};
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
    /// One given by its id or the start of it.
    Id(String),
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
                Conversation::new(store.create(describe_session(agent, workspace.root()), now), now)
            }
            _ => unsaved_conversation(agent, now),
        };
        return Ok(OpenedConversation { conversation, note: None, warnings: Vec::new() });
    };
    let (session, repairs) = store.open(&chosen.id, now).map_err(SetupError::session)?;
    Ok(chosen.opened(session, repairs, now))
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
    let Some(chosen) = choose_session(store, workspace, choice, now)? else {
        let conversation = unsaved_conversation(agent, now);
        return Ok(OpenedConversation { conversation, note: None, warnings: Vec::new() });
    };
    let (session, repairs) = store.read_settled(&chosen.id, now).map_err(SetupError::session)?;
    Ok(chosen.opened(session, repairs, now))
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
    fn opened(self, session: Session, repairs: Vec<String>, now: Timestamp) -> OpenedConversation {
        let warnings = self.left_out.into_iter().chain(repairs).collect();
        OpenedConversation { conversation: Conversation::new(session, now), note: self.note, warnings }
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
    About { workspace, agent: &agent.name, model: &agent.model.info().id }
}

/// Makes an id for the run of one process, or of one turn in a chat.
pub fn new_run_id() -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(12).map(|c| c.to_ascii_lowercase()).collect()
}
