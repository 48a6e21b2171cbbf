//! Runs the user's own programs: an editor or a pager, which takes over the terminal for a while, one that is given a
//! text, and the user's command lines.
//!
//! They stay in the process group of this program, which is in the foreground: the terminal sends Ctrl-C and Ctrl-Z to
//! both. The caller ignores interrupts meanwhile.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::shell::add_arguments;
use super::subject::{Pipes, describe_exit, poll_pipes, spawn_piped};
use super::{Exit, LINGER, SHELL};
use crate::base::text;

const READ_BYTES: usize = 8 * 1024;
/// Ctrl-C reaches the shell as well, which must wait for the program, as the program may handle it.
const WAIT_THROUGH_INTERRUPTS: &str = if cfg!(unix) { "trap : INT; " } else { "" };

/// Runs a command line of the user (`code --wait`) on the terminal, with `file` as its last word. Waits for its end;
/// returns true if it succeeded. Dropping the future kills it.
///
/// # Errors
/// It cannot be started.
pub async fn in_foreground(line: &str, file: &Path) -> io::Result<bool> {
    if cfg!(windows) {
        return Ok(prepare_shell(&format!("{line} \"{}\"", file.display())).status().await?.success());
    }
    let mut command = prepare_shell(&format!("{line} \"$1\""));
    Ok(command.arg(SHELL[0]).arg(file).status().await?.success())
}

/// Runs a command line of the user (`less -R`) on the terminal, with `file` as its input. Waits for its end; returns
/// true if it succeeded. Dropping the future kills it.
///
/// # Errors
/// It cannot be started.
pub async fn run_pager(line: &str, file: &Path) -> io::Result<bool> {
    Ok(prepare_shell(line).stdin(File::open(file)?).status().await?.success())
}

fn prepare_shell(line: &str) -> Command {
    let [shell, flag] = SHELL;
    let mut command = Command::new(shell);
    add_arguments(&mut command, &[flag, &format!("{WAIT_THROUGH_INTERRUPTS}{line}")]);
    command.kill_on_drop(true);
    command
}

/// Gives a program its input, and waits for its end; returns true if it succeeded within a few seconds.
///
/// # Errors
/// It cannot be started, or does not take its input.
pub async fn feed_program(program: &[&str], input: &[u8]) -> io::Result<bool> {
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

/// Runs a program that the user's own configuration names, with the whole environment and outside of any workspace, and
/// returns what it printed.
///
/// # Errors
/// The end of a sentence about it: it cannot be started, fails, or takes too long.
pub async fn ask_program(program: &[String], patience: Duration) -> Result<Vec<u8>, String> {
    const COLUMNS: usize = 200;
    let [name, arguments @ ..] = program else { return Err("names no program".to_owned()) };
    let mut command = Command::new(name);
    command.args(arguments).current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    let ended = timeout(patience, command.output()).await;
    let ended = ended.map_err(|_| format!("took longer than {} s", patience.as_secs()))?;
    let ended = ended.map_err(|error| format!("cannot be started: {error}"))?;
    if ended.status.success() {
        return Ok(ended.stdout);
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = text::one_line(said.trim().lines().last().unwrap_or_default(), COLUMNS);
    let exit = match describe_exit(ended.status) {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(name) => name,
    };
    Err(format!("failed ({exit}): {said}").trim_end_matches([' ', ':']).to_owned())
}

/// True if a program of this name is in one of the directories of `path`, the value of `PATH`.
pub fn is_on_path(program: &str, path: &str) -> bool {
    std::env::split_paths(path).any(|dir| dir.is_absolute() && dir.join(program).is_file())
}

/// A command line of the user, for their shell.
#[derive(Debug, Clone, Copy)]
pub struct PersonsLine<'a> {
    /// The shell; `None` for that of the system.
    pub shell: Option<&'a str>,
    pub line: &'a str,
    pub dir: &'a Path,
}

impl PersonsLine<'_> {
    /// Runs it as the shell would: on the terminal, with the whole environment and without the sandbox. Waits for its
    /// end. Dropping the future kills the shell.
    ///
    /// # Errors
    /// The shell cannot be started.
    pub async fn run(self) -> io::Result<Exit> {
        self.command().status().await.map(describe_exit)
    }

    /// Does the same, but passes its output to `heard` instead of the terminal.
    ///
    /// # Errors
    /// The shell cannot be started.
    pub async fn overhear(self, mut heard: impl FnMut(&[u8])) -> io::Result<Exit> {
        let (mut child, mut pipes) = spawn_piped(self.command(), None)?;
        let ended = tokio::select! {
            () = pass_output(&mut pipes, &mut heard) => None,
            status = child.wait() => Some(status),
        };
        let status = match ended {
            Some(status) => {
                // Output from before the end is in the pipes already.
                let _ = timeout(LINGER, pass_output(&mut pipes, &mut heard)).await;
                status
            }
            None => child.wait().await,
        };
        status.map(describe_exit)
    }

    fn command(self) -> Command {
        let (shell, flag) = self.shell.map_or((SHELL[0], SHELL[1]), |shell| (shell, "-c"));
        let mut command = Command::new(shell);
        add_arguments(&mut command, &[flag, self.line]);
        command.current_dir(self.dir).kill_on_drop(true);
        command
    }
}

/// Passes on the output of the pipes until all have ended. Nothing is lost if it is dropped.
async fn pass_output(pipes: &mut Pipes, heard: &mut impl FnMut(&[u8])) {
    let mut buffer = [0; READ_BYTES];
    poll_fn(|cx| {
        loop {
            let any = poll_pipes(pipes, &mut buffer, cx, &mut *heard);
            if pipes.is_empty() {
                return Poll::Ready(());
            }
            if !any {
                return Poll::Pending;
            }
        }
    })
    .await;
}
