//! Signals: the first cancels the run, a second one exits at once.
//!
//! A separate thread waits for them, so a busy or blocked loop never delays one.

use std::io;

use crate::agent::Cancel;
use crate::agent::exit::Signal;
use crate::safety::process;
use crate::screen::{self, terminal};

/// Triggers `cancel` at the first signal.
///
/// # Errors
/// The system refuses a handler or a thread.
pub(super) fn listen(cancel: Cancel) -> io::Result<()> {
    each(move |signal| {
        if cancel.is_triggered() {
            die(signal);
        }
        cancel.trigger_by(signal);
    })
}

/// Calls `handle` for each signal, on a separate thread, except for an interrupt that is meant for a program of the
/// user. The handlers are installed when this returns.
///
/// # Errors
/// The system refuses a handler or a thread.
pub(super) fn each(mut handle: impl FnMut(Signal) + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut next = {
        let _entered = runtime.enter();
        source()?
    };
    let serve = move || {
        runtime.block_on(async {
            while let Some(signal) = next().await {
                if signal != Signal::Interrupt || !screen::is_lent() {
                    handle(signal);
                }
            }
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(serve)?;
    Ok(())
}

/// Kills every command and exits at once.
pub(super) fn die(signal: Signal) -> ! {
    process::kill_all();
    terminal::put_back();
    std::process::exit(signal.code().into());
}

#[cfg(unix)]
fn source() -> io::Result<impl AsyncFnMut() -> Option<Signal> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move || {
        tokio::select! {
            Some(()) = interrupt.recv() => Some(Signal::Interrupt),
            Some(()) = terminate.recv() => Some(Signal::Terminate),
            Some(()) = hangup.recv() => Some(Signal::Hangup),
            else => None,
        }
    })
}

/// Systems without Unix signals have only Ctrl-C.
#[cfg(not(unix))]
fn source() -> io::Result<impl AsyncFnMut() -> Option<Signal> + Send> {
    Ok(async || tokio::signal::ctrl_c().await.ok().map(|()| Signal::Interrupt))
}
