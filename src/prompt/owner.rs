//! Whose text a prompt is: what it may see depends on it.

/// Whose text it is. The order is that of trust: what is composed of several belongs to the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// It comes with the program: a test has found it sound.
    Program,
    Person,
    /// A workspace brings it along: it sees no variable that looks like a secret.
    Project,
}
