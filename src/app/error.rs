//! Why no agent could be put together, by kind: the front end makes an exit code of it.

use crate::config::Mistake;
use crate::session::SessionError;

/// Why no agent could be put together.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SetupError {
    pub kind: SetupErrorKind,
    pub message: String,
}

/// Who can mend it.
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
    pub(super) fn usage(message: impl ToString) -> Self {
        Self { kind: SetupErrorKind::Usage, message: message.to_string() }
    }

    pub(super) fn configuration(message: impl ToString) -> Self {
        Self { kind: SetupErrorKind::Configuration, message: message.to_string() }
    }

    pub(super) fn authentication(message: impl ToString) -> Self {
        Self { kind: SetupErrorKind::Authentication, message: message.to_string() }
    }

    pub(super) fn mistakes(mistakes: &[Mistake]) -> Self {
        Self::configuration(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n"))
    }

    /// A session that does not exist is the mistake of whoever named it; one that cannot be used is not.
    pub(super) fn session(error: SessionError) -> Self {
        match error {
            SessionError::Unknown { .. } | SessionError::Ambiguous { .. } => Self::usage(error),
            error => Self::failed(error),
        }
    }

    pub(super) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: SetupErrorKind::Failed, message: format!("{:#}", error.into()) }
    }

    /// The same as a mistake of the configuration of an agent.
    pub(super) fn into_mistake(self, agent: &str) -> Mistake {
        Mistake::in_file(format!("agent `{agent}`"), self.message)
    }
}
