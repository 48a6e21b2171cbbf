//! The terminal: its size and abilities, its keys, and its modes.
//!
//! Apart from the line editor, only this module changes the terminal's modes; [`put_back`] restores them at every end
//! of the program.

mod abilities;
mod keys;
mod field;
mod vi;
#[cfg(unix)]
mod modes;
#[cfg(unix)]
mod input;
#[cfg(unix)]
mod burst;
#[cfg(unix)]
mod console;
#[cfg(not(unix))]
mod no_console;

use std::io;
use std::time::Duration;

pub use abilities::Abilities;
#[cfg(unix)]
pub use console::{Away, Console, Focus};
pub use field::{Edited, TextField};
#[cfg(unix)]
pub use input::{forget_typed, leave_signals_to_the_reader, stop_program, typed_ahead, wait_for_keys};
pub use keys::{Key, Listener};
#[cfg(unix)]
pub use modes::put_back;
#[cfg(not(unix))]
pub use no_console::{
    Away, Console, Focus, forget_typed, leave_signals_to_the_reader, put_back, stop_program, typed_ahead,
    wait_for_keys,
};
pub use vi::Vi;

/// The columns of the terminal on stderr (else stdout, else stdin); `None` if there is none.
pub fn measure_width() -> Option<usize> {
    measure_size().map(|(columns, _)| columns)
}

/// The columns and rows of that terminal.
pub fn measure_size() -> Option<(usize, usize)> {
    // stderr comes first because progress is drawn there.
    let size = terminal_size::terminal_size_of(io::stderr()).or_else(terminal_size::terminal_size);
    size.map(|(columns, rows)| (usize::from(columns.0), usize::from(rows.0))).filter(|(columns, _)| *columns > 0)
}

/// Waits until standard input, of any kind, is readable or has ended; forever without `patience`. Returns false if
/// nothing arrived in time.
#[cfg(unix)]
pub fn stdin_ready(patience: Option<Duration>) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;

    let stdin = io::stdin();
    let timeout = patience.map_or(PollTimeout::NONE, |time| time.try_into().unwrap_or(PollTimeout::MAX));
    // After an error, the read that follows reports a better one.
    poll(&mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)], timeout).map_or(true, |ready| ready > 0)
}

/// True if standard input is an empty pipe that nobody can write to any more.
#[cfg(unix)]
pub fn stdin_is_spent() -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;

    let stdin = io::stdin();
    let mut asked = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut asked, PollTimeout::ZERO).is_ok() && asked[0].revents() == Some(PollFlags::POLLHUP)
}

/// True if standard input is `/dev/null`, as for programs that are started without input.
#[cfg(unix)]
pub fn stdin_is_null() -> bool {
    use nix::sys::stat::{fstat, stat};

    let (stdin, null) = (fstat(io::stdin()), stat("/dev/null"));
    stdin.is_ok_and(|stdin| null.is_ok_and(|null| (null.st_dev, null.st_ino) == (stdin.st_dev, stdin.st_ino)))
}

/// Returns false: on this system, `/dev/null` is read like any other file.
#[cfg(not(unix))]
pub fn stdin_is_null() -> bool {
    false
}

/// Returns true: on this system, the read that follows waits.
#[cfg(not(unix))]
pub fn stdin_ready(_: Option<Duration>) -> bool {
    true
}
