//! What is at a path, and how it changed: the vocabulary of the journal.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::disk::DiskStamp;
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
        #[serde(default, skip_serializing_if = "SharedFile::is_alone")]
        shared: SharedFile,
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

/// Which file a path names, if that has several names. All are equal: another name for a file changes nothing in it.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct SharedFile {
    inode: u64,
    names: u64,
}

impl SharedFile {
    /// Nothing of a file that has one name.
    pub fn new(stamp: &DiskStamp) -> Self {
        if stamp.names > 1 { Self { inode: stamp.inode, names: stamp.names } } else { Self::default() }
    }

    fn is_alone(&self) -> bool {
        self.names == 0
    }

    /// True if this is the file, and it has as many names as it had: one that came since belongs to nobody's change.
    pub fn has_stamp(&self, stamp: &DiskStamp) -> bool {
        stamp.names > 1 && (self.inode, self.names) == (stamp.inode, stamp.names)
    }
}

impl PartialEq for SharedFile {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SharedFile {}

impl PathState {
    /// True if it is a file, whether its content is kept or not.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Unkept { .. })
    }

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
