//! The terminal itself: how wide it is, what was typed while nobody read, and its modes.
//!
//! The only place that changes terminal modes outside the line editor; [`Modes::restore`] puts back what it changed.

use std::io;
#[cfg(unix)]
use std::io::IsTerminal;
use std::time::Duration;

/// Columns of the terminal behind stderr (else stdout, else stdin); `None` where there is none.
#[must_use]
pub fn width() -> Option<usize> {
    size().map(|(columns, _)| columns)
}

/// Columns and rows of that terminal.
#[must_use]
pub fn size() -> Option<(usize, usize)> {
    // stderr comes first because progress is drawn there.
    let size = terminal_size::terminal_size_of(io::stderr()).or_else(terminal_size::terminal_size);
    size.map(|(columns, rows)| (usize::from(columns.0), usize::from(rows.0))).filter(|(columns, _)| *columns > 0)
}

/// Waits until standard input, of any kind, is readable or has ended; forever without `patience`.
/// `false`: nothing came in time.
#[cfg(unix)]
#[must_use]
pub fn stdin_ready(patience: Option<Duration>) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;

    let stdin = io::stdin();
    let timeout = patience.map_or(PollTimeout::NONE, |time| time.try_into().unwrap_or(PollTimeout::MAX));
    // The read that follows reports an error better.
    poll(&mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)], timeout).map_or(true, |ready| ready > 0)
}

/// Whether standard input is a pipe that holds nothing and that nobody can write to any more.
#[cfg(unix)]
#[must_use]
pub fn stdin_is_spent() -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;

    let stdin = io::stdin();
    let mut asked = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut asked, PollTimeout::ZERO).is_ok() && asked[0].revents() == Some(PollFlags::POLLHUP)
}

/// Whether standard input is `/dev/null`, as of programs that were started with no input.
#[cfg(unix)]
#[must_use]
pub fn stdin_is_null() -> bool {
    use std::os::unix::fs::MetadataExt;

    let stdin = nix::sys::stat::fstat(io::stdin());
    let null = std::fs::metadata("/dev/null");
    stdin.is_ok_and(|stdin| null.is_ok_and(|null| (null.dev(), null.ino()) == (stdin.st_dev, stdin.st_ino)))
}

/// Where it cannot be asked, it is read like any other file.
#[cfg(not(unix))]
#[must_use]
pub fn stdin_is_null() -> bool {
    false
}

/// Where it cannot be asked, the read that follows waits.
#[cfg(not(unix))]
#[must_use]
pub fn stdin_ready(_: Option<Duration>) -> bool {
    true
}

/// The modes that the terminal had when the program came.
#[cfg(unix)]
#[derive(Clone, Copy)]
pub struct Modes {
    before: nix::libc::termios,
}

#[cfg(unix)]
impl Modes {
    /// `None` when stdin is no terminal.
    #[must_use]
    pub fn save() -> Option<Self> {
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return None;
        }
        nix::sys::termios::tcgetattr(stdin).ok().map(|before| Self { before: before.into() })
    }

    /// From here on the terminal keeps what is typed for later: it is neither echoed into the output nor lost to
    /// Ctrl-C, which is a signal.
    pub fn hold_keys(&self) {
        use nix::sys::termios::{InputFlags, LocalFlags, SpecialCharacterIndices};

        let mut held = nix::sys::termios::Termios::from(self.before);
        held.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        held.local_flags.insert(LocalFlags::ISIG | LocalFlags::NOFLSH);
        // Enter stays a carriage return, which is what the line editor takes for Enter.
        held.input_flags.remove(InputFlags::ICRNL);
        held.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        held.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        set(&held);
    }

    /// As it was before.
    pub fn restore(&self) {
        set(&self.before.into());
    }
}

#[cfg(unix)]
fn set(modes: &nix::sys::termios::Termios) {
    use nix::sys::termios::{SetArg, tcsetattr};

    // Nothing can be done about a terminal that has gone away.
    let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, modes);
}

/// Lets reading from the terminal at stdin end at once where no key is waiting, or wait for one as usual. Whoever puts
/// back the modes of the terminal lets it wait again.
#[cfg(unix)]
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

/// The keys that the terminal at stdin holds now, taken out of it; empty where there is no terminal. Never waits.
#[cfg(unix)]
#[must_use]
pub fn typed_ahead() -> Vec<u8> {
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    let stdin = io::stdin();
    let mut typed = Vec::new();
    if !stdin.is_terminal() {
        return typed;
    }
    let mut buffer = [0; 4096];
    loop {
        let mut ready = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::ZERO) {
            Ok(1) if ready[0].any() == Some(true) => {}
            _ => return typed,
        }
        match nix::unistd::read(stdin.as_fd(), &mut buffer) {
            Ok(count) if count > 0 => typed.extend_from_slice(&buffer[..count]),
            _ => return typed,
        }
    }
}

/// Here the terminal keeps its modes, and the line editor alone reads it.
#[cfg(not(unix))]
#[derive(Clone, Copy)]
pub struct Modes;

#[cfg(not(unix))]
impl Modes {
    /// Nothing to save.
    #[must_use]
    pub fn save() -> Option<Self> {
        None
    }

    /// Does nothing.
    pub fn hold_keys(&self) {}

    /// Does nothing.
    pub fn restore(&self) {}
}

/// Here reading always waits: Enter ends a line, whatever follows.
#[cfg(not(unix))]
pub fn wait_for_keys(_: bool) {}

/// Nothing is taken out: the line editor reads what was typed.
#[cfg(not(unix))]
#[must_use]
pub fn typed_ahead() -> Vec<u8> {
    Vec::new()
}
