//! Why a skill, or a file of it, cannot be given.

/// Written for whoever asked, model or person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SkillError {
    pub kind: SkillErrorKind,
    pub message: String,
}

/// Who can do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillErrorKind {
    /// There is no such skill, file or line: asking for another one helps.
    Unknown,
    /// The path leads out of the skill's folder.
    Outside,
    /// The file is there, but cannot be read.
    Unreadable,
}

impl SkillError {
    pub(super) fn new(kind: SkillErrorKind, message: String) -> Self {
        Self { kind, message }
    }
}
