//! What killed writes leave behind. Each temporary file is noted before it is created, in a file that its process keeps
//! locked; the next start removes those of processes that are gone. Nothing else is removed: what a note names must be
//! a regular file with the name of a temporary one, and no link is followed to it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::{Dir, DirEntryKind, split_path};
use crate::files::private::{make_private_dir, private_file};
use crate::files::regular::{Links, read_bytes};

/// The notes of this process.
static JOURNAL: OnceLock<WriteJournal> = OnceLock::new();

/// The notes of one process.
struct WriteJournal {
    dir: PathBuf,
    /// Created with the first note.
    file: Mutex<Option<File>>,
}

/// Removes what earlier processes left behind, and notes the writes of this one in `dir` from here on.
pub fn begin_journal(dir: &Path) {
    if JOURNAL.set(WriteJournal { dir: dir.to_path_buf(), file: Mutex::default() }).is_ok() {
        remove_leftovers(dir);
    }
}

/// Makes a name for a temporary file.
pub(super) fn name_temporary() -> String {
    let letters: String = std::iter::repeat_with(fastrand::alphanumeric).take(8).collect();
    format!(".agent-{letters}.tmp")
}

/// Notes a file that is about to be created. A note that cannot be written is left out: the write is worth more.
pub(super) fn note_temporary(path: &Path) {
    let Some(journal) = JOURNAL.get() else { return };
    let mut file = journal.file.lock().unwrap_or_else(PoisonError::into_inner);
    if file.is_none() {
        *file = create_notes(&journal.dir);
    }
    if let Some(file) = &mut *file {
        let _ = file.write_all(&[path.as_os_str().as_bytes(), b"\0"].concat());
    }
}

fn create_notes(dir: &Path) -> Option<File> {
    make_private_dir(dir).ok()?;
    let name: String = std::iter::repeat_with(fastrand::alphanumeric).take(12).collect();
    let file = private_file().append(true).create_new(true).open(dir.join(name)).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

fn remove_leftovers(dir: &Path) {
    const MOST_BYTES: u64 = 16 << 20;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_over = File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if !(entry.file_type().is_ok_and(|kind| kind.is_file()) && is_over) {
            continue;
        }
        let notes = read_bytes(&entry.path(), Links::Refuse, MOST_BYTES).ok().flatten().unwrap_or_default();
        for path in notes.split(|byte| *byte == 0) {
            remove_temporary(Path::new(OsStr::from_bytes(path)));
        }
        let _ = fs::remove_file(entry.path());
    }
}

fn remove_temporary(path: &Path) {
    let Ok(Some((parent, name))) = split_path(path) else { return };
    let is_ours = name.as_bytes().starts_with(b".agent-") && name.as_bytes().ends_with(b".tmp");
    if is_ours
        && let Ok(dir) = Dir::open(parent)
        && dir.facts(name).is_ok_and(|facts| facts.kind == DirEntryKind::File)
    {
        let _ = dir.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_what_a_process_that_is_gone_noted_is_removed() {
        let place = tempfile::tempdir().expect("a directory can be made");
        let root = crate::files::canonicalize(place.path()).expect("it exists");
        let path = |name: &str| root.join(name);
        for dir in ["notes", "a", "elsewhere"] {
            fs::create_dir(path(dir)).expect("made");
        }
        symlink(path("elsewhere"), path("link")).expect("linked");
        let files = ["a/.agent-1.tmp", "a/.agent-2.tmp", "a/file", "elsewhere/.agent-3.tmp"];
        for file in files {
            fs::write(path(file), "").expect("written");
        }
        symlink(path("a/file"), path("a/.agent-4.tmp")).expect("linked");
        let notes = ["a/.agent-1.tmp", "a/file", "link/.agent-3.tmp", "a/.agent-4.tmp", "a/.agent-5.tmp"];
        let notes: Vec<Vec<u8>> = notes.map(|name| path(name).into_os_string().into_encoded_bytes()).to_vec();
        fs::write(path("notes/gone"), notes.join(&0)).expect("written");
        let running = create_notes(&path("notes")).expect("created");
        (&running).write_all(path("a/.agent-2.tmp").as_os_str().as_bytes()).expect("written");
        remove_leftovers(&path("notes"));
        let left: Vec<bool> = files.iter().map(|file| path(file).exists()).collect();
        assert_eq!(left, [false, true, true, true]);
        assert!(path("a/.agent-4.tmp").is_symlink());
        assert_eq!(fs::read_dir(path("notes")).expect("listed").count(), 1, "that of the running process");
        drop(running);
        remove_leftovers(&path("notes"));
        assert!(!path("a/.agent-2.tmp").exists());
    }
}
