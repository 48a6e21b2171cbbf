//! Carries interrupts (Ctrl-C, as a key or a signal; Esc) to the loop of the chat.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

/// Sends interrupts. Clones share the receiver.
#[derive(Clone)]
pub struct Interrupter {
    sender: mpsc::UnboundedSender<StopKind>,
    /// The time of the last Ctrl-C.
    last: Arc<Mutex<Option<Instant>>>,
}

/// Receives interrupts.
pub struct Interrupts {
    receiver: mpsc::UnboundedReceiver<StopKind>,
    /// The time of the last Ctrl-C at an empty prompt.
    at_prompt: Option<Instant>,
}

/// What stopped the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopKind {
    /// Esc: however often it is pressed, the chat goes on.
    Key,
    /// Ctrl-C: a second one ends the chat.
    Interrupt,
}

/// A Ctrl-C this soon after another one is the same one.
const SAME: Duration = Duration::from_millis(50);
/// Two Ctrl-C within this time leave an empty prompt.
const TWICE: Duration = Duration::from_secs(2);

/// Creates a sender and a receiver.
pub fn create_interrupts() -> (Interrupter, Interrupts) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Interrupter { sender, last: Arc::default() }, Interrupts { receiver, at_prompt: None })
}

impl Interrupter {
    /// Asks the running work to stop.
    pub fn interrupt(&self) {
        let last = self.last.lock().expect("nobody panics while holding the time").replace(Instant::now());
        if last.is_none_or(|last| last.elapsed() >= SAME) {
            // Without a receiver there is nothing to stop.
            let _ = self.sender.send(StopKind::Interrupt);
        }
    }

    /// Asks the running work to stop, and never the chat.
    pub fn stop(&self) {
        let _ = self.sender.send(StopKind::Key);
    }
}

impl Interrupts {
    /// Waits for the next interrupt.
    pub async fn next(&mut self) {
        if self.receiver.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Drops the interrupts received so far. Returns true if there was a Ctrl-C.
    pub(super) fn forget(&mut self) -> bool {
        let mut any = false;
        while let Ok(kind) = self.receiver.try_recv() {
            any |= kind == StopKind::Interrupt;
        }
        any
    }

    /// Takes a Ctrl-C at an empty prompt. Returns true if it is the second of two, and the chat ends.
    pub(super) fn ends_chat(&mut self) -> bool {
        let before = self.at_prompt.replace(Instant::now());
        before.is_some_and(|before| (SAME..=TWICE).contains(&before.elapsed()))
    }
}
