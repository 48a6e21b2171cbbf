//! A switch that stops everything that waits on it: Ctrl-C, SIGTERM, a closed stdout.

use std::sync::Arc;

use tokio::sync::watch;

/// A signal that ends the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Interrupt,
    Terminate,
    Hangup,
}

impl Signal {
    pub fn code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate | Self::Hangup => 143,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Hangup => "SIGHUP",
        }
    }
}

/// Clones share one switch.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<Switch>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switch {
    Open,
    Triggered(Option<Signal>),
}

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::channel(Switch::Open).0))
    }
}

impl Cancel {
    /// Triggers the switch; a second time changes nothing.
    pub fn trigger(&self) {
        self.close(None);
    }

    /// Triggers the switch because of a signal that ends the program. The first signal is kept.
    pub fn trigger_by(&self, signal: Signal) {
        self.close(Some(signal));
    }

    /// Makes the switch ready for the next run.
    pub fn reset(&self) {
        self.0.send_replace(Switch::Open);
    }

    /// True if the switch was triggered.
    pub fn is_triggered(&self) -> bool {
        *self.0.borrow() != Switch::Open
    }

    /// The signal that triggered the switch, if one did.
    pub fn signal(&self) -> Option<Signal> {
        match *self.0.borrow() {
            Switch::Triggered(signal) => signal,
            Switch::Open => None,
        }
    }

    /// Returns once the switch is triggered.
    pub async fn triggered(&self) {
        // The sender lives in `self`, so the channel cannot close while this waits.
        let _ = self.0.subscribe().wait_for(|switch| *switch != Switch::Open).await;
    }

    fn close(&self, by: Option<Signal>) {
        self.0.send_modify(|switch| {
            if !matches!(switch, Switch::Triggered(Some(_))) {
                *switch = Switch::Triggered(by);
            }
        });
    }
}
