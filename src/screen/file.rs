//! The standard streams of this process, as files.

use std::io::{self, Write};

/// The destination of a stream.
pub(super) type StreamTarget = Box<dyn Write + Send>;

/// An open stream.
pub(super) struct StreamFile {
    pub target: StreamTarget,
    /// The device and inode of its file, if known.
    pub identity: Option<(u64, u64)>,
    /// True if no reader can delay a write: it is a regular file or `/dev/null`.
    pub is_free: bool,
}

impl StreamFile {
    pub fn stdout() -> Self {
        Self::duplicate(&io::stdout()).unwrap_or_else(|| Self::without_file(io::stdout()))
    }

    pub fn stderr() -> Self {
        Self::duplicate(&io::stderr()).unwrap_or_else(|| Self::without_file(io::stderr()))
    }

    fn without_file(stream: impl Write + Send + 'static) -> Self {
        Self { target: Box::new(stream), identity: None, is_free: false }
    }

    /// Duplicates the handle: a blocked thread would hold the lock of `io::stdout()` forever.
    #[cfg(unix)]
    fn duplicate(stream: &impl std::os::fd::AsFd) -> Option<Self> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let file = std::fs::File::from(stream.as_fd().try_clone_to_owned().ok()?);
        let metadata = file.metadata().ok()?;
        let is_null = || std::fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == metadata.rdev());
        let is_free = metadata.is_file() || (metadata.file_type().is_char_device() && is_null());
        Some(Self { target: Box::new(file), identity: Some((metadata.dev(), metadata.ino())), is_free })
    }

    /// Returns `None`: the standard library must encode text for the console.
    #[cfg(not(unix))]
    fn duplicate<S>(_: &S) -> Option<Self> {
        None
    }
}
