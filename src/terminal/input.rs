//! Bytes out of the terminal at stdin: waiting for them, and reading those that are there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::modes::{self, Modes, Stop};

/// What came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ready {
    /// stdin can be read, or has ended.
    Input,
    /// Another thread wants something.
    Woken,
    /// The time is over.
    Nothing,
}

/// Waits for input (where `reads`), for a byte in `waker`, or until `patience` is over.
pub(super) fn wait(reads: bool, waker: Option<&UnixStream>, patience: Option<Duration>) -> Ready {
    let stdin = io::stdin();
    let timeout = patience.map_or(PollTimeout::NONE, |time| time.try_into().unwrap_or(PollTimeout::MAX));
    let sources: [(Ready, Option<BorrowedFd<'_>>); 2] =
        [(Ready::Woken, waker.map(AsFd::as_fd)), (Ready::Input, reads.then(|| stdin.as_fd()))];
    let (names, mut fds): (Vec<Ready>, Vec<PollFd<'_>>) = sources
        .into_iter()
        .filter_map(|(ready, fd)| fd.map(|fd| (ready, PollFd::new(fd, PollFlags::POLLIN))))
        .unzip();
    if poll(&mut fds, timeout).is_err() {
        // A signal came; the caller waits again.
        return Ready::Woken;
    }
    let first = fds.iter().position(|fd| fd.any() == Some(true));
    first.map_or(Ready::Nothing, |at| names[at])
}

/// Reads what stdin holds into `bytes`; the count is 0 at its end. `None`: try again.
pub(super) fn read(bytes: &mut [u8]) -> Option<usize> {
    match nix::unistd::read(io::stdin().as_fd(), bytes) {
        Ok(count) => Some(count),
        Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => None,
        Err(_) => Some(0),
    }
}

/// The bytes that the terminal at stdin holds now, taken out of it. Never waits.
#[must_use]
pub fn typed_ahead() -> Vec<u8> {
    let mut typed = Vec::new();
    let mut buffer = [0; 4096];
    while io::IsTerminal::is_terminal(&io::stdin()) && wait(true, None, Some(Duration::ZERO)) == Ready::Input {
        match read(&mut buffer) {
            Some(count) if count > 0 => typed.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    typed
}

/// Throws away what was typed at the terminal at stdin and nobody has read, Enter or not.
pub fn forget_typed() {
    // Fails where stdin is no terminal; then nobody types.
    let _ = nix::sys::termios::tcflush(io::stdin(), nix::sys::termios::FlushArg::TCIFLUSH);
}

/// Lets reading from the terminal at stdin end at once where no key is waiting, or wait for one as usual. Whoever puts
/// back the modes of the terminal lets it wait again.
pub fn wait_for_keys(waits: bool) {
    use nix::sys::termios::{SetArg, SpecialCharacterIndices, tcgetattr, tcsetattr};

    let stdin = io::stdin();
    if let Ok(mut modes) = tcgetattr(&stdin) {
        modes.control_chars[SpecialCharacterIndices::VMIN as usize] = waits.into();
        modes.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        // Nothing can be done about a terminal that has gone away.
        let _ = tcsetattr(&stdin, SetArg::TCSANOW, &modes);
    }
}

/// Keeps SIGTSTP and SIGWINCH away from this thread, and from those that it starts. The thread that reads keys takes them.
/// A signal that only one thread takes has stopped the process when `kill` returns, so that modes are set again after the
/// stop and not before it; and the line editor hears of another size only by a read that ends early. To be called before
/// other threads are started.
pub fn leave_signals_to_the_reader() {
    // Where that fails, a terminal may have the wrong modes after `fg`.
    let _ = of_the_reader().thread_block();
}

/// Takes these signals on this thread.
pub(super) fn take_signals() {
    let _ = of_the_reader().thread_unblock();
}

fn of_the_reader() -> nix::sys::signal::SigSet {
    let mut signals = nix::sys::signal::SigSet::empty();
    signals.add(nix::sys::signal::Signal::SIGTSTP);
    signals.add(nix::sys::signal::Signal::SIGWINCH);
    signals
}

/// Stops the program as Ctrl-Z does in a shell, with the terminal as it was found. Returns when it goes on, with keys held
/// as for whoever the terminal is lent to. To be called on the thread that reads keys.
pub fn stop() {
    modes::put_back();
    stop_process();
    if let Some(modes) = Modes::saved() {
        modes.hold_keys(Stop::IsSignal);
    }
}

/// Stops this process and its group, as Ctrl-Z does. Returns when it goes on.
pub(super) fn stop_process() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    // Without job control nothing happens.
    let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
}
