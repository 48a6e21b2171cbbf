//! The terminal itself: how wide it is, what was typed while nobody read, and its modes.
//!
//! The only place that changes terminal modes outside the line editor; whatever it changed is put back on drop.

use std::io;
#[cfg(unix)]
use std::io::IsTerminal;

/// Columns of the terminal behind stderr (else stdout, else stdin); `None` where there is none.
#[must_use]
pub fn width() -> Option<usize> {
    // stderr comes first because progress is drawn there.
    let size = terminal_size::terminal_size_of(io::stderr()).or_else(terminal_size::terminal_size);
    size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
}

/// While it lives, keys are kept by the terminal: not echoed into the output, not lost to Ctrl-C, and Ctrl-C is a
/// signal. What was typed is read by the next [`typed_ahead`] or by the line editor.
#[cfg(unix)]
pub struct KeysHeld {
    before: nix::sys::termios::Termios,
}

#[cfg(unix)]
impl KeysHeld {
    /// `None` when stdin is no terminal.
    #[must_use]
    pub fn hold() -> Option<Self> {
        use nix::sys::termios::{InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, tcgetattr, tcsetattr};

        if !io::stdin().is_terminal() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok()?;
        let mut held = before.clone();
        held.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        held.local_flags.insert(LocalFlags::ISIG | LocalFlags::NOFLSH);
        // Enter stays a carriage return, which is what the line editor takes for Enter.
        held.input_flags.remove(InputFlags::ICRNL);
        held.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        held.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(io::stdin(), SetArg::TCSADRAIN, &held).ok()?;
        Some(Self { before })
    }
}

#[cfg(unix)]
impl Drop for KeysHeld {
    fn drop(&mut self) {
        use nix::sys::termios::{SetArg, tcsetattr};
        // Nothing can be done about a terminal that has gone away.
        let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.before);
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

/// Here the terminal keeps its modes; the line editor alone reads it.
#[cfg(not(unix))]
pub struct KeysHeld;

#[cfg(not(unix))]
impl KeysHeld {
    /// Nothing to hold.
    #[must_use]
    pub fn hold() -> Option<Self> {
        None
    }
}

/// Nothing is taken out: the line editor reads what was typed.
#[cfg(not(unix))]
#[must_use]
pub fn typed_ahead() -> Vec<u8> {
    Vec::new()
}
