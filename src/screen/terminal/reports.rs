//! What the terminal is asked to report of keys.

use std::sync::OnceLock;

/// A way to have keys reported with all their modifiers, so that Shift-Enter is not Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyReports {
    /// The kitty keyboard protocol: keys apart, and what they write with Shift (flags 1 and 4), on a stack.
    Kitty,
    /// modifyOtherKeys of xterm, for keys that would be lost otherwise.
    Modified,
}

/// What the terminal reports, once it was asked to.
static REPORTS: OnceLock<KeyReports> = OnceLock::new();

impl KeyReports {
    /// Asks a terminal that can, and whenever another program had it again. Returns the sequence.
    pub fn begin(self) -> &'static str {
        match REPORTS.get_or_init(|| self) {
            Self::Kitty => "\x1b[>5u",
            Self::Modified => "\x1b[>4;1m",
        }
    }

    /// What the terminal was asked to report.
    pub fn find() -> Option<Self> {
        REPORTS.get().copied()
    }

    /// Takes the request back. Returns the sequence.
    #[cfg(unix)]
    pub fn end(self) -> &'static str {
        match self {
            Self::Kitty => "\x1b[<u",
            Self::Modified => "\x1b[>4m",
        }
    }
}
