//! The account that a check of `agent doctor` gives.

/// The account of one check, in one or several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub of: &'static str,
    pub health: Health,
    pub says: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Good,
    /// Weaker than it could be; a run works.
    Weak,
    /// Something is to be done before a run works.
    Bad,
}

impl Check {
    pub fn new(of: &'static str, health: Health, says: impl Into<String>) -> Self {
        Self { of, health, says: says.into() }
    }
}
