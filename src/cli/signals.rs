//! Signals: the first cancels what runs, a second one exits at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::agent::Cancel;
use crate::process;

use super::exit::Signal;

/// Listens for as long as it lives.
pub(super) struct Signals {
    seen: Arc<AtomicU8>,
}

const NONE: u8 = u8::MAX;
const ALL: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::Hangup];

impl Signals {
    /// Throws `cancel` at the first signal. Called inside the runtime.
    ///
    /// # Errors
    /// When the system refuses a handler.
    #[cfg(unix)]
    pub(super) fn listen(cancel: Cancel) -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let seen = Arc::new(AtomicU8::new(NONE));
        let slot = Arc::clone(&seen);
        tokio::spawn(async move {
            loop {
                let which = tokio::select! {
                    _ = interrupt.recv() => 0,
                    _ = terminate.recv() => 1,
                    _ = hangup.recv() => 2,
                };
                if cancel.is_triggered() {
                    process::kill_all();
                    std::process::exit(ALL[usize::from(which)].code().into());
                }
                slot.store(which, Ordering::SeqCst);
                cancel.trigger();
            }
        });
        Ok(Self { seen })
    }

    /// Where there are no Unix signals, only Ctrl-C.
    #[cfg(not(unix))]
    pub(super) fn listen(cancel: Cancel) -> std::io::Result<Self> {
        let seen = Arc::new(AtomicU8::new(NONE));
        let slot = Arc::clone(&seen);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if cancel.is_triggered() {
                    process::kill_all();
                    std::process::exit(Signal::Interrupt.code().into());
                }
                slot.store(0, Ordering::SeqCst);
                cancel.trigger();
            }
        });
        Ok(Self { seen })
    }

    /// The first signal that came.
    pub(super) fn seen(&self) -> Option<Signal> {
        ALL.get(usize::from(self.seen.load(Ordering::SeqCst))).copied()
    }
}
