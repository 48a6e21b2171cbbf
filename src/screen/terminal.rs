//! The terminal: its size and abilities, its keys, and its modes.
//!
//! Only this module changes the terminal's modes; [`put_back`] restores them at every end
//! of the program.

#[cfg_attr(not(unix), allow(dead_code, reason = "keys are read one by one on Unix alone"))]
mod abilities;
#[cfg_attr(not(unix), allow(dead_code, reason = "keys are read one by one on Unix alone"))]
mod keys;
#[cfg_attr(not(unix), allow(dead_code, reason = "keys are read one by one on Unix alone"))]
mod field;
#[cfg_attr(not(unix), allow(dead_code, reason = "keys are read one by one on Unix alone"))]
mod reports;
mod resizes;
mod streams;
#[cfg_attr(not(unix), allow(dead_code, reason = "keys are read one by one on Unix alone"))]
mod vi_motion;
#[cfg_attr(not(unix), allow(dead_code, reason = "keys are read one by one on Unix alone"))]
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
#[cfg(target_os = "linux")]
pub use input::stdin_is_spent;
#[cfg(unix)]
pub use input::{
    find_stdin_size, forget_typed, interrupt_process, leave_stops_to_the_reader, stdin_is_null, stdin_ready,
    typed_ahead,
};
pub use keys::{Key, Listener};
#[cfg(unix)]
pub use modes::{HiddenTyping, put_back};
#[cfg(not(unix))]
pub use no_console::{
    Away, Console, HiddenTyping, find_stdin_size, forget_typed, interrupt_process, leave_stops_to_the_reader,
    put_back, stdin_is_null, stdin_ready, typed_ahead,
};
pub use reports::KeyReports;
pub use resizes::Resizes;
pub use streams::{has_person, stderr_is_terminal, stdin_is_terminal, stdout_is_terminal};
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
