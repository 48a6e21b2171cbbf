//! Built-in skills on disk, so that their files and scripts have paths.
//!
//! A skill is unpacked when it is loaded. A file with the right content is left alone; any other is replaced
//! atomically, so that two processes can do this at once.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::base::builtin::Dir;
use crate::files::private::make_private_dir;

/// Gives `target` the content of `skill`.
///
/// # Errors
/// The directory cannot be written.
pub(super) fn unpack_skill(skill: &Dir<'_>, target: &Path) -> io::Result<()> {
    make_private_dir(target)?;
    for file in skill.files() {
        let name = file.path().file_name().expect("an embedded file has a name");
        let path = target.join(name);
        if fs::read(&path).is_ok_and(|there| there == file.contents()) {
            continue;
        }
        let mut temporary = NamedTempFile::new_in(target)?;
        temporary.write_all(file.contents())?;
        if file.contents().starts_with(b"#!") {
            make_executable(temporary.path())?;
        }
        temporary.persist(&path).map_err(|error| error.error)?;
    }
    for dir in skill.dirs() {
        let name = dir.path().file_name().expect("an embedded directory has a name");
        unpack_skill(dir, &target.join(name))?;
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> io::Result<()> {
    Ok(())
}
