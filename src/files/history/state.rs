//! What is at a path, and how it changed: the vocabulary of the journal.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::file_name;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PathState {
    Absent,
    File {
        mode: u32,
        len: u64,
        /// The key of its content.
        sha256: String,
    },
    /// A file whose content is not kept: too large, or not readable.
    Unkept {
        mode: u32,
        len: u64,
        /// When it changed last, in nanoseconds since 1970.
        changed: i64,
    },
    Link {
        /// As it is written, quoted.
        target: String,
    },
    Dir {
        mode: u32,
    },
    /// A FIFO, a socket or a device.
    Special,
}

impl PathState {
    /// True if it can be made again.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Unkept { .. } | Self::Special)
    }

    /// True if it is a directory.
    pub fn is_dir(&self) -> bool {
        matches!(self, Self::Dir { .. })
    }
}

/// A path that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    /// Within the workspace, or absolute outside of it; quoted where it is no plain text.
    pub path: String,
    pub before: PathState,
    pub after: PathState,
}

impl PathChange {
    pub fn new(path: &Path, before: PathState, after: PathState) -> Self {
        Self { path: file_name::quote(path).into_owned(), before, after }
    }

    /// The path.
    pub fn to_path(&self) -> Cow<'_, Path> {
        file_name::unquote(&self.path)
    }

    /// The change that takes it back.
    pub fn reverse(self) -> Self {
        Self { path: self.path, before: self.after, after: self.before }
    }
}
