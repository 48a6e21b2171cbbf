//! Carries interrupts (Ctrl-C, as a key or a signal) to the loop of the chat.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

/// Sends interrupts. Clones share the receiver.
#[derive(Clone)]
pub struct Interrupter {
    sender: mpsc::UnboundedSender<()>,
    /// Another program has the terminal, and so its Ctrl-C.
    is_deaf: Arc<AtomicBool>,
}

/// Interrupts are for another program as long as it lives.
pub(super) struct Deaf(Arc<AtomicBool>);

impl Drop for Deaf {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Receives interrupts.
pub struct Interrupts {
    receiver: mpsc::UnboundedReceiver<()>,
}

/// Creates a sender and a receiver.
#[must_use]
pub fn interrupts() -> (Interrupter, Interrupts) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Interrupter { sender, is_deaf: Arc::default() }, Interrupts { receiver })
}

impl Interrupter {
    /// Asks the running work to stop.
    pub fn interrupt(&self) {
        if self.is_deaf.load(Ordering::SeqCst) {
            return;
        }
        // Without a receiver there is nothing to stop.
        let _ = self.sender.send(());
    }

    /// Leaves interrupts to another program until the returned value is dropped.
    #[must_use]
    pub(super) fn deafen(&self) -> Deaf {
        self.is_deaf.store(true, Ordering::SeqCst);
        Deaf(Arc::clone(&self.is_deaf))
    }
}

impl Interrupts {
    /// Waits for the next interrupt.
    pub async fn next(&mut self) {
        if self.receiver.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Drops the interrupts received so far. Returns true if there were any.
    pub(super) fn forget(&mut self) -> bool {
        let mut any = false;
        while self.receiver.try_recv().is_ok() {
            any = true;
        }
        any
    }
}
