//! Opens the session of a run.

use std::path::Path;

use jiff::Timestamp;

use crate::agent::{Agent, Conversation};
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

/// Opens or begins a conversation. Also returns warnings about repairs.
///
/// # Errors
/// There is no such session, or it cannot be read or locked.
pub fn open_conversation(
    store: &Store,
    workspace: &Workspace,
    choice: &SessionChoice,
    agent: &Agent,
) -> Result<(Conversation, Vec<String>), SetupError> {
    let now = Timestamp::now();
    let (session, warnings) = match chosen_id(store, workspace, choice)? {
        Some(id) => store.open(&id, now).map_err(SetupError::session)?,
        None if *choice == SessionChoice::New => {
            (store.create(describe_session(agent, workspace.root()), now), Vec::new())
        }
        None => return Ok((unsaved_conversation(agent, now), Vec::new())),
    };
    Ok((Conversation::new(session, now), warnings))
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
) -> Result<(Conversation, Vec<String>), SetupError> {
    let now = Timestamp::now();
    let Some(id) = chosen_id(store, workspace, choice)? else {
        return Ok((unsaved_conversation(agent, now), Vec::new()));
    };
    let (session, warnings) = store.read_settled(&id, now).map_err(SetupError::session)?;
    Ok((Conversation::new(session, now), warnings))
}

/// A conversation in memory only.
pub(super) fn unsaved_conversation(agent: &Agent, now: Timestamp) -> Conversation {
    Conversation::new(Session::ephemeral(describe_session(agent, agent.workspace.root()), now), now)
}

/// The id of an earlier session, if the choice is one.
fn chosen_id(store: &Store, workspace: &Workspace, choice: &SessionChoice) -> Result<Option<String>, SetupError> {
    match choice {
        SessionChoice::New | SessionChoice::Ephemeral => Ok(None),
        SessionChoice::Id(id) => Ok(Some(id.clone())),
        SessionChoice::Latest => {
            let latest = store.latest(workspace.root()).map_err(SetupError::from_failure)?;
            let latest = latest.ok_or_else(|| {
                SetupError::usage("there is no session in this workspace to continue; leave --continue out")
            })?;
            Ok(Some(latest.id))
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
