//! Opens the session of a run.

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
#[must_use]
pub fn store(config: &Config) -> Store {
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

/// Makes an id for the run of one process, or of one turn in a chat.
#[must_use]
pub fn new_run_id() -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(12).map(|c| c.to_ascii_lowercase()).collect()
}
