//! A run under another program that observes it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `command`, with the arguments `last` behind its own, under `observer`; `None` if that is not installed.
pub fn run(mut observer: Command, command: &Command, last: &[&str], dir: &Path) -> Option<()> {
    observer.arg(command.get_program()).args(command.get_args()).args(last);
    surround(&mut observer, command);
    // As in `measure`: what is written for a reader takes a thread of its own.
    observer.stdout(fs::File::create(dir.join("stdout")).expect("the temporary directory is writable"));
    let output = observer.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?.wait_with_output().ok()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the observed run failed: {stderr}");
    Some(())
}

/// The variables and the directory of `command`.
pub fn surround(observer: &mut Command, command: &Command) {
    observer.env_clear();
    observer.envs(command.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
    observer.current_dir(command.get_current_dir().expect("each program has its place"));
}
