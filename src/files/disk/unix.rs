//! Handles of directories on Unix: `openat2` if Linux has it, else component by component with `O_NOFOLLOW`.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::leftovers::{name_temporary, note_temporary};
use super::{DirEntry, DirEntryKind, DiskStamp, FileFacts, Opened, refuse_link, refuse_special, split_path};

/// A handle that names a directory and needs no right to list it.
#[cfg(target_os = "linux")]
const HANDLE: OFlags = OFlags::PATH.union(COMMON).union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const HANDLE: OFlags = OFlags::RDONLY.union(COMMON).union(OFlags::DIRECTORY);
/// A FIFO that appeared after the check does not block, a link is not followed.
const COMMON: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The bytes that may still be written to the disk of `path`.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let disk = fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// A directory, by its handle: it stays the same directory whatever happens to its name.
#[derive(Debug)]
pub struct Dir(OwnedFd);

impl Dir {
    /// Opens an absolute path without links.
    ///
    /// # Errors
    /// It is no directory, or a link is on the way.
    pub fn open(path: &Path) -> io::Result<Self> {
        split_path(path)?;
        #[cfg(target_os = "linux")]
        match at_once(path) {
            // Unknown to an older kernel, or to the filter of a container.
            Err(Errno::NOSYS | Errno::PERM) => {}
            // A link at the end is reported as not a directory.
            Err(Errno::NOTDIR) if path.ancestors().any(Path::is_symlink) => return Err(refuse_link()),
            opened => return opened.map(Self).map_err(refuse_error),
        }
        Self::open_in_parts(path)
    }

    fn open_in_parts(path: &Path) -> io::Result<Self> {
        match split_path(path)? {
            None => fs::openat(CWD, path, HANDLE, Mode::empty()).map(Self).map_err(refuse_error),
            Some((parent, name)) => Self::open_in_parts(parent)?.dir(name),
        }
    }

