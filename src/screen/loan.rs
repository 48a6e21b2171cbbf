//! A loan of the terminal to another program, such as a pager or an editor.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::display::Suspended;
use super::outlets::Outlets;
use crate::screen::terminal::{Away, Console};

/// The number of loans.
static LOANS: AtomicUsize = AtomicUsize::new(0);

/// Counts as a loan until it is dropped.
struct Counted;

impl Counted {
    fn new() -> Self {
        LOANS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LOANS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Lends the terminal to another program, in its original modes, until it is dropped. Output waits meanwhile, and
/// Ctrl-C is for the other program.
pub struct Loan {
    /// Dropped before the keys come back: output that waits is written before a line is read. `None` once the screen is
    /// shown again.
    screen: Option<Suspended>,
    /// `None` if the terminal has its original modes all the time.
    _keys: Option<Away>,
    _counted: Counted,
}

impl Loan {
    /// Lends the terminal, and the keys of `console` with it.
    pub async fn take(console: Option<&Console>, outlets: &Outlets) -> Self {
        let counted = Counted::new();
        let screen = outlets.display.suspend();
        let written = outlets.clone();
        // A separate thread waits for a slow reader. It fails only if the runtime ends.
        let _ = tokio::task::spawn_blocking(move || written.wait()).await;
        let keys = match console {
            Some(console) => Some(console.leave().await),
            None => None,
        };
        Self { screen: Some(screen), _keys: keys, _counted: counted }
    }

    /// Shows the live area again, and what was written meanwhile. Keys stay with the other program.
    pub fn reveal(&mut self) {
        self.screen = None;
    }
}

/// True while another program has the terminal: then Ctrl-C is for that program.
pub fn is_lent() -> bool {
    LOANS.load(Ordering::SeqCst) > 0
}
