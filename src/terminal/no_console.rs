//! Systems where keys are not read one by one: there is no console, and questions are answered by lines.

use tokio::sync::mpsc;

use super::keys::Key;
use crate::ink::Theme;

/// Takes keys; see the console of Unix.
pub trait Listener: Send {
    /// Takes a key.
    fn press(&mut self, key: Key);
    /// The terminal told its background.
    fn learn(&mut self, theme: Theme);
    /// The program is about to stop, or goes on.
    fn stop(&mut self, stops: bool);
    /// Another program had the terminal.
    fn come_back(&mut self);
}

/// There is none.
pub enum Console {}

/// There is none.
pub enum Away {}

/// There is none.
pub struct Focus {
    pub keys: mpsc::UnboundedReceiver<Key>,
    never: Console,
}

impl Console {
    /// Always `None`.
    #[must_use]
    pub fn open(_: Box<dyn Listener>, _: bool) -> Option<Self> {
        None
    }

    /// Cannot be called.
    pub async fn focus(&self) -> Focus {
        match *self {}
    }

    /// Cannot be called.
    pub fn lend(&self, _: impl FnOnce() + Send + 'static) {
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

impl Focus {
    /// Cannot be called.
    pub fn gate(&self) -> impl FnOnce() + Send + 'static {
        || ()
    }
}

impl Drop for Focus {
    fn drop(&mut self) {
        match self.never {}
    }
}

/// Nobody reads keys one by one.
pub fn leave_signals_to_the_reader() {}

/// Here nothing stops a program.
pub fn stop() {}

/// What was typed cannot be taken back here.
pub fn forget_typed() {}

/// Nothing was typed ahead that could be taken.
#[must_use]
pub fn typed_ahead() -> Vec<u8> {
    Vec::new()
}

/// Here reading always waits: Enter ends a line, whatever follows.
pub fn wait_for_keys(_: bool) {}
