//! A loan of the terminal to another program, such as a pager or an editor.

use std::sync::mpsc::Sender;

use super::interrupts::Deaf;
use crate::sink::{Display, Suspended};

/// Makes the terminal put marks around pasted text, so a paste of many lines is one message (private mode 2004).
pub(super) const MARK_PASTE: &str = "\x1b[?2004h";

/// Lends the terminal to another program until it is dropped.
pub(super) struct Loan {
    display: Display,
    /// The reading thread waits until this is dropped.
    _returned: Sender<()>,
    away: Option<Suspended>,
    _deaf: Deaf,
}

impl Loan {
    /// Creates a loan; dropping `returned` ends it. The live area stays hidden until then, and Ctrl-C is for the other
    /// program.
    pub(super) fn new(display: Display, returned: Sender<()>, away: Suspended, deaf: Deaf) -> Self {
        Self { display, _returned: returned, away: Some(away), _deaf: deaf }
    }

    /// Shows the live area again, and what was written meanwhile. Keys stay with the other program.
    pub(super) fn reveal(&mut self) {
        self.away = None;
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.display.control(MARK_PASTE);
    }
}
