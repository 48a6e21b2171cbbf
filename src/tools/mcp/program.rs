//! Starts the program of a server, inside walls if its file wants them, and keeps the end of its stderr for messages.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use tokio::io::AsyncReadExt;

use crate::base::text;
use crate::config::McpServerConfig;
use crate::safety::process::{ServerLaunch, ServerProcess, ServerStreams};
use crate::safety::sandbox::{Sandbox, SandboxProfile};
use crate::tools::commands::confined::keep_programs_outside;

use super::McpSurroundings;

/// The end of its stderr that is kept for a message.
const KEPT_ERRORS: usize = 2048;

/// Starts it. Must run on the servers' thread.
///
/// # Errors
/// The end of a sentence about the server.
pub(super) fn start_program(
    config: &McpServerConfig,
    sandbox: Option<&Sandbox>,
    around: &McpSurroundings,
    kept: Arc<Mutex<String>>,
) -> Result<(ServerProcess, ServerStreams), String> {
    let cannot = |why: String| format!("cannot be started: {why}");
    let mut env = around.env.variables().to_vec();
    let own = config.env.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
    env.retain(|(name, _)| !config.env.contains_key(name));
    env.extend(own);
    let walls = match sandbox {
        Some(sandbox) => {
            let walls = sandbox.walls(SandboxProfile::Write).map_err(|error| cannot(error.to_string()))?;
            env.retain(|(name, _)| name != "TMPDIR");
            let temp = walls.temp_dir().map_err(|error| cannot(error.to_string()))?;
            env.push(("TMPDIR".to_owned(), temp.to_string_lossy().into_owned()));
            Some(walls)
        }
        None => {
            keep_programs_outside(&mut env, &around.dir);
            None
        }
    };
    let launch = ServerLaunch { line: &config.command, dir: &around.dir, env: &env, walls: walls.as_ref() };
    let (process, mut streams) = launch.start().map_err(|error| {
        let program = config.command.first().map_or("", String::as_str);
        cannot(match error.kind() {
            ErrorKind::NotFound => format!("there is no program `{program}`"),
            _ => format!("{program}: {error}"),
        })
    })?;
    let nothing = Box::pin(tokio::io::empty());
    let mut errors = std::mem::replace(&mut streams.errors, nothing);
    tokio::spawn(async move {
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = errors.read(&mut buffer).await {
            let mut kept = kept.lock().expect("no holder of the text panics");
            kept.push_str(&String::from_utf8_lossy(&buffer[..read]));
            let cut = kept.len() - text::take_tail(&kept, KEPT_ERRORS).len();
            kept.drain(..cut);
        }
    });
    Ok((process, streams))
}
