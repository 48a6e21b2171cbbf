//! The file of a session: entries are appended, never changed, and only by one process at a time.
//!
//! What cannot be written stays in `pending`, in order, and is tried again with the next entry; a line that was
//! written in part is cut off again, so that the file always ends with a whole line.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::SessionError;

/// A log that this process may append to.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Made with the first write: a session in which nothing was said leaves no file.
    file: Option<File>,
    /// Bytes of the file that are whole lines.
    len: u64,
    pending: Vec<u8>,
    unsynced: bool,
}

/// What was written and is not on disk for good yet.
#[derive(Debug)]
#[must_use = "nothing is durable before it was waited for"]
pub struct Syncing {
    file: File,
    path: PathBuf,
}

impl Syncing {
    /// Waits for the disk. Blocks.
    ///
    /// # Errors
    /// When the disk is in the way.
    pub fn wait(self) -> Result<(), SessionError> {
        self.file.sync_data().map_err(|error| SessionError::io(&self.path, "synced", error))
    }
}

impl Log {
    /// A log that does not exist yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, len: 0, pending: Vec::new(), unsynced: false }
    }

    /// Opens an existing log, locked against other processes, with what it holds. [`Log::cut`] has to follow before
    /// anything is appended.
    pub fn open(path: &Path, id: &str) -> Result<(Self, Vec<u8>), SessionError> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .map_err(|error| SessionError::io(path, "opened", error))?;
        lock(&file, path, id)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| SessionError::io(path, "read", error))?;
        let len = bytes.len() as u64;
        Ok((Self { path: path.to_path_buf(), file: Some(file), len, pending: Vec::new(), unsynced: false }, bytes))
    }

    /// Cuts a torn end off, so that the next entry begins a line.
    pub fn cut(&mut self, whole: u64, ends_with_newline: bool) -> Result<(), SessionError> {
        if let Some(file) = &self.file
            && whole < self.len
        {
            file.set_len(whole).map_err(|error| SessionError::io(&self.path, "repaired", error))?;
            self.len = whole;
        }
        if !ends_with_newline {
            self.pending.push(b'\n');
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Queues an entry as a line.
    pub fn push(&mut self, entry: &impl Serialize) {
        serde_json::to_writer(&mut self.pending, entry).expect("entries are plain data, and memory takes them");
        self.pending.push(b'\n');
    }

    /// Hands what is queued to the operating system: it survives the end of this process.
    pub fn write(&mut self) -> Result<(), SessionError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => create(&self.path)?,
        };
        let written = file.write_all(&self.pending);
        if written.is_err() {
            // Best effort: what stays is a torn line, which reading repairs.
            let _ = file.set_len(self.len);
        }
        self.file = Some(file);
        written.map_err(|error| SessionError::io(&self.path, "written", error))?;
        self.len += self.pending.len() as u64;
        self.pending.clear();
        self.unsynced = true;
        Ok(())
    }

    /// Writes what is queued and waits for the disk: it survives the end of the machine.
    pub fn sync(&mut self) -> Result<(), SessionError> {
        match self.begin_sync()? {
            Some(syncing) => syncing.wait(),
            None => Ok(()),
        }
    }

    /// Writes what is queued; what is returned waits for the disk. `None` when there is nothing to wait for.
    pub fn begin_sync(&mut self) -> Result<Option<Syncing>, SessionError> {
        self.write()?;
        let Some(file) = self.file.as_ref().filter(|_| self.unsynced) else { return Ok(None) };
        let file = file.try_clone().map_err(|error| SessionError::io(&self.path, "synced", error))?;
        self.unsynced = false;
        Ok(Some(Syncing { file, path: self.path.clone() }))
    }
}

/// A new file, for this user alone.
fn create(path: &Path) -> Result<File, SessionError> {
    if let Some(dir) = path.parent() {
        make_dir(dir).map_err(|error| SessionError::io(dir, "created", error))?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| SessionError::io(path, "created", error))?;
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    lock(&file, path, &id)?;
    Ok(file)
}

fn make_dir(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn lock(file: &File, path: &Path, id: &str) -> Result<(), SessionError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(SessionError::Locked { id: id.to_owned() }),
        // Some network file systems know no locks: going on is better than keeping no session.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(SessionError::io(path, "locked", error)),
    }
}
