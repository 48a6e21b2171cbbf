//! Errors of opening or writing a session.

use std::io;
use std::path::{Path, PathBuf};

use super::entry::{FORMAT_VERSION, OLDEST_VERSION};

/// An error, with a hint if the user can act on it.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("there is no session `{id}`{hint}; `agent session list` shows them")]
    Unknown { id: String, hint: String },

    #[error("`{id}` is the beginning or the title of several sessions: {ids}; write more of an id")]
    Ambiguous { id: String, ids: String },

    #[error("session {id} is in use by another process; wait for it, or start a new session")]
    Locked { id: String },

    #[error("{} was written by {writer} (format {found}; this one reads {known}){advice}", .path.display())]
    OtherFormat { path: PathBuf, found: u64, writer: &'static str, known: String, advice: &'static str },

    #[error("{} is not a session log: {why}", .path.display())]
    NotALog { path: PathBuf, why: String },

    #[error("session {id} has {steps} steps; there is none with the number {step}")]
    NoStep { id: String, step: u64, steps: u64 },

    /// The disk failed. Nothing in memory is lost; unwritten entries are tried again with the next entry.
    #[error("{} cannot be {doing}", .path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
}

impl SessionError {
    /// The next step for a person, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io { doing: "created" | "written" | "synced", .. } => Some(
                "--ephemeral keeps the session only in memory; the `dir` of the session store, else XDG_DATA_HOME, names their place",
            ),
            _ => None,
        }
    }

    pub(super) fn other_format(path: &Path, found: u64) -> Self {
        let (writer, advice) = if found > u64::from(FORMAT_VERSION) {
            ("a newer version of agent", ": update agent to open it")
        } else {
            ("an older version of agent", "")
        };
        let known = format!("{OLDEST_VERSION} to {FORMAT_VERSION}");
        Self::OtherFormat { path: path.to_path_buf(), found, writer, known, advice }
    }

    pub(super) fn io(path: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), doing, source }
    }
}
