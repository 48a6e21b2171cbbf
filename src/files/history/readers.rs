//! Reads files on several threads, beside the walk that finds them: the first look at a workspace reads all of it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope, available_parallelism};

use crate::files::disk::{Dir, DiskStamp, is_exhaustion};

use super::content::{ContentStore, MOST_UNPACKED};
use super::state::{PathState, SharedFile};

/// The largest file whose content is kept, in bytes.
pub(super) const LARGEST_FILE: u64 = MOST_UNPACKED as u64;
/// The most threads that read.
const MOST_READERS: usize = 8;
/// The most files that a thread is given at once.
const MOST_AT_ONCE: usize = 64;
/// The most that waits to be read, in such parts: each holds a handle of its directory.
const MOST_WAITING: usize = 32;

/// A file that a look came by, and is to be read.
pub(super) struct UnreadFile {
    pub name: OsString,
    /// Its path in the workspace.
    pub path: PathBuf,
    pub mode: u32,
    pub stamp: DiskStamp,
    /// What was there at the last look.
    pub before: PathState,
}

/// A file that was read, or why the store could not keep it.
pub(super) type FileReading = io::Result<(UnreadFile, PathState)>;

type FilesOfDir = (Arc<Dir>, Vec<UnreadFile>);

/// Threads that read, and keep what they read.
pub(super) struct FileReaders {
    queue: SyncSender<FilesOfDir>,
    read: Receiver<Vec<FileReading>>,
    /// The number of parts that were given and not taken back.
    given: usize,
}

impl FileReaders {
    /// Starts the threads; they end when this is dropped. `None` if the system gives none.
    pub fn start<'scope>(scope: &'scope Scope<'scope, '_>, store: &'scope ContentStore) -> Option<Self> {
        let (queue, given) = mpsc::sync_channel(MOST_WAITING);
        let (done, read) = mpsc::channel();
        let given = Arc::new(Mutex::new(given));
        let threads = available_parallelism().map_or(1, usize::from).min(MOST_READERS);
        let started = (0..threads).filter(|_| {
            let (given, done) = (Arc::clone(&given), done.clone());
            let thread = Builder::new().spawn_scoped(scope, move || read_given(&given, &done, store));
            thread.is_ok()
        });
        (started.count() > 0).then_some(Self { queue, read, given: 0 })
    }

    /// Gives files of a directory to the threads. Returns what was read meanwhile.
    pub fn give(&mut self, dir: &Arc<Dir>, mut files: Vec<UnreadFile>) -> Vec<FileReading> {
        while !files.is_empty() {
            let rest = files.split_off(files.len().min(MOST_AT_ONCE));
            let part = std::mem::replace(&mut files, rest);
            // The threads wait for as long as this is there.
            if self.queue.send((Arc::clone(dir), part)).is_ok() {
                self.given += 1;
            }
        }
        let read: Vec<Vec<FileReading>> = self.read.try_iter().collect();
        self.given -= read.len();
        read.into_iter().flatten().collect()
    }

    /// Waits until everything is read. Returns what was not returned yet.
    pub fn wait(&mut self) -> Vec<FileReading> {
        let given = std::mem::take(&mut self.given);
        self.read.iter().take(given).flatten().collect()
    }
}

fn read_given(given: &Mutex<Receiver<FilesOfDir>>, done: &Sender<Vec<FileReading>>, store: &ContentStore) {
    loop {
        // Held while it waits: one thread waits for files, the others for their turn.
        let next = given.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((dir, files)) = next else { return };
        let read = |file: UnreadFile| read_file(&dir, &file, store).map(|state| (file, state));
        if done.send(files.into_iter().map(read).collect()).is_err() {
            return;
        }
    }
}

/// What a file is. Its content is kept, unless it is too large or cannot be read.
pub(super) fn read_file(dir: &Dir, found: &UnreadFile, store: &ContentStore) -> io::Result<PathState> {
    let UnreadFile { name, mode, stamp, .. } = found;
    let is_small = |bytes: &Vec<u8>| bytes.len() as u64 <= LARGEST_FILE;
    let content = match stamp.len {
        0..=LARGEST_FILE => match dir.file(name).and_then(|mut file| file.read(LARGEST_FILE + 1)) {
            Err(error) if is_exhaustion(&error) => return Err(error),
            read => read.ok().filter(is_small),
        },
        _ => None,
    };
    Ok(match content {
        Some(content) => PathState::File {
            mode: *mode,
            len: content.len() as u64,
            sha256: store.put(&content)?,
            shared: SharedFile::new(stamp),
        },
        None => PathState::Unkept { mode: *mode, len: stamp.len, changed: stamp.changed },
    })
}
