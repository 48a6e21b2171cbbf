//! The terminal, lent to another program: a pager, an editor.

use std::sync::mpsc::Sender;

use super::interrupts::Deaf;
use crate::sink::{Display, Suspended};

/// The terminal puts marks around what is pasted, so that a paste of many lines is one message (private mode 2004).
pub(super) const MARK_PASTE: &str = "\x1b[?2004h";

/// The terminal is another program's, as long as this lives.
pub(super) struct Loan {
    display: Display,
    /// The reading thread waits for its end.
    _returned: Sender<()>,
    _away: Suspended,
    _deaf: Deaf,
}

impl Loan {
    /// A loan that ends when `returned` is dropped. The live area stays away until then, and Ctrl-C is for the other
    /// program.
    pub(super) fn new(display: Display, returned: Sender<()>, away: Suspended, deaf: Deaf) -> Self {
        Self { display, _returned: returned, _away: away, _deaf: deaf }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.display.control(MARK_PASTE);
    }
}
