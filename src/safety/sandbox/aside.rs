//! What commands made that they must not: it is moved to a place of its own, kept there, and put back if a person wants it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::disk::{self, Dir};
use crate::files::file_name;

/// The part of a file that is shown to a person, in bytes.
const MOST_PREVIEWED: u64 = 1 << 20;

/// What a command made that it must not, and where it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedAside {
    /// Relative to the workspace, quoted where it must be.
    pub name: String,
    pub path: PathBuf,
    pub kept: PathBuf,
    /// The text that it was to replace.
    pub replaces: Option<Vec<u8>>,
}

impl MovedAside {
    /// Its name, and the beginning of its text or of what it changes, for a person who decides about it.
    pub fn preview(&self) -> String {
        const MOST_LINES: usize = 20;
        let text = disk::read_file(&self.kept, MOST_PREVIEWED).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let before = self.replaces.as_deref().map(String::from_utf8_lossy);
        let lines: Vec<String> = match &before {
            None => text.lines().map(|line| format!("  {line}\n")).collect(),
            Some(before) => {
                let gone = before.lines().filter(|line| text.lines().all(|other| other != *line));
                let new = text.lines().filter(|line| before.lines().all(|other| other != *line));
                gone.map(|line| format!("- {line}\n")).chain(new.map(|line| format!("+ {line}\n"))).collect()
            }
        };
        let rest = lines.len().saturating_sub(MOST_LINES);
        let rest = if rest > 0 { format!("  … and {rest} more lines\n") } else { String::new() };
        format!("{}\n{}{rest}", self.name, lines[..lines.len().min(MOST_LINES)].concat())
    }

    /// Puts it where it was made.
    ///
    /// # Errors
    /// Something else is there by now, or the system refuses.
    pub fn put_back(&self) -> io::Result<()> {
        let Some(before) = &self.replaces else { return disk::move_tree(&self.kept, &self.path) };
        if disk::read_file(&self.path, MOST_PREVIEWED)? != *before {
            return Err(io::Error::other("it has changed meanwhile"));
        }
        let (dir, name) = disk::split_path(&self.path)?.ok_or(io::ErrorKind::NotFound)?;
        Dir::open(dir)?.overwrite(name, &disk::read_file(&self.kept, MOST_PREVIEWED)?)
    }
}

/// Moves an entry to a directory of its own among those that are kept.
///
/// # Errors
/// It is not there, or cannot be moved.
pub(super) fn move_aside(root: &Path, path: &Path, kept: &Path) -> io::Result<MovedAside> {
    let full = root.join(path);
    disk::read_facts(&full)?;
    let kept = make_kept_dir(kept)?.join(path.strip_prefix("/").unwrap_or(path));
    disk::move_tree(&full, &kept)?;
    Ok(MovedAside { name: file_name::quote(path).into_owned(), path: full, kept, replaces: None })
}

/// A new directory among those that are kept.
pub(super) fn make_kept_dir(kept: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(kept)?;
    Ok(tempfile::Builder::new().prefix("").tempdir_in(crate::files::canonicalize(kept)?)?.keep())
}
