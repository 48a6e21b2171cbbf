//! The way of keys to the line.

use super::InputLine;
use crate::screen::display::Suspended;
use crate::screen::ink::Theme;
use crate::screen::outlets::Outlets;
use crate::screen::terminal::{Key, KeyReports, Listener};

/// Makes the terminal put marks around pasted text, so a paste of many lines is one message (private mode 2004).
pub const MARK_PASTE: &str = "\x1b[?2004h";
/// Ends that.
pub const MARK_NO_PASTE: &str = "\x1b[?2004l";

/// Passes keys to the line, and what the terminal says to the screen.
pub struct LineKeys {
    line: InputLine,
    outlets: Outlets,
    stopped: Option<Suspended>,
}

impl LineKeys {
    pub fn new(line: InputLine, outlets: Outlets) -> Self {
        Self { line, outlets, stopped: None }
    }
}

impl Listener for LineKeys {
    fn press(&mut self, key: Key, by_hand: bool) {
        self.line.press(&key, by_hand);
    }

    fn learn(&mut self, theme: Theme) {
        self.outlets.display.set_theme(theme);
    }

    fn stop(&mut self, stops: bool) {
        self.stopped = stops.then(|| self.outlets.display.suspend());
        self.outlets.wait();
    }

    fn come_back(&mut self) {
        let state = self.line.lock();
        if state.settings.takes_messages || state.question.is_some() {
            self.outlets.display.control(MARK_PASTE);
        }
        if let Some(reports) = KeyReports::find() {
            self.outlets.display.control(reports.begin());
        }
    }

    fn report_keys(&mut self) {
        // An answer that comes twice asks once: what is asked is taken back once.
        if KeyReports::find().is_none() {
            self.outlets.display.control(KeyReports::Kitty.begin());
        }
    }
}
