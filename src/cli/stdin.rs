//! Standard input beside a task: read to its end where another process of the pipeline writes it, and not waited for
//! where only the program that started us holds the other end and says nothing.

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use super::args::StdinMode;
use crate::terminal;

/// More than this is an error, never a silent cut.
const MOST_BYTES: usize = 16 << 20;
/// How long a first byte is waited for when only our ancestors could send it.
const FORGOTTEN: Duration = Duration::from_millis(500);
/// How long when it cannot be told who could.
const UNKNOWN: Duration = Duration::from_secs(10);

/// Who holds the other end of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// Another process of the pipeline, or a file: the end will come.
    Peer,
    /// Only processes that started us: a pipe that nobody may ever close.
    Ancestor,
    Unknown,
}

/// What came, or why nothing did.
#[derive(Debug)]
pub enum Input {
    Text(Vec<u8>),
    /// Nothing was read; a note for the person, where there is something to say.
    Nothing(Option<String>),
}

/// Why standard input could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StdinError {
    #[error("stdin has more than 16 MiB: pass a part of it, or save it to a file and name the file")]
    TooLarge,
    #[error("stdin is empty, and it was asked for")]
    Empty,
    #[error("stdin is a terminal: pipe something in, or give the task as an argument")]
    Terminal,
    #[error("cannot read stdin: {0}")]
    Read(#[from] io::Error),
}

/// Reads standard input as an attachment to a task. `say` shows a note while it waits.
pub fn attachment(mode: StdinMode, say: impl FnMut(&str)) -> Result<Input, StdinError> {
    match mode {
        StdinMode::None => Ok(Input::Nothing(None)),
        StdinMode::Require => whole(say).map(Input::Text),
        StdinMode::Auto if io::stdin().is_terminal() => Ok(Input::Nothing(None)),
        StdinMode::Auto => read(false, say),
    }
}

/// Waits for all of standard input, as the task or as `-f -`.
pub fn whole(say: impl FnMut(&str)) -> Result<Vec<u8>, StdinError> {
    if io::stdin().is_terminal() {
        return Err(StdinError::Terminal);
    }
    match read(true, say)? {
        Input::Text(bytes) => Ok(bytes),
        Input::Nothing(_) => Err(StdinError::Empty),
    }
}

/// Reads to the end. When nothing comes at once and it need not come, who could still send it decides how long it is
/// waited for.
fn read(must_come: bool, mut say: impl FnMut(&str)) -> Result<Input, StdinError> {
    if !terminal::stdin_ready(Some(FORGOTTEN)) {
        // Only now is it asked who writes: to look at every process takes longer than most inputs take to come.
        let writer = if must_come { Writer::Peer } else { writer_of_stdin() };
        let patience = match writer {
            Writer::Ancestor => return Ok(Input::Nothing(Some(silent(FORGOTTEN)))),
            Writer::Unknown => Some(UNKNOWN),
            Writer::Peer => None,
        };
        say("waiting for stdin …");
        if !terminal::stdin_ready(patience.map(|patience| patience.saturating_sub(FORGOTTEN))) {
            return Ok(Input::Nothing(patience.map(silent)));
        }
    }
    let bytes = read_rest()?;
    let blank = bytes.iter().all(u8::is_ascii_whitespace);
    Ok(if blank { Input::Nothing(None) } else { Input::Text(bytes) })
}

fn silent(waited: Duration) -> String {
    format!(
        "nothing came on stdin within {}: going on without it (--stdin none says so from the start, \
         --stdin require waits)",
        crate::config::format_duration(waited)
    )
}

fn read_rest() -> Result<Vec<u8>, StdinError> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_BYTES { Err(StdinError::TooLarge) } else { Ok(bytes) }
}

/// Looks up who else has the pipe open for writing. Files and `/dev/null` end by themselves.
#[cfg(target_os = "linux")]
fn writer_of_stdin() -> Writer {
    let Ok(link) = std::fs::read_link("/proc/self/fd/0") else { return Writer::Unknown };
    let name = link.to_string_lossy().into_owned();
    if !name.starts_with("pipe:") {
        return if name.starts_with('/') && !name.starts_with("/dev/") || name == "/dev/null" {
            Writer::Peer
        } else {
            Writer::Unknown
        };
    }
    let ancestors = ancestors();
    let Ok(processes) = std::fs::read_dir("/proc") else { return Writer::Unknown };
    let own = std::process::id();
    let holders: Vec<u32> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|process| *process != own && writes_to(*process, &link))
        .collect();
    if holders.iter().any(|holder| !ancestors.contains(holder)) {
        Writer::Peer
    } else if holders.is_empty() {
        // Closed already (the read ends at once), or held by a process that may not be looked at.
        Writer::Unknown
    } else {
        Writer::Ancestor
    }
}

#[cfg(not(target_os = "linux"))]
fn writer_of_stdin() -> Writer {
    Writer::Unknown
}

#[cfg(target_os = "linux")]
fn writes_to(process: u32, pipe: &std::path::Path) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    descriptors.flatten().any(|entry| {
        std::fs::read_link(entry.path()).is_ok_and(|target| target == pipe)
            && opened_for_writing(process, &entry.file_name().to_string_lossy())
    })
}

/// `flags` in fdinfo is octal; its last two bits are the access mode, 0 for reading alone.
#[cfg(target_os = "linux")]
fn opened_for_writing(process: u32, descriptor: &str) -> bool {
    let Ok(info) = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}")) else { return false };
    info.lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & 0b11 != 0)
}

#[cfg(target_os = "linux")]
fn ancestors() -> Vec<u32> {
    let mut chain = Vec::new();
    let mut process = std::process::id();
    while let Some(parent) = parent_of(process).filter(|parent| *parent > 0 && !chain.contains(parent)) {
        chain.push(parent);
        process = parent;
    }
    chain
}

/// The fourth field of `stat`; the second is a name in parentheses that may hold anything.
#[cfg(target_os = "linux")]
fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
