//! The walls around a command: those that there are, those that it runs in, what is opened in them, and the evidence that
//! they stopped it.

use std::path::PathBuf;

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
    /// The same, with the [`WallOpening`] that the call needs: a person allowed it.
    Opened,
    /// No sandbox: a person allowed it.
    Outside,
}

/// What a command needs beyond the walls, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WallOpening {
    /// The network of the machine.
    pub network: bool,
    /// Directories outside the workspace in which it writes, absolute.
    pub dirs: Vec<PathBuf>,
    /// Protected paths of the workspace that it changes, absolute.
    pub protected: Vec<PathBuf>,
}

impl WallOpening {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
