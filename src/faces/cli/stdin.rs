//! Standard input beside a task. It is left alone if our parent may be reading it, read to its end if another process
//! of the pipeline writes it, and given up after a short wait if only the program that started us holds the other end
//! and writes nothing.

mod holders;

use std::io::{self, Read};
use std::time::Duration;

use super::args::StdinMode;
use crate::screen::terminal;
use holders::StdinWriter;

/// The most bytes that are read. More is an error; input is never truncated.
const MOST_BYTES: usize = 16 << 20;
/// The wait for a first byte that only our ancestors could send.
const FORGOTTEN: Duration = Duration::from_millis(500);
/// The wait for a first byte if the possible senders are unknown.
const UNKNOWN: Duration = Duration::from_secs(10);

/// The note that is shown if our parent holds the same input.
const SHARED: &str = "stdin was not attached, because the program that started this one may be reading it; \
                      --stdin require attaches it";

/// Data from standard input, if there is any.
#[derive(Debug)]
pub enum PipedInput {
    Text(Vec<u8>),
    /// Nothing was read. The note says why, if a person would wonder.
    Nothing(Option<String>),
}

/// The reason that standard input cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StdinError {
    #[error("stdin has more than 16 MiB. Pass a part of it, or save it to a file and name the file.")]
    TooLarge,
    #[error("stdin is empty, but input from it is required")]
    Empty,
    #[error("stdin is a terminal. Pipe something in, or give the task as an argument.")]
    Terminal,
    #[error("cannot read stdin: {0}")]
    Read(#[from] io::Error),
}

/// Reads standard input as an attachment to a task. `say` shows a note while it waits, and the size of the input.
pub fn read_attachment(mode: StdinMode, mut say: impl FnMut(&str)) -> Result<PipedInput, StdinError> {
    let input = match mode {
        StdinMode::None => PipedInput::Nothing(None),
        StdinMode::Require => PipedInput::Text(read_whole(&mut say)?),
        StdinMode::Auto if terminal::stdin_is_null() || terminal::stdin_is_terminal() => PipedInput::Nothing(None),
        StdinMode::Auto if holders::parent_shares() => PipedInput::Nothing(Some(SHARED.to_owned())),
        StdinMode::Auto => read_stdin(false, &mut say)?,
    };
    if let PipedInput::Text(bytes) = &input {
        say(&format!("attached stdin: {}", format_size(bytes.len())));
    }
    Ok(input)
}

/// Waits for all of standard input, as the task or as `-f -`.
pub fn read_whole(say: impl FnMut(&str)) -> Result<Vec<u8>, StdinError> {
    if terminal::stdin_is_terminal() {
        return Err(StdinError::Terminal);
    }
    match read_stdin(true, say)? {
        PipedInput::Text(bytes) => Ok(bytes),
        PipedInput::Nothing(_) => Err(StdinError::Empty),
    }
}

/// Reads to the end. If nothing arrives at once and input is optional, the wait depends on who could still send it.
fn read_stdin(must_come: bool, mut say: impl FnMut(&str)) -> Result<PipedInput, StdinError> {
    if !terminal::stdin_ready(Some(FORGOTTEN)) {
        // Looking at every process takes longer than most inputs need to arrive, so it is done last.
        let writer = if must_come { StdinWriter::Peer } else { holders::find_writer() };
        let patience = match writer {
            StdinWriter::Ancestor => return Ok(PipedInput::Nothing(Some(describe_silence(FORGOTTEN)))),
            StdinWriter::Unknown => Some(UNKNOWN),
            StdinWriter::Peer => None,
        };
        say("waiting for stdin …");
        if !terminal::stdin_ready(patience.map(|patience| patience.saturating_sub(FORGOTTEN))) {
            return Ok(PipedInput::Nothing(patience.map(describe_silence)));
        }
    }
    let bytes = read_rest()?;
    let blank = bytes.iter().all(u8::is_ascii_whitespace);
    Ok(if blank { PipedInput::Nothing(None) } else { PipedInput::Text(bytes) })
}

fn describe_silence(waited: Duration) -> String {
    format!(
        "nothing came on stdin within {}; going on without it (--stdin none does not wait, --stdin require waits \
         for the end)",
        crate::config::format_duration(waited)
    )
}

/// A size for people: `6 bytes`, `3.0 KiB`.
fn format_size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn read_rest() -> Result<Vec<u8>, StdinError> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_BYTES { Err(StdinError::TooLarge) } else { Ok(bytes) }
}
