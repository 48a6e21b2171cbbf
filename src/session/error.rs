//! Why a session cannot be opened or kept.

use std::io;
use std::path::PathBuf;

/// What went wrong, with what to do about it where something can be done.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("there is no session `{id}`{hint}; `agent session list` shows them")]
    Unknown { id: String, hint: String },

    #[error("`{id}` is the beginning of several sessions: {ids}; write more of it")]
    Ambiguous { id: String, ids: String },

    #[error("session {id} is in use by another process; wait for it, or start a new session")]
    Locked { id: String },

    #[error("{} was written by a newer version of agent (format {found}; this one reads {known})", .path.display())]
    TooNew { path: PathBuf, found: u64, known: u32 },

    #[error("{} is not a session log: {why}", .path.display())]
    NotALog { path: PathBuf, why: String },

    /// The disk is in the way. Nothing in memory is lost; what could not be written is tried again with the next
    /// entry.
    #[error("{} cannot be {doing}", .path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
}

impl SessionError {
    pub(super) fn io(path: &std::path::Path, doing: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), doing, source }
    }
}
