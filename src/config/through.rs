//! Reads the files of a directory: as they are, or, if a workspace brings the directory along, only through the
//! manifest.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::manifest::Manifest;
use crate::files::regular::{LONGEST_FILE, Links, read_bytes, read_start};

/// The way to the files of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileAccess(Option<Arc<Manifest>>);

/// A directory of prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptDir {
    pub dir: PathBuf,
    pub through: FileAccess,
}

/// A directory of slash commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandDir {
    pub dir: PathBuf,
    pub through: FileAccess,
    pub is_of_project: bool,
}

impl FileAccess {
    pub(super) fn manifest(manifest: &Arc<Manifest>) -> Self {
        Self(Some(Arc::clone(manifest)))
    }

    /// The files below a directory that the workspace brings along; `None` if it is not.
    pub fn list_files(&self, dir: &Path) -> Option<Vec<PathBuf>> {
        self.0.as_ref().map(|manifest| manifest.files_below(dir).collect())
    }

    /// True if a file may be read at all.
    pub fn has(&self, path: &Path) -> bool {
        self.0.as_ref().is_none_or(|manifest| manifest.has(path))
    }

    /// The content of a file of at most `most` bytes; `None` if there is none.
    ///
    /// # Errors
    /// A message about the problem, which is shown after the path.
    pub fn read(&self, path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
        let brought = self.0.as_ref();
        brought.map_or_else(|| read_bytes(path, Links::Follow, most), |manifest| manifest.read(path, most))
    }

    /// The first `most` bytes of a file; empty if there is none.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn start(&self, path: &Path, most: u64) -> Result<Vec<u8>, String> {
        let Some(manifest) = &self.0 else {
            return read_start(path, Links::Follow, most).map(|start| start.unwrap_or_default().0);
        };
        let mut bytes = manifest.read(path, u64::MAX)?.unwrap_or_default();
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(bytes)
    }

    /// The text of a file that is read while the program starts.
    ///
    /// # Errors
    /// Those of [`Self::read`], or it is not UTF-8.
    pub fn read_text(&self, path: &Path) -> Result<Option<String>, String> {
        let Some(bytes) = self.read(path, LONGEST_FILE)? else { return Ok(None) };
        String::from_utf8(bytes).map(Some).map_err(|_| "is not UTF-8".to_owned())
    }
}

impl PromptDir {
    /// A directory that is read as it is.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, through: FileAccess::default() }
    }
}
