//! What a background command reads: a pipe that stays open until its text ends, or the command does.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::base::output::ToolError;

/// The most that is written at once, in bytes: what a pipe holds that nobody reads.
const MOST: usize = 64 * 1024;
/// The longest wait for a command to read.
const PATIENCE: Duration = Duration::from_secs(5);

/// The writing end; empty once the text has ended.
#[derive(Clone)]
pub(super) struct CommandInput(Arc<Mutex<Option<PipeWriter>>>);

impl CommandInput {
    /// Opens the pipe. The command gets the other end.
    pub fn open() -> io::Result<(Self, PipeReader)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(Arc::new(Mutex::new(Some(writer)))), reader))
    }

    /// Writes `text`; an empty one ends the input.
    ///
    /// # Errors
    /// It is too long, the input has ended, or the command does not read.
    pub async fn write(&self, text: &str) -> Result<(), ToolError> {
        if text.len() > MOST {
            return Err(ToolError::parameter(format!("input has more than {MOST} bytes: write it to a file")));
        }
        let unread = || ToolError::permanent("the command does not read its input: earlier text waits for it");
        // A write that waits for its reader holds the lock, and ends with the command.
        let held = tokio::time::timeout(PATIENCE, Arc::clone(&self.0).lock_owned()).await;
        let mut held = held.map_err(|_| unread())?;
        if text.is_empty() {
            *held = None;
            return Ok(());
        }
        let text = text.to_owned();
        let writing = tokio::task::spawn_blocking(move || match held.as_mut() {
            Some(writer) => writer.write_all(text.as_bytes()).map_err(|error| format!("it is not taken: {error}")),
            None => Err("the input of this command has ended".to_owned()),
        });
        let written = tokio::time::timeout(PATIENCE, writing).await.map_err(|_| unread())?;
        written.unwrap_or_else(|error| Err(error.to_string())).map_err(ToolError::permanent)
    }
}
