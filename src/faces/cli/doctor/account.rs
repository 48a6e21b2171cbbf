//! The result of a check of `agent doctor`.

/// The result of one check, in one or several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DoctorCheck {
    pub health: Health,
    pub says: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Good,
    /// A run works, but something is weaker than it could be.
    Weak,
    /// Something needs fixing before a run works.
    Bad,
}

impl DoctorCheck {
    pub fn good(says: impl Into<String>) -> Self {
        Self { health: Health::Good, says: says.into() }
    }

    pub fn weak(says: impl Into<String>) -> Self {
        Self { health: Health::Weak, says: says.into() }
    }

    pub fn bad(says: impl Into<String>) -> Self {
        Self { health: Health::Bad, says: says.into() }
    }
}
