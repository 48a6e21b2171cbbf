//! Programs of the person's own: an editor or a pager, which takes the terminal over for a while, and one that is given
//! a text.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

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

/// Runs a command line of the person's own (`less -R`) with the terminal as its own, and `file` as its input. Waits for
/// its end; true if it ended well. Dropping the future kills it.
///
/// # Errors
/// When it cannot be started.
pub async fn paged(line: &str, file: &Path) -> io::Result<bool> {
    let [shell, flag] = SHELL;
    let input = File::open(file)?;
    let status = Command::new(shell).args([flag, line]).stdin(input).kill_on_drop(true).status().await?;
    Ok(status.success())
}

/// Gives a program its input, and waits for its end; true if it ended well in a few seconds.
///
/// # Errors
/// When it cannot be started, or does not take its input.
pub async fn fed(program: &[&str], input: &[u8]) -> io::Result<bool> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let [name, arguments @ ..] = program else { return Ok(false) };
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let whole = async {
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input).await?;
        }
        child.wait().await
    };
    match timeout(PATIENCE, whole).await {
        Ok(status) => status.map(|status| status.success()),
        Err(_) => Ok(false),
    }
}

/// Whether a program of this name lies in one of the directories of `path`, the value of `PATH`.
#[must_use]
pub fn found(program: &str, path: &str) -> bool {
    std::env::split_paths(path).any(|dir| dir.is_absolute() && dir.join(program).is_file())
}
