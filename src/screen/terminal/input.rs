//! Waits for bytes at stdin, from the terminal or from elsewhere, and reads them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::sys::stat::{fstat, stat};
use nix::sys::termios::{FlushArg, tcflush};

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
    let sources: [(WaitResult, Option<BorrowedFd<'_>>); 2] =
        [(WaitResult::Woken, waker.map(AsFd::as_fd)), (WaitResult::Input, reads.then(|| stdin.as_fd()))];
    let (names, mut fds): (Vec<WaitResult>, Vec<PollFd<'_>>) = sources
        .into_iter()
        .filter_map(|(ready, fd)| fd.map(|fd| (ready, PollFd::new(fd, PollFlags::POLLIN))))
        .unzip();
    if poll(&mut fds, limit_wait(patience)).is_err() {
        // A signal interrupted the wait; the caller waits again.
        return WaitResult::Woken;
    }
    let first = fds.iter().position(|fd| fd.any() == Some(true));
    first.map_or(WaitResult::Nothing, |at| names[at])
}

/// Waits until standard input, of any kind, is readable or has ended; forever without `patience`. Returns false if
/// nothing arrived in time.
pub fn stdin_ready(patience: Option<Duration>) -> bool {
    let stdin = io::stdin();
    let mut asked = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    // After an error, the read that follows reports a better one.
    poll(&mut asked, limit_wait(patience)).map_or(true, |ready| ready > 0)
}

/// True if standard input is an empty pipe that nobody can write to any more.
#[cfg(target_os = "linux")]
pub fn stdin_is_spent() -> bool {
    let stdin = io::stdin();
    let mut asked = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut asked, PollTimeout::ZERO).is_ok() && asked[0].revents() == Some(PollFlags::POLLHUP)
}

/// True if standard input is `/dev/null`, as for programs that are started without input.
pub fn stdin_is_null() -> bool {
    let (stdin, null) = (fstat(io::stdin()), stat("/dev/null"));
    stdin.is_ok_and(|stdin| null.is_ok_and(|null| (null.st_dev, null.st_ino) == (stdin.st_dev, stdin.st_ino)))
}

/// The size of standard input in bytes, if it is a file.
pub fn find_stdin_size() -> Option<u64> {
    let stdin = io::stdin().as_fd().try_clone_to_owned().ok()?;
    let about = std::fs::File::from(stdin).metadata().ok()?;
    about.is_file().then_some(about.len())
}

fn limit_wait(patience: Option<Duration>) -> PollTimeout {
    patience.map_or(PollTimeout::NONE, |time| time.try_into().unwrap_or(PollTimeout::MAX))
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
    let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
}

/// Blocks SIGTSTP on this thread and the threads that it starts. Only the thread that reads keys takes it. Then the process
/// has stopped by the time `kill` returns, so the modes are set again after the stop and not before it. Call this before
/// other threads are started.
pub fn leave_stops_to_the_reader() {
    // If this fails, the terminal may have the wrong modes after `fg`.
    let _ = stop_signal().thread_block();
}

/// Interrupts this process and its group, as Ctrl-C does in a terminal.
pub fn interrupt_process() {
    let _ = kill(nix::unistd::Pid::from_raw(0), Signal::SIGINT);
}

/// Stops this process alone: its group has got the signal that led here. Returns when it continues. Call this on the thread
/// that waits for the signal.
pub(super) fn stop_this_process() {
    let _ = stop_signal().thread_unblock();
    // Without job control nothing happens.
    let _ = raise(Signal::SIGTSTP);
    let _ = stop_signal().thread_block();
}

/// SIGTSTP, which one thread takes.
pub(super) fn stop_signal() -> SigSet {
    SigSet::from(Signal::SIGTSTP)
}

/// Stops this process and its group, as Ctrl-Z does. Returns when it continues, where this thread takes the signal.
pub(super) fn stop_process() {
    // Without job control nothing happens.
    let _ = kill(nix::unistd::Pid::from_raw(0), Signal::SIGTSTP);
}
