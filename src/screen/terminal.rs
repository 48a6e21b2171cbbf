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

pub use abilities::Abilities;
#[cfg(unix)]
pub use console::{Away, Console};
pub use field::{Edited, TextField};
#[cfg(unix)]
pub use input::{
    find_stdin_size, forget_typed, leave_signals_to_the_reader, stdin_is_null, stdin_is_spent, stdin_ready,
    stop_program, typed_ahead, wait_for_keys,
};
pub use keys::{Key, Listener};
#[cfg(unix)]
pub use modes::{HiddenTyping, put_back};
#[cfg(not(unix))]
pub use no_console::{
    Away, Console, HiddenTyping, find_stdin_size, forget_typed, leave_signals_to_the_reader, put_back,
    stdin_is_null, stdin_ready, stop_program, typed_ahead, wait_for_keys,
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
