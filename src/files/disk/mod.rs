//! The agent's own access to files: exactly the path that was resolved and judged is opened. No symbolic link is
//! followed on the way, so nothing is opened if a part of it is replaced by a link after the judgement.
//!
//! Work in a directory goes through its handle ([`Dir`]). Only regular files are opened: reading a FIFO, a device or
//! a socket may block forever or have effects.

mod closed;
mod copy;
mod removal;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as system;
#[cfg(unix)]
mod leftovers;
#[cfg(not(unix))]
mod plain;
#[cfg(not(unix))]
use plain as system;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

pub use closed::{OpenedUp, list_closed, open_through};
use copy::WholeCopy;
pub use copy::{CopyWatch, copy_tree, measure_tree};
#[cfg(unix)]
pub use leftovers::begin_journal;
use removal::remove_entry;
pub use removal::remove_tree;
pub use system::{Dir, free_bytes};

/// Removes nothing: this system says of no temporary file whose it is.
#[cfg(not(unix))]
pub fn begin_journal(_: &Path) {}

/// The kind of a directory entry. Links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirEntryKind {
    File,
    Dir,
    Link,
    #[cfg_attr(not(unix), allow(dead_code, reason = "this system does not tell"))]
    Fifo,
    #[cfg_attr(not(unix), allow(dead_code, reason = "this system does not tell"))]
    Socket,
    #[cfg_attr(not(unix), allow(dead_code, reason = "this system does not tell"))]
    Device,
    Unknown,
}

/// The facts of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    pub kind: DirEntryKind,
    pub len: u64,
    /// The permissions; 0 if the system has none.
    pub mode: u32,
    /// User and group.
    owner: (u32, u32),
}

/// The marks of an entry by which a later look finds out whether it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskStamp {
    pub inode: u64,
    pub len: u64,
    /// The number of names that the file has.
    pub names: u64,
    /// When its content changed last, in nanoseconds since 1970. A program can set it.
    pub modified: i64,
    /// When anything about it changed last. No program can set it.
    pub changed: i64,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    pub name: OsString,
    pub kind: DirEntryKind,
}

/// A regular file, opened for reading.
#[derive(Debug)]
pub struct Opened {
    pub file: File,
    /// The facts of the opened file.
    pub facts: FileFacts,
}

impl DirEntryKind {
    /// The name of the kind for a person: `a FIFO`.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Dir => "a directory",
            Self::Link => "a symbolic link",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Unknown => "something special",
        }
    }
}

impl Opened {
    /// Reads at most `most` bytes of it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.facts.len.min(most)).unwrap_or(0));
        self.file.by_ref().take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// True if the system has no more handles or memory: the error says nothing of the file.
pub fn is_exhaustion(error: &io::Error) -> bool {
    // ENOMEM, ENFILE and EMFILE, which have these numbers on every Unix.
    cfg!(unix) && matches!(error.raw_os_error(), Some(12 | 23 | 24))
}

/// The facts of the file at `path`.
///
/// # Errors
/// Nothing is there, or a link is on the way.
pub fn read_facts(path: &Path) -> io::Result<FileFacts> {
    match split_path(path)? {
        None => Dir::open(path)?.facts(OsStr::new(".")),
        Some((parent, name)) => Dir::open(parent)?.facts(name),
    }
}

/// Opens a regular file for reading.
///
/// # Errors
/// Nothing is there, a link is on the way, or it is no regular file.
pub fn open_file(path: &Path) -> io::Result<Opened> {
    let (parent, name) = split_path(path)?.ok_or(io::ErrorKind::IsADirectory)?;
    let dir = Dir::open(parent)?;
    // A device could do something when it is opened.
    match dir.facts(name)?.kind {
        DirEntryKind::File => dir.file(name),
        kind => Err(refuse_special(kind)),
    }
}

/// The content of a regular file that has at most `most` bytes.
///
/// # Errors
/// It is larger, or as [`open_file`].
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut opened = open_file(path)?;
    if opened.facts.len > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    opened.read(most)
}

/// Moves a file, a link itself, or a directory with everything in it to a path at which nothing is. Missing directories
/// above that are made. On another file system it is copied first; what is neither file, link nor directory is left out.
///
/// # Errors
/// Nothing is there, a link is on the way, or a part of it cannot be moved: then it is still where it was.
pub fn move_tree(from: &Path, to: &Path) -> io::Result<()> {
    let (from_parent, name) = split_path(from)?.ok_or(io::ErrorKind::IsADirectory)?;
    let (to_parent, new) = split_path(to)?.ok_or(io::ErrorKind::IsADirectory)?;
    let ((from, _opened), to) = (open_through(from_parent)?, Dir::create(to_parent)?);
    let renamed =
        from.rename(name, &to, new).or_else(|error| match from.dir(name).ok().and_then(|dir| dir.open_up()) {
            // A directory that is moved is changed itself.
            Some(_opened) => from.rename(name, &to, new),
            None => Err(error),
        });
    match renamed {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy_tree(&from, name, &to, new, &mut WholeCopy)?;
            remove_entry(&from, name, MOST_LEVELS)
        }
        done => done,
    }
}

/// Each level holds a handle and a part of the stack.
const MOST_LEVELS: usize = 500;

/// The directory and the name of an absolute path; `None` for the root.
///
/// # Errors
/// The path is not one that was resolved: relative, or with `..`.
pub fn split_path(path: &Path) -> io::Result<Option<(&Path, &OsStr)>> {
    let is_plain = |part: Component<'_>| !matches!(part, Component::ParentDir | Component::CurDir);
    if !path.is_absolute() || !path.components().all(is_plain) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    Ok(path.parent().zip(path.file_name()))
}

