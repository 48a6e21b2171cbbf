//! Calls a person who looks elsewhere: a bell, or a notification of the desktop.

use super::display::Display;
use crate::config::Notify;

/// A turn or a wait of so many seconds is long: the person may have turned away.
pub(super) const LONG: u64 = 10;

/// Sends the notice. `words` are the program's own: printable, without semicolons.
pub(super) fn send(display: &Display, notify: Notify, words: &str) {
    match notify {
        Notify::Bell => display.control("\x07"),
        // OSC 9 of iTerm2 and others, OSC 777 of rxvt, VTE and foot. A terminal ignores the one that it does not know.
        Notify::Desktop => display.control(&format!("\x1b]9;{words}\x1b\\\x1b]777;notify;agent;{words}\x1b\\")),
        Notify::Off => {}
    }
}
