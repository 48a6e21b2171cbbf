//! The errors of assembling an agent, by kind: the front end maps a kind to an exit code.

use crate::config::{ConfigError, Mistake};
use crate::conversation::session::SessionError;

/// The reason that no agent could be assembled.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SetupError {
    pub kind: SetupErrorKind,
    pub message: String,
}

/// The kind of error, by who can fix it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupErrorKind {
    /// Whoever typed the command.
    Usage,
    /// Whoever wrote the configuration.
    Configuration,
    /// Whoever has the key.
    Authentication,
    /// A session that cannot be opened, a disk that cannot be written.
    Failed,
}

impl SetupError {
    pub fn usage(message: impl ToString) -> Self {
        Self { kind: SetupErrorKind::Usage, message: message.to_string() }
    }

    pub fn configuration(message: impl ToString) -> Self {
        Self { kind: SetupErrorKind::Configuration, message: message.to_string() }
    }

    pub(super) fn authentication(message: impl ToString) -> Self {
        Self { kind: SetupErrorKind::Authentication, message: message.to_string() }
    }

    pub(super) fn mistakes(mistakes: &[Mistake]) -> Self {
        Self::configuration(ConfigError { mistakes: mistakes.to_vec() })
    }

    /// Maps a session that does not exist or is none to a usage error, and one that cannot be used to a failure.
    pub fn session(error: SessionError) -> Self {
        match error {
            SessionError::Unknown { .. }
            | SessionError::Ambiguous { .. }
            | SessionError::OtherFormat { .. }
            | SessionError::NotALog { .. } => Self::usage(error),
            error => Self::from_failure(error),
        }
    }

    pub(super) fn from_failure(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: SetupErrorKind::Failed, message: format!("{:#}", error.into()) }
    }
}
