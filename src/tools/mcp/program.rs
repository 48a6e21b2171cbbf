//! Starts the program of a server, inside walls if its file wants them, and keeps the end of its stderr for messages.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::time::timeout;

use crate::base::output::Exit;
use crate::base::text;
use crate::config::McpServerConfig;
use crate::safety::process::{ServerLaunch, ServerProcess, ServerStreams};
use crate::safety::sandbox::{Sandbox, SandboxProfile};
use crate::tools::commands::confined::keep_programs_outside;

use super::McpSurroundings;

/// The end of its stderr that is kept for a message.
const KEPT_ERRORS: usize = 2048;
/// Why a server cannot be reached whose program closed its streams, as far as the connection knows.
pub(super) const ENDED: &str = "ended before it answered";
/// A program that closed its streams has ended by then, or does something else.
const ENDED_WITHIN: Duration = Duration::from_millis(200);
/// The longest line of its stdout.
const LONGEST: u64 = 16 * 1024 * 1024;

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
    let mut env = around.env.variables().to_vec();
    let own = config.env.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
    env.retain(|(name, _)| !config.env.contains_key(name));
    env.extend(own);
    let walls = match sandbox {
        Some(sandbox) => {
            let walls = sandbox.walls(SandboxProfile::Write).map_err(|error| cannot_start(&error))?;
            env.retain(|(name, _)| name != "TMPDIR");
            let temp = walls.temp_dir().map_err(|error| cannot_start(&error))?;
            env.push(("TMPDIR".to_owned(), temp.to_string_lossy().into_owned()));
            Some(walls)
        }
        None => {
            keep_programs_outside(&mut env, &around.dir);
            None
        }
    };
    let launch = ServerLaunch { line: &config.command, dir: &around.dir, env: &env, walls: walls.as_ref() };
    let (process, mut streams) = launch.start().map_err(|error| explain_start(config, &error))?;
    let mut errors = std::mem::replace(&mut streams.errors, Box::pin(tokio::io::empty()));
    let (forward, output) = tokio::io::duplex(64 * 1024);
    tokio::spawn(pass_lines(std::mem::replace(&mut streams.output, Box::pin(output)), forward, Arc::clone(&kept)));
    tokio::spawn(async move {
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = errors.read(&mut buffer).await {
            keep_errors(&kept, &String::from_utf8_lossy(&buffer[..read]));
        }
    });
    Ok((process, streams))
}

fn cannot_start(why: &dyn Display) -> String {
    format!("cannot be started: {why}")
}

fn explain_start(config: &McpServerConfig, error: &io::Error) -> String {
    let program = config.command.first().map_or("", String::as_str);
    match error.kind() {
        ErrorKind::NotFound => cannot_start(&format!("there is no program `{program}`")),
        _ => cannot_start(&format!("{program}: {error}")),
    }
}

/// Why a server cannot be reached, if that is how its program ended: the end of a sentence. It is killed if it still runs.
pub(super) async fn explain_end(process: Option<ServerProcess>, config: &McpServerConfig) -> Option<String> {
    Some(match timeout(ENDED_WITHIN, process?.wait()).await.ok()? {
        Ok(Exit::Code(code)) => format!("ended with code {code} before it answered"),
        Ok(Exit::Signal(signal)) => format!("was ended by {signal} before it answered"),
        Err(error) => explain_start(config, &error),
    })
}

/// Keeps the end of what a server said of its errors, with this after it.
fn keep_errors(kept: &Mutex<String>, said: &str) {
    let mut kept = kept.lock().expect("no holder of the text panics");
    kept.push_str(said);
    let cut = kept.len() - text::take_tail(&kept, KEPT_ERRORS).len();
    kept.drain(..cut);
}

/// True for a request, a notification or a response of JSON-RPC.
fn is_message(message: &Map<String, Value>) -> bool {
    let has_error = message.get("error").is_some_and(|error| !error.is_null());
    message.contains_key("method") || message.contains_key("result") != has_error
}

/// Passes on what a server writes on its stdout. A line that is no message is kept beside its stderr; one that was meant as a
/// message ends the connection, as the call that it answers would wait in vain.
async fn pass_lines(output: impl AsyncRead + Unpin, mut forward: DuplexStream, kept: Arc<Mutex<String>>) {
    let (mut output, mut line) = (BufReader::new(output), Vec::new());
    while let Ok(1..) = (&mut output).take(LONGEST).read_until(b'\n', &mut line).await {
        let parsed = serde_json::from_slice::<Value>(line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line));
        let is_long = line.len() as u64 == LONGEST;
        let wrong = match parsed {
            Err(_) if is_long => Some("longer than 16 MiB".to_owned()),
            Err(error) => Some(format!("no JSON ({error})")),
            Ok(Value::Object(message)) if !is_message(&message) => {
                Some("no message: it asks nothing, and has not one of result and error".to_owned())
            }
            Ok(_) => None,
        };
        if let Some(why) = wrong.filter(|_| !line.trim_ascii().is_empty()) {
            let text = String::from_utf8_lossy(&line);
            let head = text::take_head(&text, KEPT_ERRORS / 2).trim();
            keep_errors(&kept, &format!("\nit sent a line that is {why}: {head}\n"));
            if is_long || (text.starts_with('{') && text.contains("\"jsonrpc\"")) {
                return;
            }
        }
        if forward.write_all(&line).await.is_err() {
            return;
        }
        line.clear();
    }
}
