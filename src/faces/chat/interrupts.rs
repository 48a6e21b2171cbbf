//! Carries interrupts (Ctrl-C, as a key or a signal) to the loop of the chat.

use tokio::sync::mpsc;

/// Sends interrupts. Clones share the receiver.
#[derive(Clone)]
pub struct Interrupter {
    sender: mpsc::UnboundedSender<()>,
}

/// Receives interrupts.
pub struct Interrupts {
    receiver: mpsc::UnboundedReceiver<()>,
}

/// Creates a sender and a receiver.
pub fn create_interrupts() -> (Interrupter, Interrupts) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Interrupter { sender }, Interrupts { receiver })
}

impl Interrupter {
    /// Asks the running work to stop.
    pub fn interrupt(&self) {
        // Without a receiver there is nothing to stop.
        let _ = self.sender.send(());
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
