//! A switch that stops everything that waits on it: Ctrl-C, SIGTERM, a closed stdout.

use std::sync::Arc;

use tokio::sync::watch;

/// Clones share one switch.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }
}

impl Cancel {
    /// Triggers the switch; a second time changes nothing.
    pub fn trigger(&self) {
        self.0.send_replace(true);
    }

    /// True if the switch was triggered.
    #[must_use]
    pub fn is_triggered(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the switch is triggered.
    pub async fn triggered(&self) {
        // The sender lives in `self`, so the channel cannot close while this waits.
        let _ = self.0.subscribe().wait_for(|thrown| *thrown).await;
    }
}
