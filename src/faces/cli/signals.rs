//! Signals: the first cancels the run, a second one exits at once; before there is a run to cancel, the first one exits.
//!
//! An inherited ignore of SIGHUP (`nohup`) or SIGINT (a background job of a script) is honoured from the start to the end,
//! because no handler replaces it; SIGTERM always has one. A separate thread waits for signals, so a busy or blocked loop
//! never delays one.

use std::io;
use std::sync::{Arc, OnceLock};

use crate::agent::Cancel;
use crate::agent::exit::Signal;
use crate::safety::{process, sandbox};
use crate::screen::{self, terminal};

use super::CommandFailure;

/// The signals of this process.
#[derive(Default, Clone)]
pub(super) struct Signals {
    handler: Arc<OnceLock<SignalHandler>>,
}

type SignalHandler = Box<dyn Fn(Signal) + Send + Sync>;

impl Signals {
    /// Listens from now on, on a separate thread. A signal ends the program at once until a handler is given. Nobody gets
    /// an interrupt that is meant for a program of the user.
    ///
    /// # Errors
    /// The system refuses a handler or a thread.
    pub(super) fn listen() -> io::Result<Self> {
        let signals = Self::default();
        let handler = Arc::clone(&signals.handler);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut next = {
            let _entered = runtime.enter();
            open_source()?
        };
        let serve = move || {
            // These it would take in their stead, as it may be older than they are.
            terminal::leave_stops_to_the_reader();
            runtime.block_on(async {
                while let Some(signal) = next().await {
                    if signal != Signal::Interrupt || !screen::is_lent() {
                        handler.get().map_or_else(|| die_at_once(signal), |handle| handle(signal));
                        // Last, so that whoever waits for the rendering knows the signal.
                        sandbox::end_rendering();
                    }
                }
            });
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(serve)?;
        Ok(signals)
    }

    /// Listens, and makes a beginning: after it if it `is_alone`, as a process with several threads cannot enter a layer.
    /// Until then a signal ends the program as the system does it.
    ///
    /// # Errors
    /// Those of both.
    pub(super) fn listen_around<T>(
        is_alone: bool,
        begin: impl FnOnce() -> Result<T, CommandFailure>,
    ) -> Result<(Self, T), CommandFailure> {
        if is_alone {
            let ready = begin()?;
            return Ok((Self::listen()?, ready));
        }
        let signals = Self::listen()?;
        Ok((signals, begin()?))
    }

    /// Calls `handle` for each signal from now on.
    pub(super) fn pass(&self, handle: impl Fn(Signal) + Send + Sync + 'static) {
        self.handler.get_or_init(|| Box::new(handle));
    }

    /// Lets the first signal from now on trigger `cancel`; a second one ends the program at once.
    pub(super) fn trigger(&self, cancel: &Cancel) {
        let cancel = cancel.clone();
        self.pass(move |signal| {
            if cancel.is_triggered() {
                die_at_once(signal);
            }
            cancel.trigger_by(signal);
        });
    }
}

/// Kills every command and exits at once.
pub(super) fn die_at_once(signal: Signal) -> ! {
    process::kill_all();
    terminal::put_back();
    std::process::exit(signal.code().into());
}

/// Its number on Linux and macOS.
#[cfg(unix)]
const SIGXFSZ: i32 = 25;

#[cfg(unix)]
fn open_source() -> io::Result<impl AsyncFnMut() -> Option<Signal> + Send> {
    use tokio::signal::unix::{self, SignalKind, signal};

    async fn next(signal: &mut Option<unix::Signal>) -> Option<()> {
        match signal {
            Some(signal) => signal.recv().await,
            None => std::future::pending().await,
        }
    }

    let ignored = inherited_ignores();
    let unless_ignored = |kind: SignalKind| {
        let is_ignored = ignored & 1 << (kind.as_raw_value() - 1) != 0;
        (!is_ignored).then(|| signal(kind)).transpose()
    };
    // A write beyond a limit of file sizes (`ulimit -f`) fails; it would end the program. Commands do not inherit this.
    let _ = unless_ignored(SignalKind::from_raw(SIGXFSZ))?;
    let mut interrupt = unless_ignored(SignalKind::interrupt())?;
    let mut hangup = unless_ignored(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move || {
        tokio::select! {
            Some(()) = next(&mut interrupt) => Some(Signal::Interrupt),
            Some(()) = terminate.recv() => Some(Signal::Terminate),
            Some(()) = next(&mut hangup) => Some(Signal::Hangup),
            else => None,
        }
    })
}

/// The signals that this process was started to ignore: bit 0 is signal 1. Known before a handler is installed.
#[cfg(target_os = "linux")]
fn inherited_ignores() -> u64 {
    use std::io::Read;

    // Where the system does not tell, nothing is ignored.
    let mut status = String::with_capacity(4096);
    let _ =
        std::fs::File::open("/proc/self/status").and_then(|file| file.take(1 << 16).read_to_string(&mut status));
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Returns 0: other systems tell only code that is unsafe.
#[cfg(all(unix, not(target_os = "linux")))]
fn inherited_ignores() -> u64 {
    0
}

/// Systems without Unix signals have only Ctrl-C.
#[cfg(not(unix))]
fn open_source() -> io::Result<impl AsyncFnMut() -> Option<Signal> + Send> {
    Ok(async || tokio::signal::ctrl_c().await.ok().map(|()| Signal::Interrupt))
}
