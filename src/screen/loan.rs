//! A loan of the terminal to another program, such as a pager or an editor.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::display::Suspended;
use super::outlets::Outlets;
use crate::screen::terminal::{Away, Console};

/// The number of loans, and the end of the last one.
static LOANS: Mutex<(usize, Option<Instant>)> = Mutex::new((0, None));
/// An interrupt for the other program reaches this one too, and is read by a thread of its own: on a busy machine, after the
/// loan. Nobody means a press this soon for another one.
const LATE: Duration = Duration::from_millis(200);

/// Counts as a loan until it is dropped.
struct Counted;

impl Counted {
    fn new() -> Self {
        LOANS.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut loans = LOANS.lock().unwrap_or_else(PoisonError::into_inner);
        *loans = (loans.0 - 1, Some(Instant::now()));
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

/// True while another program has the terminal, and a moment longer: then Ctrl-C is for that program.
pub fn is_lent() -> bool {
    let (loans, ended) = *LOANS.lock().unwrap_or_else(PoisonError::into_inner);
    loans > 0 || ended.is_some_and(|ended| ended.elapsed() < LATE)
}
