//! The messages between this program, the keeper of its namespaces, and the init of a command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path, of whatever bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bytes(OsString);

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().to_owned())
    }
}

impl AsRef<Path> for Bytes {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// Paths, for a message.
pub(super) fn bytes<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<Bytes> {
    paths.into_iter().map(|path| Bytes::from(path.as_path())).collect()
}

/// The stage of a run: what its commands share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Stage {
    /// The trees that the `write` profile may write: the workspace first.
    pub written: Vec<Bytes>,
    /// Seen by commands wherever it lies.
    pub home: Bytes,
    /// The private directory behind `/tmp`.
    pub temp: Bytes,
    /// Caches, and the directories of the layers above them.
    pub caches: Vec<(Bytes, Bytes)>,
    /// What commands can neither read nor write.
    pub masked: Vec<Bytes>,
    /// Files that commands can read, and write only where an order lifts it.
    pub protected_files: Vec<Bytes>,
    /// Directories likewise.
    pub protected_dirs: Vec<Bytes>,
    /// Whether commands share the machine's network.
    pub network: bool,
    /// Whether a proxy is to listen on their own.
    pub proxy: bool,
}

/// A command to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub program: String,
    pub arguments: Vec<String>,
    pub dir: Bytes,
    pub env: Vec<(String, String)>,
    /// The `write` profile, else `read`.
    pub writes: bool,
    /// Masked for this command beside what the stage masks.
    pub masked: Vec<Bytes>,
    /// Protected for this command beside what the stage protects: files and directories.
    pub protected: Vec<Bytes>,
    /// Not protected for this command.
    pub lifted: Vec<Bytes>,
}

/// The keeper's account of the set-up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Account {
    /// The user namespace is there; its ids are still to be mapped from outside.
    Unmapped,
    Ready,
    /// The step that this system refuses.
    Failed(String),
}

/// Asked of an init while its command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// SIGTERM to all processes of the command.
    Terminate,
    /// End what the command left behind, and tell whether there was any.
    Finish,
}

/// The news of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum News {
    /// It could not be started.
    Refused { not_found: bool, why: String },
    /// The command itself ended; what it started may still run.
    Ended(End),
    /// Everything ended.
    Finished { left_behind: bool },
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub exit: Status,
    /// It had more processes than it may have, and was ended for that.
    pub flooded: bool,
    /// The processor time of its processes, in microseconds.
    pub cpu: u64,
    /// The most memory that one of its processes held, in bytes, where that was more than our own.
    pub peak_memory: Option<u64>,
}

/// The status of a process that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    Code(i32),
    Signal(i32),
}
