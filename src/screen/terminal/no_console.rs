//! For systems where keys are not read one by one: there is no console, and questions are answered by lines.

use std::time::Duration;

use super::keys::Listener;

/// The console, which does not exist on this system.
pub enum Console {}

/// The absence of the terminal, which does not exist on this system.
pub enum Away {}

/// The claim to the keys, which does not exist on this system.
pub struct Focus {
    never: Console,
}

impl Console {
    /// Returns `None`.
    pub fn open(_: Box<dyn Listener>, _: bool) -> Option<Self> {
        None
    }

    /// Cannot be called.
    pub async fn focus(&self) -> Focus {
        match *self {}
    }

    /// Cannot be called.
    pub async fn leave(&self) -> Away {
        match *self {}
    }

    /// Cannot be called.
    pub fn expect_answer(&self) {
        match *self {}
    }
}

impl Drop for Focus {
    fn drop(&mut self) {
        match self.never {}
    }
}

/// Returns false: on this system, `/dev/null` is read like any other file.
pub fn stdin_is_null() -> bool {
    false
}

/// Returns nothing: on this system, it is not asked.
pub fn find_stdin_size() -> Option<u64> {
    None
}

/// Returns true: on this system, the read that follows waits.
pub fn stdin_ready(_: Option<Duration>) -> bool {
    true
}

/// Does nothing: the modes are never changed on this system.
pub fn put_back() {}

/// Hides nothing: the echo of this system is not known.
pub struct HiddenTyping;

impl HiddenTyping {
    pub fn begin() -> Self {
        Self
    }
}

/// Does nothing: keys are not read one by one.
pub fn leave_stops_to_the_reader() {}

/// Does nothing: keys are not read one by one.
pub fn interrupt_process() {}

/// Does nothing: text that was typed ahead cannot be taken.
pub fn forget_typed() {}

/// Returns nothing: text that was typed ahead cannot be taken.
pub fn typed_ahead() -> Vec<u8> {
    Vec::new()
}
