//! Runs the program of a hook: inside the walls of commands unless its file trusts it, with its input on stdin.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::config::HookConfig;
use crate::safety::process::{Exit, LINGER, ServerLaunch, ServerStreams};
use crate::safety::sandbox::{Protection, SandboxProfile, TempRoom, Walls};
use crate::tools::keep_programs_outside;

use super::HookGround;

/// The most that is read of what a hook prints, in bytes.
const MOST_OUTPUT: u64 = 1 << 20;

/// What a hook did.
#[derive(Debug)]
pub(super) struct EndedHook {
    pub exit: Exit,
    pub output: String,
    pub errors: String,
}

/// Runs a hook to its end. It reads `input`, with the path of a file that holds `transcript`, if there is one.
///
/// # Errors
/// A sentence: it cannot be started, takes too long, or prints too much.
pub(super) async fn run_hook(
    hook: &HookConfig,
    ground: &HookGround,
    input: &Value,
    transcript: Option<&str>,
) -> Result<EndedHook, String> {
    let mut env = ground.env.variables().to_vec();
    env.push(("CLAUDE_PROJECT_DIR".to_owned(), ground.workspace.to_string_lossy().into_owned()));
    let walls = match ground.sandbox.as_ref().filter(|_| !hook.trusted) {
        Some(sandbox) => {
            let walls = sandbox.walls(SandboxProfile::Write).map_err(|error| error.to_string())?;
            let temp = walls.temp_dir().map_err(|error| error.to_string())?;
            env.retain(|(name, _)| name != "TMPDIR");
            env.push(("TMPDIR".to_owned(), temp.to_string_lossy().into_owned()));
            Some(walls)
        }
        None => {
            keep_programs_outside(&mut env, &ground.workspace);
            None
        }
    };
    let lent = transcript.map(|transcript| lend_file(walls.as_ref(), transcript)).transpose();
    let lent = lent.map_err(|error| format!("its transcript cannot be written: {error}"))?;
    let mut input = Cow::Borrowed(input);
    if let Some((_, path)) = &lent {
        input.to_mut()["transcript_path"] = path.to_string_lossy().into();
    }
    let input = input.to_string();
    let protection = walls.as_ref().map(|walls| Protection::begin(walls, &ground.workspace));
    let launch = ServerLaunch { line: &hook.command, dir: &ground.workspace, env: &env, walls: walls.as_ref() };
    let program = hook.command.first().map_or("", String::as_str);
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no program `{program}`"),
        _ => error.to_string(),
    };
    let (mut process, streams) = launch.start().map_err(cannot)?;
    let ServerStreams { input: mut into, output, errors } = streams;
    let work = async {
        let (mut printed, mut complained) = (Vec::new(), Vec::new());
        let feed = async {
            // It need not read its input.
            let _ = into.write_all(input.as_bytes()).await;
            drop(into);
        };
        let mut talk = Box::pin(async {
            tokio::join!(feed, read_start(output, &mut printed), read_start(errors, &mut complained))
        });
        let exit = tokio::select! {
            exit = process.wait() => {
                // What it left behind may hold its pipes for ever.
                let _ = tokio::time::timeout(LINGER, &mut talk).await;
                exit
            }
            _ = &mut talk => process.wait().await,
        };
        drop(talk);
        Ok(EndedHook {
            exit: exit.map_err(cannot)?,
            output: read_text(&printed)?,
            errors: read_text(&complained)?,
        })
    };
    let ended = tokio::time::timeout(*hook.time_limit, work).await;
    // It ends with all that it started.
    drop(process);
    drop(protection.map(Protection::end));
    ended.unwrap_or_else(|_| {
        Err(format!("it took longer than {}", crate::config::format_duration(*hook.time_limit)))
    })
}

/// Puts a text where the hook can read it, until the file is dropped. Returns the path as the hook sees it as well.
fn lend_file(walls: Option<&Walls>, text: &str) -> io::Result<(NamedTempFile, PathBuf)> {
    let room = match walls {
        Some(walls) => walls.temp_room()?,
        None => TempRoom { dir: std::env::temp_dir(), seen_as: std::env::temp_dir() },
    };
    // A new file under a name that nobody knows: no link that a command left is followed.
    let mut file = tempfile::Builder::new().prefix("transcript-").suffix(".jsonl").tempfile_in(room.dir)?;
    file.write_all(text.as_bytes())?;
    let path = room.seen_as.join(file.path().file_name().unwrap_or_default());
    Ok((file, path))
}

/// Reads no more than tells that it is too much.
async fn read_start(from: impl AsyncRead + Unpin, bytes: &mut Vec<u8>) {
    // What came before an error was printed.
    let _ = from.take(MOST_OUTPUT + 1).read_to_end(bytes).await;
}

fn read_text(bytes: &[u8]) -> Result<String, String> {
    if bytes.len() as u64 > MOST_OUTPUT {
        return Err(format!("it printed more than {} KiB", MOST_OUTPUT >> 10));
    }
    Ok(String::from_utf8_lossy(bytes).into_owned())
}
