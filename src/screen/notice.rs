//! Notifies a person who is looking elsewhere, by a bell or a desktop notification.

use super::display::Display;
use crate::config::Notify;

/// After this many seconds of a turn or a question, the person may be looking elsewhere.
pub(super) const LONG: u64 = 10;

/// Sends the notification. `words` come from the program: printable, without semicolons.
pub(super) fn send_notice(display: &Display, notify: Notify, words: &str) {
    match notify {
        Notify::Bell => display.control("\x07"),
        // iTerm2 and others know OSC 9; rxvt, VTE and foot know OSC 777. Terminals ignore a sequence that they do not
        // know.
        Notify::Desktop => display.control(&format!("\x1b]9;{words}\x1b\\\x1b]777;notify;agent;{words}\x1b\\")),
        Notify::Off => {}
    }
}
