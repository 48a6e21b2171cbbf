//! Replacing a file so that at any moment it holds either all of the old content or all of the new.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes `content` to `path`, whose links are resolved already. Mode and owner of an existing file are kept, missing
/// directories are made.
///
/// # Errors
/// Whatever the system said; the old file is then as it was. A file that may not be written is not replaced either,
/// though the directory would allow it.
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
    // The new name is safe once the directory is; some file systems cannot sync directories, which harms nobody.
    if let Ok(dir) = File::open(parent) {
        let _ = dir.sync_all();
    }
    Ok(())
}

/// A file of the same directory, so that it can be renamed. A new file gets the mode that the umask leaves of 0666.
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
        // Only root can give files away; for everybody else the file becomes theirs, as with any editor.
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
}
