//! Waits for bytes from the terminal at stdin, and reads them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use super::modes::{self, Modes, SuspendMeaning};

/// The result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitResult {
    /// stdin can be read, or has ended.
    Input,
    /// Another thread sent a request.
    Woken,
    /// The time is up.
    Nothing,
}

/// Waits for input (if `reads`), for a byte in `waker`, or until `patience` is over.
pub(super) fn wait_input(reads: bool, waker: Option<&UnixStream>, patience: Option<Duration>) -> WaitResult {
    let stdin = io::stdin();
    let timeout = patience.map_or(PollTimeout::NONE, |time| time.try_into().unwrap_or(PollTimeout::MAX));
    let sources: [(WaitResult, Option<BorrowedFd<'_>>); 2] =
        [(WaitResult::Woken, waker.map(AsFd::as_fd)), (WaitResult::Input, reads.then(|| stdin.as_fd()))];
    let (names, mut fds): (Vec<WaitResult>, Vec<PollFd<'_>>) = sources
        .into_iter()
        .filter_map(|(ready, fd)| fd.map(|fd| (ready, PollFd::new(fd, PollFlags::POLLIN))))
        .unzip();
    if poll(&mut fds, timeout).is_err() {
        // A signal interrupted the wait; the caller waits again.
        return WaitResult::Woken;
    }
    let first = fds.iter().position(|fd| fd.any() == Some(true));
    first.map_or(WaitResult::Nothing, |at| names[at])
}

/// Reads available input into `bytes`. Returns 0 at its end, and `None` if the caller should try again.
pub(super) fn read_bytes(bytes: &mut [u8]) -> Option<usize> {
    match nix::unistd::read(io::stdin().as_fd(), bytes) {
        Ok(count) => Some(count),
        Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => None,
        Err(_) => Some(0),
    }
}

/// Takes the bytes that were already typed at the terminal on stdin. Never waits.
pub fn typed_ahead() -> Vec<u8> {
    let mut typed = Vec::new();
    let mut buffer = [0; 4096];
    while io::IsTerminal::is_terminal(&io::stdin())
        && wait_input(true, None, Some(Duration::ZERO)) == WaitResult::Input
    {
        match read_bytes(&mut buffer) {
            Some(count) if count > 0 => typed.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    typed
}

/// Discards the text that was typed at the terminal at stdin and not read, with or without Enter.
pub fn forget_typed() {
    // Fails if stdin is not a terminal; then nobody types.
    let _ = nix::sys::termios::tcflush(io::stdin(), nix::sys::termios::FlushArg::TCIFLUSH);
}

/// Makes a read from the terminal at stdin wait for a key as usual, or return at once if no key is available. Restoring
/// the modes of the terminal makes it wait again.
pub fn wait_for_keys(waits: bool) {
    use nix::sys::termios::{SetArg, SpecialCharacterIndices, tcgetattr, tcsetattr};

    let stdin = io::stdin();
    if let Ok(mut modes) = tcgetattr(&stdin) {
        modes.control_chars[SpecialCharacterIndices::VMIN as usize] = waits.into();
        modes.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        // If the terminal is gone, nothing can be done.
        let _ = tcsetattr(&stdin, SetArg::TCSANOW, &modes);
    }
}

/// Blocks SIGTSTP and SIGWINCH on this thread and the threads that it starts. Only the thread that reads keys takes them.
/// Then the process has stopped by the time `kill` returns, so the modes are set again after the stop and not before it;
/// and the line editor notices a new size, which it does only if the signal ends its read. Call this before other threads
/// are started.
pub fn leave_signals_to_the_reader() {
    // If this fails, the terminal may have the wrong modes after `fg`.
    let _ = of_the_reader().thread_block();
}

/// Unblocks these signals on this thread.
pub(super) fn take_signals() {
    let _ = of_the_reader().thread_unblock();
}

fn of_the_reader() -> nix::sys::signal::SigSet {
    let mut signals = stop_signal();
    signals.add(Signal::SIGWINCH);
    signals
}

/// Stops the program as Ctrl-Z does in a shell, with the terminal in its original modes. Returns when it continues, with
/// keys held as for a borrower of the terminal. Call this on the thread that reads keys.
pub fn stop_program() {
    modes::put_back();
    stop_process();
    if let Some(modes) = Modes::get_saved() {
        modes.hold_keys(SuspendMeaning::IsSignal);
    }
}

/// Waits for SIGTSTP where no thread takes it otherwise. False if that is impossible.
pub(super) fn next_stop() -> bool {
    stop_signal().wait().is_ok()
}

/// Stops this process alone: its group has got the signal that led here. Returns when it continues. Call this on the thread
/// that waits for the signal.
pub(super) fn stop_this_process() {
    let _ = stop_signal().thread_unblock();
    // Without job control nothing happens.
    let _ = nix::sys::signal::raise(Signal::SIGTSTP);
    let _ = stop_signal().thread_block();
}

fn stop_signal() -> nix::sys::signal::SigSet {
    let mut signals = nix::sys::signal::SigSet::empty();
    signals.add(Signal::SIGTSTP);
    signals
}

/// Stops this process and its group, as Ctrl-Z does. Returns when it continues, where this thread takes the signal.
pub(super) fn stop_process() {
    use nix::sys::signal::kill;
    use nix::unistd::Pid;

    // Without job control nothing happens.
    let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
}
