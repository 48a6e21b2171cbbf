//! The forms of the boundary, depending on what a system supports, and their weaknesses.

/// The form in which the boundary is enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundaryForm {
    /// Commands have their own file system, processes and network, and rules for their calls besides.
    Whole,
    /// In namespaces as before, on a kernel without Landlock.
    WithoutLandlock,
    /// Without namespaces, for the reason given: only by rules for the calls of a command.
    WithoutNamespaces(String),
}

impl BoundaryForm {
    /// The weakness compared with the whole boundary, if there is one.
    pub fn weakness(&self) -> Option<String> {
        match self {
            Self::Whole => None,
            Self::WithoutLandlock => Some(
                "the sandbox is weaker here: the kernel has no Landlock, so namespaces alone guard files"
                    .to_owned(),
            ),
            Self::WithoutNamespaces(why) => Some(format!(
                "the sandbox is weaker here, because the system refuses namespaces ({why}): protected files are put \
                 back after a command instead of being read-only, and a process that leaves its group is not ended"
            )),
        }
    }
}

/// The reason that there is no boundary on this system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "commands cannot be run, because the sandbox is not available: {0}. `sandbox.mode: off` runs them without"
)]
pub struct Unavailable(pub String);