/// The error for something that is not a regular file.
fn refuse_special(kind: DirEntryKind) -> io::Error {
    match kind {
        DirEntryKind::Dir => io::Error::from(io::ErrorKind::IsADirectory),
        DirEntryKind::Link => refuse_link(),
        kind => io::Error::other(format!("it is {}, which is not opened", kind.name())),
    }
}

/// The error for a link on the way.
fn refuse_link() -> io::Error {
    io::Error::other("the path that was looked up contains a symbolic link, which is not followed")
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_followed_and_nothing_special_is_opened() {
        let place = tempfile::tempdir().expect("a directory can be made");
        let root = crate::files::canonicalize(place.path()).expect("it exists");
        fs::create_dir_all(root.join("a/b")).expect("made");
        fs::write(root.join("a/b/file"), "text").expect("written");
        symlink(root.join("a"), root.join("link")).expect("linked");
        symlink("file", root.join("a/b/last")).expect("linked");
        let made = std::process::Command::new("mkfifo").arg(root.join("pipe")).status();
        assert!(made.expect("mkfifo exists").success());
        let read = |path: &str| open_file(&root.join(path)).and_then(|mut opened| opened.read(100));
        assert_eq!(read("a/b/file").expect("it is a file"), b"text");
        for (path, why) in [
            ("link/b/file", "symbolic link"),
            ("a/b/last", "symbolic link"),
            ("pipe", "a FIFO"),
            ("a/b", "directory"),
            ("a/none", "No such file"),
            ("a/../a/b/file", "invalid"),
        ] {
            let error = read(path).expect_err(path).to_string();
            assert!(error.contains(why), "{path}: {error}");
        }
        assert_eq!(read_facts(&root.join("a/b/last")).expect("it is there").kind, DirEntryKind::Link);
        assert_eq!(read_facts(&root.join("link/b")).map(|facts| facts.kind).ok(), None);
        assert_eq!(read_facts(Path::new("/")).expect("it is there").kind, DirEntryKind::Dir);
        assert_eq!(
            open_file(Path::new("/dev/zero")).expect_err("a device").to_string(),
            refuse_special(DirEntryKind::Device).to_string()
        );
    }

    #[test]
    fn directories_are_made_and_files_replaced_without_links() {
        let place = tempfile::tempdir().expect("a directory can be made");
        let root = crate::files::canonicalize(place.path()).expect("it exists");
        let outside = tempfile::tempdir().expect("a directory can be made");
        symlink(outside.path(), root.join("out")).expect("linked");
        symlink(outside.path().join("x"), root.join("x")).expect("linked");
        let fresh = Dir::create(&root.join("a/b/c")).expect("made");
        fresh.replace(OsStr::new("file"), b"one", None).expect("written");
        fresh.replace(OsStr::new("file"), b"two", None).expect("replaced");
        assert_eq!(fs::read(root.join("a/b/c/file")).expect("it is there"), b"two");
        assert!(Dir::create(&root.join("out/d")).is_err());
        let dir = Dir::open(&root).expect("it is there");
        assert!(dir.replace(OsStr::new("x"), b"", None).is_err());
        assert_eq!(fs::read_dir(outside.path()).expect("listed").count(), 0);
        let mut names: Vec<_> = dir.entries().expect("listed").into_iter().map(|entry| entry.name).collect();
        names.sort();
        assert_eq!(names, ["a", "out", "x"]);
    }

    #[test]
    fn what_is_moved_or_overwritten_is_whole() {
        let place = tempfile::tempdir().expect("a directory can be made");
        let root = crate::files::canonicalize(place.path()).expect("it exists");
        fs::create_dir_all(root.join("a/b")).expect("made");
        fs::write(root.join("a/b/file"), "long text\n").expect("written");
        symlink("file", root.join("a/b/link")).expect("linked");
        let dir = Dir::open(&root.join("a/b")).expect("opened");
        for text in ["short\n", "a much longer text\n", ""] {
            dir.overwrite(OsStr::new("file"), text.as_bytes()).expect("written");
            assert_eq!(fs::read_to_string(root.join("a/b/file")).expect("read"), text);
        }
        assert!(dir.overwrite(OsStr::new("link"), b"x").is_err(), "a link is not followed");
        dir.overwrite(OsStr::new("file"), b"text").expect("written");
        move_tree(&root.join("a"), &root.join("kept/here")).expect("moved");
        assert!(!root.join("a").exists());
        assert!(move_tree(&root.join("kept/here/b"), &root.join("kept/here")).is_err(), "something is there");
        let (from, to) = (Dir::open(&root.join("kept")).expect("opened"), Dir::open(&root).expect("opened"));
        copy_tree(&from, OsStr::new("here"), &to, OsStr::new("copy"), &mut WholeCopy).expect("copied");
        assert_eq!(fs::read(root.join("copy/b/file")).expect("read"), b"text");
        assert_eq!(fs::read_link(root.join("copy/b/link")).expect("a link"), Path::new("file"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_closed_directory_is_open_while_it_is_used_and_closed_again() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().expect("a directory");
        let root = crate::files::canonicalize(root.path()).expect("it is there");
        let inner = root.join("closed/inner");
        fs::create_dir_all(&inner).expect("made");
        let mode_of = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o111)).expect("ours");
        assert_eq!(list_closed(&root.join("closed")).len(), 1);
        {
            let (_dir, _opened) = open_through(&root.join("closed")).expect("it opens");
            assert_eq!(mode_of(&root.join("closed")), 0o711);
        }
        assert_eq!(mode_of(&root.join("closed")), 0o111);
        move_tree(&inner, &root.join("moved")).expect("moved out of it");
        assert_eq!((mode_of(&root.join("closed")), root.join("moved").is_dir()), (0o111, true));
        fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o711)).expect("ours");
    }
}
