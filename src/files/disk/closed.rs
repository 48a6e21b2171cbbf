//! Directories that a command closed to their owner: they are opened while something in them is looked at, moved or put
//! back, so that closing one hides nothing.

use std::io;
use std::path::Path;

use super::{Dir, DirEntry};
pub use system::OpenedUp;

/// Opens an absolute path without links, and what is closed on the way, until the second result is dropped.
///
/// # Errors
/// It is no directory, a link is on the way, or the system refuses.
pub fn open_through(path: &Path) -> io::Result<(Dir, Vec<OpenedUp>)> {
    let mut opened = Vec::new();
    let dir = match Dir::open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mut way: Vec<&Path> = path.ancestors().skip(1).collect();
            way.reverse();
            opened = way.into_iter().filter_map(|dir| Dir::open(dir).ok()?.open_up()).collect();
            Dir::open(path)?
        }
        dir => dir?,
    };
    opened.extend(dir.open_up());
    Ok((dir, opened))
}

/// The entries of a directory that may be closed, in no order; none if it cannot be listed.
pub fn list_closed(path: &Path) -> Vec<DirEntry> {
    // Most are open, and some are closed to writing alone.
    let listed = Dir::open(path).and_then(|dir| dir.entries());
    listed.or_else(|_| open_through(path).and_then(|(dir, _opened)| dir.entries())).unwrap_or_default()
}

#[cfg(unix)]
impl Dir {
    /// The directory, opened to be listed although it may be closed.
    pub(super) fn open_closed(&self) -> io::Result<std::os::fd::OwnedFd> {
        let _opened = self.open_up();
        Ok(self.open_listing()?)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::{self, Permissions};
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::fs::PermissionsExt;

    use super::Dir;

    /// The permissions without which an owner can neither list a directory nor change what is in it.
    const OPEN: u32 = 0o700;

    /// A directory that is open to its owner until this is dropped; then it has the permissions that it had.
    #[derive(Debug)]
    pub struct OpenedUp {
        handle: OwnedFd,
        mode: u32,
    }

    impl Dir {
        /// Opens a closed directory; `None` if it is open, or the system refuses.
        pub fn open_up(&self) -> Option<OpenedUp> {
            let handle = self.handle().try_clone_to_owned().ok()?;
            let mode = fs::metadata(name_of(&handle)).ok()?.permissions().mode() & 0o7777;
            (mode & OPEN != OPEN && set_mode(&handle, mode | OPEN).is_ok()).then(|| OpenedUp { handle, mode })
        }
    }

    impl Drop for OpenedUp {
        fn drop(&mut self) {
            // It may be gone.
            let _ = set_mode(&self.handle, self.mode);
        }
    }

    fn set_mode(handle: &OwnedFd, mode: u32) -> io::Result<()> {
        fs::set_permissions(name_of(handle), Permissions::from_mode(mode))
    }

    /// The name that the system has for a handle: permissions are changed by it.
    fn name_of(handle: &OwnedFd) -> String {
        format!("/proc/self/fd/{}", handle.as_raw_fd())
    }
}

/// Elsewhere handles have no names.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::Dir;

    #[derive(Debug)]
    pub struct OpenedUp;

    impl Dir {
        pub fn open_up(&self) -> Option<OpenedUp> {
            None
        }
    }
}
