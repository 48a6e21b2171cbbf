//! Files and directories for this user alone: logs, histories, what was trusted.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a directory, and those above it, that only this user may enter. One that exists stays as it is.
///
/// # Errors
/// It cannot be created.
pub fn make_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// How to open a file that, if it is created, only this user may read.
pub fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "it has no modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
