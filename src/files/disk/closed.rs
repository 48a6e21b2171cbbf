//! Directories that a command closed to their owner: they are opened while something in them is looked at, moved or put
//! back, so that closing one hides nothing.

use std::io;
use std::path::Path;

use super::{Dir, DirEntry};

/// The permissions without which an owner can neither list a directory nor change what is in it.
#[cfg(target_os = "linux")]
const OPEN: u32 = 0o700;

/// A directory that is open to its owner until this is dropped; then it has the permissions that it had.
#[derive(Debug)]
pub struct OpenedUp {
    #[cfg(target_os = "linux")]
    name: std::path::PathBuf,
    #[cfg(target_os = "linux")]
    mode: u32,
    #[cfg(target_os = "linux")]
    _handle: std::os::fd::OwnedFd,
}

impl Dir {
    /// Opens a closed directory; `None` if it is open, or the system refuses.
    #[cfg(target_os = "linux")]
    pub fn open_up(&self) -> Option<OpenedUp> {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::PermissionsExt;

        let handle = self.handle().try_clone_to_owned().ok()?;
        // The permissions of a handle are changed by the name that the system has for it.
        let name = std::path::PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        let mode = std::fs::metadata(&name).ok()?.permissions().mode() & 0o7777;
        if mode & OPEN == OPEN {
            return None;
        }
        set_mode(&name, mode | OPEN)?;
        Some(OpenedUp { name, mode, _handle: handle })
    }

    /// The directory, opened to be listed although it may be closed.
    #[cfg(unix)]
    pub(super) fn open_closed(&self) -> io::Result<std::os::fd::OwnedFd> {
        let _opened = self.open_up();
        Ok(self.open_listing()?)
    }

    /// Elsewhere handles have no names.
    #[cfg(not(target_os = "linux"))]
    pub fn open_up(&self) -> Option<OpenedUp> {
        None
    }
}

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
    open_through(path).and_then(|(dir, _opened)| dir.entries()).unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn set_mode(name: &Path, mode: u32) -> Option<()> {
    use std::os::unix::fs::PermissionsExt;

    std::fs::set_permissions(name, std::fs::Permissions::from_mode(mode)).ok()
}

#[cfg(target_os = "linux")]
impl Drop for OpenedUp {
    fn drop(&mut self) {
        // It may be gone.
        let _ = set_mode(&self.name, self.mode);
    }
}
