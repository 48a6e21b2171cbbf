//! The file of a session: entries are appended, never changed, and only by one process at a time.
//!
//! Entries that cannot be written stay in `pending`, in order, and are tried again with the next entry; a partly
//! written line is cut off, so the file always ends with a whole line.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;

use super::error::SessionError;
use crate::base::seal::seal_line;
use crate::files::private::{make_private_dir, private_file};

/// A log that this process may append to.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Created with the first write: a session without messages leaves no file.
    file: Option<File>,
    /// The length of the file's whole lines, in bytes.
    len: u64,
    pending: Vec<u8>,
    unsynced: bool,
    /// Files that the log names, which must be on disk before it.
    before: Vec<File>,
    /// The first sync that failed. After it the content of the disk is unknown, so every later sync fails too.
    failed: SyncFailure,
}

/// A failed sync, shared by everyone who may see one.
type SyncFailure = Arc<OnceLock<(io::ErrorKind, String)>>;

/// Bytes that were written but are not durable yet.
#[derive(Debug)]
#[must_use = "nothing is durable before it was waited for"]
pub struct Syncing {
    /// Files that the log refers to: synced before it.
    before: Vec<File>,
    file: File,
    path: PathBuf,
    failed: SyncFailure,
}

impl Syncing {
    /// Waits for the disk. Blocks.
    ///
    /// # Errors
    /// The disk fails.
    pub fn wait(self) -> Result<(), SessionError> {
        let synced = self.before.iter().chain([&self.file]).try_for_each(File::sync_data);
        if let Err(error) = synced {
            let _ = self.failed.set((error.kind(), error.to_string()));
        }
        check_sync(&self.failed, &self.path)
    }
}

fn check_sync(failed: &SyncFailure, path: &Path) -> Result<(), SessionError> {
    match failed.get() {
        None => Ok(()),
        Some((kind, why)) => Err(SessionError::io(path, "synced", io::Error::new(*kind, why.clone()))),
    }
}

impl Log {
    /// A log that does not exist yet.
    pub fn new(path: PathBuf) -> Self {
        let (pending, before, failed) = (Vec::new(), Vec::new(), SyncFailure::default());
        Self { path, file: None, len: 0, pending, unsynced: false, before, failed }
    }

    /// Opens an existing log, locked against other processes. Call [`Log::cut`] before appending.
    pub fn open(path: &Path, id: &str) -> Result<Self, SessionError> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .map_err(|error| SessionError::io(path, "opened", error))?;
        lock_file(&file, path, id)?;
        let len = file.metadata().map_err(|error| SessionError::io(path, "read", error))?.len();
        Ok(Self { file: Some(file), len, ..Self::new(path.to_path_buf()) })
    }

    /// Cuts off a torn end, so that the next entry begins a line.
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

    /// The file, once it exists.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Queues an entry as a line.
    pub fn push(&mut self, entry: &impl Serialize) {
        let from = self.pending.len();
        serde_json::to_writer(&mut self.pending, entry).expect("entries are plain data, and memory takes them");
        seal_line(&mut self.pending, from);
        self.pending.push(b'\n');
    }

    /// Queues a line of another log, with its line break. Returns the number of queued bytes.
    pub fn push_line(&mut self, line: &[u8]) -> usize {
        self.pending.extend_from_slice(line);
        self.pending.len()
    }

    /// Writes the queued entries to the operating system: they survive the end of this process.
    pub fn write(&mut self) -> Result<(), SessionError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => create_file(&self.path)?,
        };
        let written = file.write_all(&self.pending);
        if written.is_err() {
            // Best effort: a torn line may stay, and reading repairs it.
            let _ = file.set_len(self.len);
        }
        self.file = Some(file);
        written.map_err(|error| SessionError::io(&self.path, "written", error))?;
        self.len += self.pending.len() as u64;
        self.pending.clear();
        self.unsynced = true;
        Ok(())
    }

    /// Writes the queued entries and waits for the disk: they survive a crash of the machine.
    pub fn sync(&mut self) -> Result<(), SessionError> {
        let syncing = self.begin_sync()?;
        syncing.map_or_else(|| check_sync(&self.failed, &self.path), Syncing::wait)
    }

    /// Takes files that the next entries name.
    pub fn sync_before(&mut self, files: Vec<File>) {
        self.before.extend(files);
    }

    /// Writes the queued entries; the result waits for the disk. `None` if there is nothing to wait for.
    pub fn begin_sync(&mut self) -> Result<Option<Syncing>, SessionError> {
        self.write()?;
        check_sync(&self.failed, &self.path)?;
        let Some(file) = self.file.as_ref().filter(|_| self.unsynced) else { return Ok(None) };
        let file = file.try_clone().map_err(|error| SessionError::io(&self.path, "synced", error))?;
        self.unsynced = false;
        let before = std::mem::take(&mut self.before);
        Ok(Some(Syncing { before, file, path: self.path.clone(), failed: Arc::clone(&self.failed) }))
    }
}

/// Creates a file that only this user can read.
fn create_file(path: &Path) -> Result<File, SessionError> {
    if let Some(dir) = path.parent() {
        make_private_dir(dir).map_err(|error| SessionError::io(dir, "created", error))?;
    }
    let opened = private_file().append(true).create_new(true).open(path);
    let file = opened.map_err(|error| SessionError::io(path, "created", error))?;
    // A crash of the machine would lose a file whose directory entry is not on disk.
    #[cfg(unix)]
    if let Some(dir) = path.parent() {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| SessionError::io(dir, "synced", error))?;
    }
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    lock_file(&file, path, &id)?;
    Ok(file)
}

/// Locks the file. A child that was just started holds the lock of a session that its parent has closed, until it
/// executes its program, so a lock that is held is retried for a moment.
fn lock_file(file: &File, path: &Path, id: &str) -> Result<(), SessionError> {
    const TRIES: u32 = 5;
    const BETWEEN: Duration = Duration::from_millis(20);
    let mut again = 1..TRIES;
    loop {
        return match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) if again.next().is_some() => {
                std::thread::sleep(BETWEEN);
                continue;
            }
            Err(TryLockError::WouldBlock) => Err(SessionError::Locked { id: id.to_owned() }),
            // Some network file systems have no locks: continuing is better than keeping no session.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
            Err(TryLockError::Error(error)) => Err(SessionError::io(path, "locked", error)),
        };
    }
}
