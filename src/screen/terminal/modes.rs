//! The modes of the terminal: saved at the start, changed while keys are read, and restored at every end.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::termios::{InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr};

use super::reports::KeyReports;

/// The modes that the terminal had when the program started.
#[derive(Clone, Copy)]
pub struct Modes {
    before: nix::libc::termios,
}

/// The modes to restore.
static BEFORE: OnceLock<Modes> = OnceLock::new();
/// True while the terminal has other modes.
static IS_CHANGED: AtomicBool = AtomicBool::new(false);

/// Turns off everything that may be on: marks around pastes, a hidden cursor, a frame (private modes 2004, 25, 2026).
const ALL_OFF: &str = "\x1b[?2026l\x1b[?25h\x1b[?2004l";

impl Modes {
    /// Saves the modes. `None` if stdin is not a terminal.
    pub fn save() -> Option<Self> {
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return None;
        }
        let before = tcgetattr(stdin).ok()?.into();
        Some(*BEFORE.get_or_init(|| Self { before }))
    }

    /// Makes keys arrive one by one, without echo, Ctrl-C and Ctrl-Z too: their reader passes them on once the screen is
    /// ready. Ctrl-\ means nothing: it would leave the terminal in these modes.
    pub fn hold_keys(&self) {
        let mut held = Termios::from(self.before);
        held.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::IEXTEN);
        held.local_flags.insert(LocalFlags::ISIG | LocalFlags::NOFLSH);
        // Enter stays a carriage return, apart from Ctrl-J; Ctrl-S is a key.
        held.input_flags.remove(InputFlags::ICRNL | InputFlags::IXON);
        held.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        held.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        for key in [SpecialCharacterIndices::VSUSP, SpecialCharacterIndices::VINTR, SpecialCharacterIndices::VQUIT]
        {
            held.control_chars[key as usize] = nix::libc::_POSIX_VDISABLE;
        }
        IS_CHANGED.store(true, Ordering::SeqCst);
        set_modes(&held);
    }

    /// Turns off the echo. Typed text stays for the next reader of the terminal.
    pub fn hush(&self) {
        let mut quiet = Termios::from(self.before);
        quiet.local_flags.remove(LocalFlags::ECHO);
        IS_CHANGED.store(true, Ordering::SeqCst);
        set_modes(&quiet);
    }

    /// Restores the saved modes.
    pub fn restore(&self) {
        IS_CHANGED.store(false, Ordering::SeqCst);
        set_modes(&self.before.into());
    }
}

/// What is typed is not shown as long as this lives. A signal that ends the program shows it again ([`put_back`]).
pub struct HiddenTyping(Option<Modes>);

impl HiddenTyping {
    /// Hides it, before anybody is asked to type.
    pub fn begin() -> Self {
        let modes = Modes::save();
        modes.iter().for_each(Modes::hush);
        Self(modes)
    }
}

impl Drop for HiddenTyping {
    fn drop(&mut self) {
        self.0.iter().for_each(Modes::restore);
    }
}

/// Restores the terminal, however the program ends.
pub fn put_back() {
    let Some(modes) = BEFORE.get().filter(|_| IS_CHANGED.load(Ordering::SeqCst)) else {
        return;
    };
    let mut stderr = io::stderr();
    let reports = KeyReports::find().map_or("", KeyReports::end);
    let _ = write!(stderr, "{ALL_OFF}{reports}").and_then(|()| stderr.flush());
    modes.restore();
}

/// Restores the terminal before a panic's message is written.
pub(super) fn put_back_after_panic() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            put_back();
            report(panic);
        }));
    });
}

fn set_modes(modes: &Termios) {
    // If the terminal is gone, nothing can be done.
    let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, modes);
}
