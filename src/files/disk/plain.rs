//! Directories by their paths, for systems without handles: links are checked before each access, which a swap at the
//! right moment evades. Never compiled or run so far.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{DirEntry, DirEntryKind, DiskStamp, FileFacts, Opened, refuse_link, refuse_special};

/// Unknown on these systems.
pub fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// A directory, by its path.
#[derive(Debug)]
pub struct Dir(PathBuf);

impl Dir {
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink());
        if path.ancestors().any(is_link) {
            return Err(refuse_link());
        }
        if fs::metadata(path)?.is_dir() { Ok(Self(path.into())) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    pub fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Self::open(path)
    }

    pub fn dir(&self, name: &OsStr) -> io::Result<Self> {
        Self::open(&self.0.join(name))
    }

    pub fn file(&self, name: &OsStr) -> io::Result<Opened> {
        let facts = self.facts(name)?;
        match facts.kind {
            DirEntryKind::File => Ok(Opened { file: fs::File::open(self.0.join(name))?, facts }),
            kind => Err(refuse_special(kind)),
        }
    }

    pub fn facts(&self, name: &OsStr) -> io::Result<FileFacts> {
        let data = fs::symlink_metadata(self.0.join(name))?;
        Ok(FileFacts { kind: read_kind(data.file_type()), len: data.len(), mode: 0, owner: (0, 0) })
    }

    pub fn examine(&self, name: &OsStr) -> io::Result<(FileFacts, DiskStamp)> {
        let data = fs::symlink_metadata(self.0.join(name))?;
        let since = data.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let modified = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        let stamp = DiskStamp { inode: 0, len: data.len(), names: 1, modified, changed: modified };
        Ok((self.facts(name)?, stamp))
    }

    pub fn link(&self, name: &OsStr) -> io::Result<PathBuf> {
        fs::read_link(self.0.join(name))
    }

    pub fn entries(&self) -> io::Result<Vec<DirEntry>> {
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            Ok(DirEntry { kind: read_kind(entry.file_type()?), name: entry.file_name() })
        };
        fs::read_dir(&self.0)?.map(entry).collect()
    }

    pub fn replace(&self, name: &OsStr, content: &[u8], _mode: Option<u32>) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".agent-").suffix(".tmp").tempfile_in(&self.0)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(self.0.join(name)).map_err(|error| error.error)?;
        Ok(())
    }

    pub fn overwrite(&self, name: &OsStr, text: &[u8]) -> io::Result<()> {
        fs::write(self.0.join(name), text)
    }

    pub fn rename(&self, name: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        fs::rename(self.0.join(name), to.0.join(new))
    }

    pub fn create_file(&self, name: &OsStr, _mode: u32) -> io::Result<fs::File> {
        fs::File::create_new(self.0.join(name))
    }

    pub fn create_dir(&self, name: &OsStr) -> io::Result<Self> {
        fs::create_dir(self.0.join(name))?;
        self.dir(name)
    }

    pub fn set_mode(&self, _name: &OsStr, _mode: u32) -> io::Result<()> {
        Ok(())
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    pub fn make_link(&self, _name: &OsStr, _target: &Path) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_dir(self.0.join(name))
    }
}

fn read_kind(kind: fs::FileType) -> DirEntryKind {
    if kind.is_symlink() {
        DirEntryKind::Link
    } else if kind.is_dir() {
        DirEntryKind::Dir
    } else if kind.is_file() {
        DirEntryKind::File
    } else {
        DirEntryKind::Unknown
    }
}
