//! The errors of loading a skill or reading one of its files.

/// An error, written for the model or the person who asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SkillError {
    pub kind: SkillErrorKind,
    pub message: String,
}

/// The kind of an error, which says who can fix it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillErrorKind {
    /// There is no such skill, file or line: asking for another one helps.
    Unknown,
    /// The path leads out of the skill's folder.
    Outside,
    /// The file exists but cannot be read.
    Unreadable,
}

impl SkillError {
    pub(super) fn new(kind: SkillErrorKind, message: String) -> Self {
        Self { kind, message }
    }
}
