//! Files and the directory that paths are relative to: careful opening, the names that may be shown, what is protected and
//! what is ignored; what a conversation changed, and how it is undone.
//!
//! Invariants:
//! - A path that a model writes is read by `Workspace::resolve`, its quoted form included; paths shown to it are
//!   written by `Workspace::display` and can be read back. Rules see the path, not its spelling.
//! - A path is made absolute and free of links by [`canonicalize`] alone, so that any two of them can be compared.
//!
//! To add:
//! - a file that decides what runs later: one row in `protected.rs`.

pub mod protected;
pub mod file_name;
pub mod private;
pub mod regular;
pub mod denied;
pub mod disk;
pub mod workspace;
pub mod ignored;
pub mod history;
pub mod trial;

use std::io;
use std::path::{Path, PathBuf};

/// The path without links and relative parts. On Windows it has the form that programs take as their directory,
/// `C:\dir` in place of `\\?\C:\dir`, where one exists.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    dunce::canonicalize(path)
}
