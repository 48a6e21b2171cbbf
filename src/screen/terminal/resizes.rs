//! Changes of the screen's size, where the system tells of them.

/// The changes from now on.
pub struct Resizes {
    /// `None` if the signal cannot be had: then the size is seen with the next key.
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Resizes {
    pub fn open() -> Self {
        Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::window_change()).ok(),
        }
    }

    /// Waits for the next change.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
