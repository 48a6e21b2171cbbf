//! Directories by their paths, for systems without handles: links are checked before each access, which a swap at the
//! right moment evades. Never compiled or run so far.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Entry, Facts, Kind, Opened, linked, special};

/// Unknown on these systems.
#[must_use]
pub fn free(_: &Path) -> Option<u64> {
    None
}

/// A directory, by its path.
#[derive(Debug)]
pub struct Dir(PathBuf);

impl Dir {
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink());
        if path.ancestors().any(is_link) {
            return Err(linked());
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
            Kind::File => Ok(Opened { file: fs::File::open(self.0.join(name))?, facts }),
            kind => Err(special(kind)),
        }
    }

    pub fn facts(&self, name: &OsStr) -> io::Result<Facts> {
        let data = fs::symlink_metadata(self.0.join(name))?;
        Ok(Facts { kind: kind_of(data.file_type()), len: data.len(), mode: 0, owner: (0, 0) })
    }

    pub fn link(&self, name: &OsStr) -> io::Result<PathBuf> {
        fs::read_link(self.0.join(name))
    }

    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            Ok(Entry { kind: kind_of(entry.file_type()?), name: entry.file_name() })
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

fn kind_of(kind: fs::FileType) -> Kind {
    match () {
        () if kind.is_symlink() => Kind::Link,
        () if kind.is_dir() => Kind::Dir,
        () if kind.is_file() => Kind::File,
        () => Kind::Unknown,
    }
}
