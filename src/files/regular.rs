//! Reads third-party files: only regular files of a limited size, as a pipe would block and an endless device never
//! ends. Also replaces a file as a whole, and opens one for appending.
//!
//! A file is checked before it is opened, opened without blocking, and checked again by its handle, so that a swap in
//! between gains nothing.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::private::private_file;

/// The most bytes of a file that is read while the program starts.
pub const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// The treatment of a symbolic link as the last part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Follow,
    Refuse,
}

/// The text of a regular file of at most 4 MiB; `None` if it does not exist.
///
/// # Errors
/// A message about the problem, which is shown after the path.
pub fn read_regular(path: &Path) -> Result<Option<String>, String> {
    let Some(bytes) = read_bytes(path, Links::Follow, LONGEST_FILE)? else { return Ok(None) };
    String::from_utf8(bytes).map(Some).map_err(|_| "is not UTF-8".to_owned())
}

/// The bytes of a regular file that has at most `most`; `None` if it does not exist.
///
/// # Errors
/// A message about the problem, which is shown after the path.
pub fn read_bytes(path: &Path, links: Links, most: u64) -> Result<Option<Vec<u8>>, String> {
    let Some((file, length)) = open_within(path, links, most)? else { return Ok(None) };
    let bytes = read_beginning(file, most.saturating_add(1), length)?;
    if bytes.len() as u64 > most { Err(too_long(most)) } else { Ok(Some(bytes)) }
}

/// Writes a file, creating directories if necessary. Another process reads either the old file or the new one, never a
/// part.
///
/// # Errors
/// It cannot be written; the old file is still there.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let mut file = NamedTempFile::new_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Opens a file that a person names for appending; if it is created, only this user may read it. It may be a pipe with a
/// reader, such as `/dev/stderr`; one without a reader is not waited for.
///
/// # Errors
/// It cannot be opened, or nobody reads it.
pub fn append_to(path: &Path) -> io::Result<File> {
    let mut options = private_file();
    options.append(true).create(true);
    without_waiting(&mut options, Links::Follow);
    wait_from_now(options.open(path))
}

/// Checks that [`read_bytes`] would read it, as far as that is possible without reading. A missing file is not an
/// error.
///
/// # Errors
/// A message about the problem, which is shown after the path.
pub fn check_file(path: &Path, links: Links, most: u64) -> Result<(), String> {
    open_within(path, links, most).map(drop)
}

fn open_within(path: &Path, links: Links, most: u64) -> Result<Option<(File, u64)>, String> {
    let opened = open_file(path, links)?;
    if opened.as_ref().is_some_and(|(_, length)| *length > most) { Err(too_long(most)) } else { Ok(opened) }
}

fn too_long(most: u64) -> String {
    match most {
        MIB.. => format!("is longer than {} MiB", most as f64 / MIB as f64),
        _ => format!("is longer than {most} bytes"),
    }
}

/// The first `most` bytes of a regular file and the size of the whole; `None` if it does not exist.
///
/// # Errors
/// A message about the problem, which is shown after the path.
pub fn read_start(path: &Path, links: Links, most: u64) -> Result<Option<(Vec<u8>, u64)>, String> {
    let Some((file, length)) = open_file(path, links)? else { return Ok(None) };
    read_beginning(file, most, length).map(|bytes| Some((bytes, length)))
}

/// A regular file, open for reading, and its size; `None` if it does not exist.
///
/// # Errors
/// A message about the problem, which is shown after the path.
pub fn open_file(path: &Path, links: Links) -> Result<Option<(File, u64)>, String> {
    let met = match links {
        Links::Follow => path.metadata(),
        Links::Refuse => path.symlink_metadata(),
    };
    match met {
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(describe_unreadable(&error)),
        Ok(data) => judge_metadata(&data)?,
    };
    let mut options = OpenOptions::new();
    options.read(true);
    without_waiting(&mut options, links);
    let file = match options.open(path) {
        Err(error) if is_missing(&error) => return Ok(None),
        file => file.map_err(|error| describe_unreadable(&error))?,
    };
    let length = judge_metadata(&file.metadata().map_err(|error| describe_unreadable(&error))?)?;
    Ok(Some((file, length)))
}

