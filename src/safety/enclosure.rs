//! The walls around a command: those that there are, those that it runs in, and the evidence that they stopped it.

/// The limits that walls can enforce on a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// There are none.
    Nothing,
    /// To reading ([`Enclosure::Read`]).
    Reading,
    /// To reading, and to the paths that no rule denies: it does not see the others.
    Permitted,
    /// To all that the boundary promises, in its whole form: namespaces and Landlock.
    Whole,
}

/// The walls around a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enclosure {
    /// The sandbox's `read` profile: nothing outside a private temporary directory can be written.
    Read,
    /// The sandbox's `write` profile: the workspace can be written, except for what is protected in it.
    Write,
    /// No sandbox: a person allowed it.
    Outside,
}

/// The evidence that walls stopped a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It could not write, in walls that allow no writing.
    Writing,
    /// The sandbox knows that it stopped or undid something.
    Known,
    /// Its output says so. The author of the program may have chosen the words.
    Claimed,
}
