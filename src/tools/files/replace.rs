//! Replaces a file so that at any moment it contains either all of the old content or all of the new; and several
//! files, all or none.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::disk::{self, Dir};

/// Writes `content` to `path`, whose links are resolved already. Keeps the mode and owner of an existing file, and
/// creates missing directories.
///
/// # Errors
/// The file cannot be written, and is then unchanged. A file without write permission is not replaced either, even if
/// the directory would allow it.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    with_mode(path, content, None)
}

fn with_mode(path: &Path, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    let (parent, name) = split_path(path)?;
    Dir::create(parent)?.replace(name, content, mode)
}

fn split_path(path: &Path) -> io::Result<(&Path, &OsStr)> {
    Ok(disk::split_path(path)?.ok_or(io::ErrorKind::IsADirectory)?)
}

/// One of several changes.
pub struct ReplaceStep {
    pub path: PathBuf,
    /// `None` removes the file.
    pub content: Option<Vec<u8>>,
    /// The file whose mode a new one gets.
    pub mode_of: Option<PathBuf>,
}

/// The reason that none of the changes was made.
#[derive(Debug)]
pub struct ReplaceFailure {
    pub path: PathBuf,
    pub error: io::Error,
    /// Files that could not be restored.
    pub lost: Vec<PathBuf>,
}

/// The state of a file before a step.
struct Before {
    path: PathBuf,
    /// Its content and mode.
    file: Option<(Vec<u8>, u32)>,
    /// The directories that the step created, outermost last.
    made: Vec<PathBuf>,
}

/// Carries out all steps. Files are removed last, so that the mode of a moved file can still be read.
///
/// # Errors
/// A step failed, and the steps before it are undone.
pub fn replace_all(mut steps: Vec<ReplaceStep>) -> Result<(), ReplaceFailure> {
    steps.sort_by_key(|step| step.content.is_none());
    let mut undo = Vec::new();
    for step in &steps {
        let outcome = Before::read(&step.path).and_then(|before| {
            undo.push(before);
            step.take()
        });
        if let Err(error) = outcome {
            let taken_back = |before: Before| before.restore().err().map(|_| before.path);
            let lost = undo.into_iter().rev().filter_map(taken_back).collect();
            return Err(ReplaceFailure { path: step.path.clone(), error, lost });
        }
    }
    Ok(())
}

impl ReplaceStep {
    fn take(&self) -> io::Result<()> {
        let Some(content) = &self.content else { return remove_file(&self.path) };
        let mode = self.mode_of.as_deref().map(disk::read_facts).transpose()?.map(|facts| facts.mode);
        with_mode(&self.path, content, mode)
    }
}

impl Before {
    fn read(path: &Path) -> io::Result<Self> {
        let file = match disk::open_file(path) {
            Ok(mut opened) => Some((opened.read(u64::MAX)?, opened.facts.mode)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_missing =
            |dir: &&Path| disk::read_facts(dir).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let made = path.ancestors().skip(1).take_while(is_missing).map(Path::to_path_buf).collect();
        Ok(Self { path: path.to_path_buf(), file, made })
    }

    fn restore(&self) -> io::Result<()> {
        let now = disk::open_file(&self.path).and_then(|mut opened| opened.read(u64::MAX));
        match (&self.file, now) {
            // A file that could not be written cannot be restored and need not be.
            (Some((content, _)), Ok(now)) if now == *content => Ok(()),
            (Some((content, mode)), _) => with_mode(&self.path, content, Some(*mode)),
            (None, Ok(_)) => remove_file(&self.path),
            (None, Err(_)) => Ok(()),
        }?;
        // Empty by now, unless another process has put something there.
        for dir in &self.made {
            let _ = split_path(dir).and_then(|(parent, name)| Dir::open(parent)?.remove_dir(name));
        }
        Ok(())
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    let (parent, name) = split_path(path)?;
    Dir::open(parent)?.remove(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn mode_is_kept_and_new_files_follow_the_umask() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory can be made");
        let mode = |path: &Path| fs::metadata(path).expect("the file is there").permissions().mode() & 0o7777;
        let (script, fresh, plain) =
            (dir.path().join("a.sh"), dir.path().join("x/y/new"), dir.path().join("plain"));
        fs::write(&script, "old").expect("it can be written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).expect("its mode can be set");
        fs::write(&plain, "").expect("it can be written");
        replace_file(&script, b"new").expect("it can be replaced");
        replace_file(&fresh, b"new").expect("it can be made");
        assert_eq!((mode(&script), mode(&fresh)), (0o751, mode(&plain)));
        assert_eq!(fs::read(&script).expect("it can be read"), b"new");
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        fs::write(dir.path().join("file"), "old").expect("it can be written");
        assert!(replace_file(&dir.path().join("file/below"), b"new").is_err());
        assert_eq!(fs::read(dir.path().join("file")).expect("it can be read"), b"old");
        assert_eq!(fs::read_dir(dir.path()).expect("it can be listed").count(), 1);
    }

    #[test]
    fn all_steps_or_none() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let path = |name: &str| dir.path().join(name);
        let (kept, gone, fresh) = (path("kept"), path("gone"), path("new/dir/file"));
        fs::write(&kept, "kept").expect("it can be written");
        fs::write(&gone, "gone").expect("it can be written");
        let step = |path: &Path, content: Option<&str>| ReplaceStep {
            path: path.to_path_buf(),
            content: content.map(|content| content.as_bytes().to_vec()),
            mode_of: None,
        };
        let steps = |last: &Path| {
            vec![step(&gone, None), step(&fresh, Some("f")), step(&kept, Some("x")), step(last, Some(""))]
        };
        let failed = replace_all(steps(&kept.join("below a file"))).expect_err("a file is in the way");
        assert_eq!((failed.path, failed.lost), (kept.join("below a file"), Vec::new()));
        assert_eq!(fs::read(&kept).expect("it is there"), b"kept");
        assert!(gone.exists() && !path("new").exists());
        replace_all(steps(&path("last"))).expect("nothing is in the way");
        assert!(!gone.exists() && fresh.exists());
        assert_eq!(fs::read(&kept).expect("it is there"), b"x");
    }
}