const MIB: u64 = 1024 * 1024;

/// Reads the beginning of a file. `length` is its reported size: it is read at once if it is not longer.
fn read_beginning(file: File, most: u64, length: u64) -> Result<Vec<u8>, String> {
    /// The most memory that is allocated for a reported size.
    const LARGEST_GUESS: u64 = 1024 * 1024;
    let room = length.min(most).min(LARGEST_GUESS) + 1;
    let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
    file.take(most).read_to_end(&mut bytes).map_err(|error| describe_unreadable(&error))?;
    Ok(bytes)
}

/// The size, if it is a regular file.
fn judge_metadata(data: &Metadata) -> Result<u64, String> {
    match data {
        data if data.is_dir() => Err("is a directory, not a file".to_owned()),
        data if data.is_symlink() => Err("is a link".to_owned()),
        data if !data.is_file() => Err("is not a regular file".to_owned()),
        data => Ok(data.len()),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn describe_unreadable(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}

#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions, links: Links) {
    use nix::fcntl::OFlag;
    let mut flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    if links == Links::Refuse {
        flags |= OFlag::O_NOFOLLOW;
    }
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits());
}

#[cfg(not(unix))]
fn without_waiting(_: &mut OpenOptions, _: Links) {}

/// Lets writes wait for their reader, once a file was opened for appending without waiting.
#[cfg(unix)]
fn wait_from_now(opened: io::Result<File>) -> io::Result<File> {
    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::ENXIO as i32 => {
            io::Error::other("it is no regular file, and nobody reads it: start its reader first, or name a file")
        }
        _ => error,
    })?;
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    Ok(file)
}

#[cfg(not(unix))]
fn wait_from_now(opened: io::Result<File>) -> io::Result<File> {
    opened
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Links, read_bytes, read_regular, read_start};

    #[test]
    fn nothing_but_a_regular_file_is_read_and_no_more_of_it_than_was_asked_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path();
        let path = |name: &str| dir.join(name);
        fs::write(path("file"), "four").expect("written");
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for (link, target) in [("to-file", "file"), ("to-zero", "/dev/zero"), ("to-pipe", "pipe"), ("to-dir", "/")]
        {
            std::os::unix::fs::symlink(target, path(link)).expect("a link");
        }
        fs::File::create(path("huge")).and_then(|file| file.set_len(10 << 30)).expect("a sparse file");

        let said = |name: &str, links| match read_bytes(&path(name), links, 4) {
            Ok(Some(bytes)) => String::from_utf8(bytes).expect("text"),
            Ok(None) => "nothing".to_owned(),
            Err(why) => why,
        };
        for (name, followed, refused) in [
            ("file", "four", "four"),
            ("to-file", "four", "is a link"),
            ("absent", "nothing", "nothing"),
            ("file/below", "nothing", "nothing"),
            ("pipe", "is not a regular file", "is not a regular file"),
            ("to-pipe", "is not a regular file", "is a link"),
            ("to-zero", "is not a regular file", "is a link"),
            ("to-dir", "is a directory, not a file", "is a link"),
            ("huge", "is longer than 4 bytes", "is longer than 4 bytes"),
        ] {
            assert_eq!(said(name, Links::Follow), followed, "{name}");
            assert_eq!(said(name, Links::Refuse), refused, "{name}");
        }
        let huge = read_start(&path("huge"), Links::Refuse, 3).expect("regular").expect("there");
        assert_eq!((huge.0.len(), huge.1), (3, 10 << 30));
        assert_eq!(read_regular(&path("huge")), Err("is longer than 4 MiB".to_owned()));
        assert_eq!(read_regular(Path::new("/dev/zero")), Err("is not a regular file".to_owned()));
    }
}
