//! The terminal, lent to another program: a pager, an editor.

use super::display::Suspended;
use super::outlets::Outlets;
use crate::terminal::{Away, Console};

/// The terminal is another program's, in the modes in which it was found, as long as this lives. What is written meanwhile
/// waits.
pub struct Loan {
    /// Ends before the keys come back: what waits is written before a line is read.
    _screen: Suspended,
    /// Nothing where the terminal has its own modes all the time.
    _keys: Option<Away>,
}

impl Loan {
    /// Lends the terminal, and the keys of `console` with it.
    pub async fn take(console: Option<&Console>, outlets: &Outlets) -> Self {
        let screen = outlets.display.suspend(false);
        outlets.wait();
        let keys = match console {
            Some(console) => Some(console.leave().await),
            None => None,
        };
        Self { _screen: screen, _keys: keys }
    }
}
