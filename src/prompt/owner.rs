//! The owner of a prompt, which decides what the prompt may see.

/// The owner of a text. The order is that of trust: a text composed of several belongs to the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// It comes with the program: a test has found it sound.
    Program,
    Person,
    /// A workspace brings it along: it sees no variable that looks like a secret.
    Project,
}

/// The words for what belongs to an owner: `system@user`, `system@built-in`.
pub(super) const OWNERS: [(Owner, &str); 3] =
    [(Owner::Program, "built-in"), (Owner::Person, "user"), (Owner::Project, "project")];
