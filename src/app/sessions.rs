//! Opening the session that a run goes on with.

use jiff::Timestamp;

use crate::agent::{Agent, Conversation};
use crate::config::Config;
use crate::session::{About, Session, Store};
use crate::workspace::Workspace;

use super::SetupError;

/// Which session a run is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    New,
    /// In memory only.
    Ephemeral,
    /// This workspace's latest.
    Latest,
    /// By its id, or by the beginning of it.
    Id(String),
}

/// Where sessions live.
#[must_use]
pub fn store(config: &Config) -> Store {
    Store::new(config.session_dir())
}

/// Opens or begins a conversation. The warnings say what had to be repaired.
///
/// # Errors
/// When there is no such session, or it cannot be read or locked.
pub fn open_conversation(
    store: &Store,
    workspace: &Workspace,
    choice: &SessionChoice,
    agent: &Agent,
) -> Result<(Conversation, Vec<String>), SetupError> {
    let now = Timestamp::now();
    let info = agent.model.info();
    let about = About { workspace: workspace.root(), agent: &agent.name, model: &info.id };
    let id = match choice {
        SessionChoice::Ephemeral => {
            return Ok((Conversation::new(Session::ephemeral(about, now), now), Vec::new()));
        }
        SessionChoice::New => return Ok((Conversation::new(store.create(about, now), now), Vec::new())),
        SessionChoice::Id(id) => id.clone(),
        SessionChoice::Latest => {
            let latest = store.latest(workspace.root()).map_err(SetupError::failed)?;
            let latest = latest.ok_or_else(|| {
                SetupError::usage("there is no session in this workspace to continue; leave --continue out")
            })?;
            latest.id
        }
    };
    let (session, warnings) = store.open(&id, now).map_err(SetupError::session)?;
    Ok((Conversation::new(session, now), warnings))
}

/// A name for what one process, or one turn of a chat, does.
#[must_use]
pub fn new_run_id() -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(12).map(|c| c.to_ascii_lowercase()).collect()
}