    /// Opens an absolute path without links, and creates missing directories.
    ///
    /// # Errors
    /// A part of it is no directory, or a link is on the way.
    pub fn create(path: &Path) -> io::Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let (parent, name) = split_path(path)?.ok_or(io::ErrorKind::NotFound)?;
        let parent = Self::create(parent)?;
        match fs::mkdirat(&parent.0, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => parent.dir(name),
            Err(error) => Err(refuse_error(error)),
        }
    }

    /// A directory in this one.
    ///
    /// # Errors
    /// It is none.
    pub fn dir(&self, name: &OsStr) -> io::Result<Self> {
        match fs::openat(&self.0, name, HANDLE, Mode::empty()) {
            Ok(handle) => Ok(Self(handle)),
            // Systems report either error for a link.
            Err(Errno::NOTDIR | Errno::LOOP)
                if self.facts(name).is_ok_and(|facts| facts.kind == DirEntryKind::Link) =>
            {
                Err(refuse_link())
            }
            Err(error) => Err(refuse_error(error)),
        }
    }

    /// A regular file in this directory, opened for reading.
    ///
    /// # Errors
    /// It is none.
    pub fn file(&self, name: &OsStr) -> io::Result<Opened> {
        let file = fs::openat(&self.0, name, OFlags::RDONLY.union(COMMON), Mode::empty()).map_err(refuse_error)?;
        let facts = facts_of(&fs::fstat(&file)?);
        if facts.kind == DirEntryKind::File {
            Ok(Opened { file: file.into(), facts })
        } else {
            Err(refuse_special(facts.kind))
        }
    }

    /// The facts of an entry.
    ///
    /// # Errors
    /// It is not there.
    pub fn facts(&self, name: &OsStr) -> io::Result<FileFacts> {
        Ok(facts_of(&fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// The facts of an entry, and its stamp.
    ///
    /// # Errors
    /// It is not there.
    pub fn examine(&self, name: &OsStr) -> io::Result<(FileFacts, DiskStamp)> {
        let stat = fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((facts_of(&stat), stamp_of(&stat)))
    }

    /// The target of a link, as it is written.
    ///
    /// # Errors
    /// It is none.
    pub fn link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// All entries, in no order.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn entries(&self) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::Dir::new(self.open_listing()?)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => self.facts(&name).map_or(DirEntryKind::Unknown, |facts| facts.kind),
                kind => kind_of(kind),
            };
            entries.push(DirEntry { name, kind });
        }
        Ok(entries)
    }

    /// Replaces or creates a file, so that at any moment it contains all of the old content or all of the new. An
    /// existing file keeps its mode and owner, unless `mode` says otherwise.
    ///
    /// # Errors
    /// The file cannot be written, and is then unchanged. Without a `mode`, a file without write permission is not replaced
    /// either, even if the directory would allow it.
    pub fn replace(&self, name: &OsStr, content: &[u8], mode: Option<u32>) -> io::Result<()> {
        let existing = match self.facts(name) {
            Ok(facts @ FileFacts { kind: DirEntryKind::File, .. }) => {
                if mode.is_none() {
                    fs::openat(&self.0, name, OFlags::WRONLY.union(COMMON), Mode::empty())
                        .map_err(refuse_error)?;
                }
                Some(facts)
            }
            Ok(facts) => return Err(refuse_special(facts.kind)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut fresh = Fresh::make(self, mode.is_some() || existing.is_some())?;
        fresh.file.write_all(content)?;
        if let Some(existing) = existing {
            let ours = facts_of(&fs::fstat(&fresh.file)?);
            if ours.owner != existing.owner {
                // Only root can give files away; for other users the file becomes theirs, as with any editor.
                let _ = fchown(&fresh.file, Some(existing.owner.0), Some(existing.owner.1));
            }
        }
        if let Some(mode) = mode.or(existing.map(|facts| facts.mode)) {
            fresh.file.set_permissions(Permissions::from_mode(mode))?;
        }
        fresh.file.sync_all()?;
        fresh.rename(name)?;
        self.sync();
        Ok(())
    }

    /// Overwrites a file in place, so that it stays the same file for whoever watches it or has mounted something on
    /// it. A text whose end may be empty lines is whole at any moment: what it loses is made empty lines first.
    ///
    /// # Errors
    /// It is no regular file, or cannot be written.
    pub fn overwrite(&self, name: &OsStr, text: &[u8]) -> io::Result<()> {
        let file = fs::openat(&self.0, name, OFlags::WRONLY.union(COMMON), Mode::empty()).map_err(refuse_error)?;
        let facts = facts_of(&fs::fstat(&file)?);
        if facts.kind != DirEntryKind::File {
            return Err(refuse_special(facts.kind));
        }
        let mut padded = text.to_vec();
        padded.resize(text.len().max(usize::try_from(facts.len).unwrap_or(0)), b'\n');
        let mut file = File::from(file);
        file.write_all(&padded)?;
        file.set_len(text.len() as u64)?;
        file.sync_all()
    }

    /// Moves an entry, whatever it is, to a name in another directory at which nothing is.
    ///
    /// # Errors
    /// Something is there, the directories are on different file systems, or the system refuses.
    pub fn rename(&self, name: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        if to.facts(new).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(fs::renameat(&self.0, name, &to.0, new)?)
    }

    /// Makes a file that is not there yet.
    ///
    /// # Errors
    /// Something is there, or the system refuses.
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(COMMON);
        let file = File::from(fs::openat(&self.0, name, flags, Mode::from_raw_mode(0o600)).map_err(refuse_error)?);
        // A program that sets the user's identity for whoever runs it is not kept as one.
        file.set_permissions(Permissions::from_mode(mode & 0o777))?;
        Ok(file)
    }

    /// Makes a directory that is not there yet, and opens it.
    ///
    /// # Errors
    /// Something is there, or the system refuses.
    pub fn create_dir(&self, name: &OsStr) -> io::Result<Self> {
        fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?;
        self.dir(name)
    }

    /// Sets the permissions of a file or a directory.
    ///
    /// # Errors
    /// It is neither, or the system refuses.
    pub fn set_mode(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        let file = match self.facts(name)?.kind {
            DirEntryKind::Dir => File::from(self.dir(name)?.open_closed()?),
            _ => self.file(name)?.file,
        };
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Removes a file, or a link itself.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Makes a link to a target, as it is written.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make_link(&self, name: &OsStr, target: &Path) -> io::Result<()> {
        Ok(fs::symlinkat(target, &self.0, name)?)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// The handle itself.
    #[cfg(target_os = "linux")]
    pub(in crate::files) fn handle(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Where the directory is now, if the system says it.
    fn find_path(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.0.as_raw_fd())).ok()
    }

    /// Syncs the directory, which makes a new name durable. Some file systems cannot do that, which is harmless.
    fn sync(&self) {
        let _ = self.open_listing().and_then(fs::fsync);
    }

    /// The same directory, opened to be listed.
    pub(super) fn open_listing(&self) -> rustix::io::Result<OwnedFd> {
        fs::openat(&self.0, ".", OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC), Mode::empty())
    }
}

