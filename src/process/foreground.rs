//! A program that takes the terminal over for a while: a person's editor.

use std::io;
use std::path::Path;

use tokio::process::Command;

use super::SHELL;

/// Runs a command line of the person's own (`code --wait`) with the terminal as its own, and `file` as its last word.
/// Waits for its end; true if it ended well. Dropping the future kills it.
///
/// # Errors
/// When it cannot be started.
pub async fn in_foreground(line: &str, file: &Path) -> io::Result<bool> {
    let [shell, flag] = SHELL;
    let line = format!("{line} \"$1\"");
    let status = Command::new(shell).args([flag, &line, shell]).arg(file).kill_on_drop(true).status().await?;
    Ok(status.success())
}
