//! Replaces a file so that at any moment it holds either all of the old content or all of the new; and several
//! files, all or none.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes `content` to `path`, whose links are resolved already. Keeps the mode and owner of an existing file, and
/// creates missing directories.
///
/// # Errors
/// The error of the system; the old file is then unchanged. A file without write permission is not replaced
/// either, even if the directory would allow it.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let parent = path.parent().ok_or(io::ErrorKind::IsADirectory)?;
    fs::create_dir_all(parent)?;
    let existing = match OpenOptions::new().write(true).open(path) {
        Ok(file) => Some(file.metadata()?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut file = beside(parent, existing.is_some())?;
    file.write_all(content)?;
    if let Some(existing) = &existing {
        keep_owner_and_mode(file.as_file(), existing)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The new name is durable once the directory is; some file systems cannot sync directories, which is harmless.
    if let Ok(dir) = File::open(parent) {
        let _ = dir.sync_all();
    }
    Ok(())
}

/// One of several changes.
pub struct Step {
    pub path: PathBuf,
    /// `None` removes the file.
    pub content: Option<Vec<u8>>,
    /// The file whose mode a new one gets.
    pub mode_of: Option<PathBuf>,
}

/// Why none of the changes was made.
#[derive(Debug)]
pub struct Failed {
    pub path: PathBuf,
    pub error: io::Error,
    /// Files that could not be restored.
    pub lost: Vec<PathBuf>,
}

/// The state of a file before a step.
struct Before {
    path: PathBuf,
    file: Option<(Vec<u8>, fs::Permissions)>,
    /// The directories that the step created, outermost last.
    made: Vec<PathBuf>,
}

/// Takes all steps. Files are removed last, so that the mode of a moved file can still be read.
///
/// # Errors
/// The first failure; the steps before it are undone.
pub fn all(mut steps: Vec<Step>) -> Result<(), Failed> {
    steps.sort_by_key(|step| step.content.is_none());
    let mut undo = Vec::new();
    for step in &steps {
        let outcome = Before::of(&step.path).and_then(|before| {
            undo.push(before);
            step.take()
        });
        if let Err(error) = outcome {
            let taken_back = |before: Before| before.restore().err().map(|_| before.path);
            let lost = undo.into_iter().rev().filter_map(taken_back).collect();
            return Err(Failed { path: step.path.clone(), error, lost });
        }
    }
    Ok(())
}

impl Step {
    fn take(&self) -> io::Result<()> {
        let Some(content) = &self.content else { return fs::remove_file(&self.path) };
        replace(&self.path, content)?;
        match &self.mode_of {
            Some(source) => fs::set_permissions(&self.path, fs::metadata(source)?.permissions()),
            None => Ok(()),
        }
    }
}

impl Before {
    fn of(path: &Path) -> io::Result<Self> {
        let file = match fs::metadata(path) {
            Ok(metadata) => Some((fs::read(path)?, metadata.permissions())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let missing = |dir: &&Path| !dir.exists();
        let made = path.ancestors().skip(1).take_while(missing).map(Path::to_path_buf).collect();
        Ok(Self { path: path.to_path_buf(), file, made })
    }

    fn restore(&self) -> io::Result<()> {
        match &self.file {
            // A file that could not be written cannot be restored and need not be.
            Some((content, _)) if fs::read(&self.path).is_ok_and(|now| now == *content) => Ok(()),
            Some((content, permissions)) => {
                replace(&self.path, content)?;
                fs::set_permissions(&self.path, permissions.clone())
            }
            None if self.path.exists() => fs::remove_file(&self.path),
            None => Ok(()),
        }?;
        // Empty by now, unless another process has put something there.
        self.made.iter().for_each(|dir| drop(fs::remove_dir(dir)));
        Ok(())
    }
}

/// A temporary file in the same directory, so that it can be renamed. A new file gets mode 0666 less the umask.
fn beside(dir: &Path, replaces: bool) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".agent-").suffix(".tmp");
    #[cfg(unix)]
    if !replaces {
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    #[cfg(not(unix))]
    let _ = replaces;
    builder.tempfile_in(dir)
}

#[cfg(unix)]
fn keep_owner_and_mode(file: &File, existing: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let ours = file.metadata()?;
    if (ours.uid(), ours.gid()) != (existing.uid(), existing.gid()) {
        // Only root can give files away; for other users the file becomes theirs, as with any editor.
        let _ = fchown(file, Some(existing.uid()), Some(existing.gid()));
    }
    file.set_permissions(existing.permissions())
}

#[cfg(not(unix))]
fn keep_owner_and_mode(file: &File, existing: &Metadata) -> io::Result<()> {
    file.set_permissions(existing.permissions())
}

#[cfg(test)]
mod tests {
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
        replace(&script, b"new").expect("it can be replaced");
        replace(&fresh, b"new").expect("it can be made");
        assert_eq!((mode(&script), mode(&fresh)), (0o751, mode(&plain)));
        assert_eq!(fs::read(&script).expect("it can be read"), b"new");
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        fs::write(dir.path().join("file"), "old").expect("it can be written");
        assert!(replace(&dir.path().join("file/below"), b"new").is_err());
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
        let step = |path: &Path, content: Option<&str>| Step {
            path: path.to_path_buf(),
            content: content.map(|content| content.as_bytes().to_vec()),
            mode_of: None,
        };
        let steps = |last: &Path| {
            vec![step(&gone, None), step(&fresh, Some("f")), step(&kept, Some("x")), step(last, Some(""))]
        };
        let failed = all(steps(&kept.join("below a file"))).expect_err("a file is in the way");
        assert_eq!((failed.path, failed.lost), (kept.join("below a file"), Vec::new()));
        assert_eq!(fs::read(&kept).expect("it is there"), b"kept");
        assert!(gone.exists() && !path("new").exists());
        all(steps(&path("last"))).expect("nothing is in the way");
        assert!(!gone.exists() && fresh.exists());
        assert_eq!(fs::read(&kept).expect("it is there"), b"x");
    }
}