/// A file under a temporary name; removed unless it was renamed.
struct Fresh<'a> {
    dir: &'a Dir,
    name: Option<OsString>,
    file: File,
}

impl<'a> Fresh<'a> {
    /// Creates the file. Nobody else may read it before it has its mode, if another than a new file has.
    fn make(dir: &'a Dir, has_mode: bool) -> io::Result<Self> {
        const TRIES: usize = 100;
        let mode = Mode::from_raw_mode(if has_mode { 0o600 } else { 0o666 });
        let flags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(COMMON);
        let mut outcome = Err(Errno::EXIST);
        for _ in 0..TRIES {
            let name = OsString::from(name_temporary());
            if let Some(path) = dir.find_path() {
                note_temporary(&path.join(&name));
            }
            outcome = fs::openat(&dir.0, &name, flags, mode);
            match outcome {
                Err(Errno::EXIST) => {}
                Ok(file) => return Ok(Self { dir, name: Some(name), file: file.into() }),
                Err(error) => return Err(refuse_error(error)),
            }
        }
        Err(outcome.map_or_else(refuse_error, |_| io::Error::from(io::ErrorKind::AlreadyExists)))
    }

    fn rename(&mut self, name: &OsStr) -> io::Result<()> {
        if let Some(temporary) = &self.name {
            fs::renameat(&self.dir.0, temporary, &self.dir.0, name)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = self.dir.remove(name);
        }
    }
}

#[cfg(target_os = "linux")]
fn at_once(path: &Path) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    // `openat2` refuses flags that have no meaning for a handle.
    let flags = HANDLE.difference(OFlags::NONBLOCK).difference(OFlags::NOCTTY);
    let resolve = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);
    fs::openat2(CWD, path, flags, Mode::empty(), resolve)
}

fn refuse_error(error: Errno) -> io::Error {
    if error == Errno::LOOP { refuse_link() } else { error.into() }
}

// The widths of these fields differ from system to system.
#[expect(clippy::allow_attributes, reason = "which casts are needless depends on the system")]
#[allow(clippy::unnecessary_cast, clippy::useless_conversion, clippy::cast_sign_loss)]
fn facts_of(stat: &Stat) -> FileFacts {
    FileFacts {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
        len: stat.st_size as u64,
        mode: u32::from(stat.st_mode) & 0o7777,
        owner: (stat.st_uid, stat.st_gid),
    }
}

#[expect(clippy::allow_attributes, reason = "which casts are needless depends on the system")]
#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, clippy::cast_possible_wrap)]
fn stamp_of(stat: &Stat) -> DiskStamp {
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    DiskStamp {
        inode: stat.st_ino as u64,
        len: stat.st_size as u64,
        names: stat.st_nlink as u64,
        modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        changed: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    }
}

fn kind_of(kind: FileType) -> DirEntryKind {
    match kind {
        FileType::RegularFile => DirEntryKind::File,
        FileType::Directory => DirEntryKind::Dir,
        FileType::Symlink => DirEntryKind::Link,
        FileType::Fifo => DirEntryKind::Fifo,
        FileType::Socket => DirEntryKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => DirEntryKind::Device,
        FileType::Unknown => DirEntryKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn part_by_part_is_as_strict_as_at_once() {
        let place = tempfile::tempdir().expect("a directory can be made");
        let root = crate::files::canonicalize(place.path()).expect("it exists");
        std::fs::create_dir_all(root.join("a/b")).expect("made");
        std::fs::write(root.join("a/file"), "").expect("written");
        symlink("a", root.join("link")).expect("linked");
        let inode = |dir: &Dir| fs::fstat(&dir.0).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        for path in ["", "a", "a/b", "link", "link/b", "a/file", "a/none", "a/../a"] {
            let path = root.join(path);
            match (Dir::open(&path), Dir::open_in_parts(&path)) {
                (Ok(one), Ok(other)) => assert_eq!(inode(&one), inode(&other), "{}", path.display()),
                (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string(), "{}", path.display()),
                (one, other) => panic!("{}: {one:?} and {other:?}", path.display()),
            }
        }
    }
}
