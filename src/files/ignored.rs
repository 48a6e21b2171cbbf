//! Files and directories that `.ignore`, `.gitignore` and `.git/info/exclude` leave out: third-party files
//! (dependencies, builds), which no search is meant to enter.
//!
//! These files are third-party and are read before the user was asked: a link to `/dev/zero`, a pipe or a file of a
//! gigabyte ignores nothing and is reported by [`find_oddities`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files::file_name;
use crate::files::regular::{Links, check_file, read_bytes};

/// The largest ignore file that is used.
const LONGEST: u64 = 1024 * 1024;
/// The names of ignore files, in order of precedence.
const NAMES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];
/// The index of the first of git's, which do not apply beyond the top of a repository.
const OF_GIT: usize = 1;

/// The ignore files of directories, each read when it is first needed.
#[derive(Default)]
pub struct IgnoreFiles {
    dirs: Mutex<HashMap<PathBuf, Arc<Level>>>,
    /// Nothing above this directory is read.
    top: Option<PathBuf>,
}

/// The ignore files of one directory, and of those above it.
struct Level {
    dir: PathBuf,
    files: [Option<Gitignore>; NAMES.len()],
    is_repository: bool,
    above: Option<Arc<Level>>,
}

impl IgnoreFiles {
    /// Uses the ignore files of all directories above a path.
    pub fn anywhere() -> Self {
        Self::default()
    }

    /// Uses the ignore files from `top` on.
    pub fn start_below(top: &Path) -> Self {
        Self { top: Some(top.to_path_buf()), ..Self::default() }
    }

    /// True if an entry is to be skipped. Called for each part of a path separately: an entry of an ignored directory
    /// is not ignored itself, so that the directory can be searched by its name.
    pub fn has(&self, path: &Path, is_dir: bool) -> bool {
        let Some(level) = path.parent().and_then(|dir| self.level(dir)) else { return false };
        (0..NAMES.len()).find_map(|kind| level.says(kind, path, is_dir)).unwrap_or(false)
    }

    fn level(&self, dir: &Path) -> Option<Arc<Level>> {
        if self.top.as_deref().is_some_and(|top| !dir.starts_with(top)) {
            return None;
        }
        if let Some(known) = self.dirs.lock().unwrap_or_else(PoisonError::into_inner).get(dir) {
            return Some(Arc::clone(known));
        }
        let above = dir.parent().and_then(|parent| self.level(parent));
        let level = Arc::new(Level::read(dir, above));
        self.dirs.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.to_path_buf(), Arc::clone(&level));
        Some(level)
    }
}

impl Level {
    fn read(dir: &Path, above: Option<Arc<Self>>) -> Self {
        let files = NAMES.map(|name| read_ignore_file(dir, name).ok().flatten());
        let git = dir.join(".git");
        let is_repository = git.is_file() || git.join("HEAD").exists();
        Self { dir: dir.to_path_buf(), files, is_repository, above }
    }

    /// The verdict of the files of a kind on a path, the nearest first.
    fn says(&self, kind: usize, path: &Path, is_dir: bool) -> Option<bool> {
        let mut level = Some(self);
        while let Some(here) = level {
            let file = here.files[kind].as_ref();
            match file.map(|file| file.matched(path.strip_prefix(&here.dir).unwrap_or(path), is_dir)) {
                Some(Match::Ignore(_)) => return Some(true),
                Some(Match::Whitelist(_)) => return Some(false),
                Some(Match::None) | None => {}
            }
            level = here.above.as_deref().filter(|_| kind < OF_GIT || !here.is_repository);
        }
        None
    }
}

/// The ignore files of these directories that are not used, each with the reason.
pub fn find_oddities<'a>(dirs: impl Iterator<Item = &'a Path>) -> Vec<String> {
    let paths = dirs.flat_map(|dir: &'a Path| NAMES.map(|name| dir.join(name)));
    let odd = paths.filter_map(|path| {
        let why = check_file(&path, Links::Follow, LONGEST).err()?;
        Some((path, why))
    });
    odd.map(|(path, why)| format!("{} is not obeyed: it {why}", file_name::quote(&path))).collect()
}

fn read_ignore_file(dir: &Path, name: &str) -> Result<Option<Gitignore>, String> {
    let Some(bytes) = read_bytes(&dir.join(name), Links::Follow, LONGEST)? else { return Ok(None) };
    let mut builder = GitignoreBuilder::new(dir);
    for line in String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').lines() {
        // An invalid pattern ignores nothing; the others apply.
        let _ = builder.add_line(None, line);
    }
    Ok(builder.build().ok().filter(|file| !file.is_empty()))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{IgnoreFiles, find_oddities};

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    #[test]
    fn the_nearest_file_decides_and_ignore_wins_over_gitignore() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        write(root, ".gitignore", "*.log\n/target/\n[broken\nkept.log\n");
        write(root, ".git/info/exclude", "private\n");
        write(root, "a/.gitignore", "!kept.log\n");
        write(root, "a/.ignore", "only-here\n!wanted.log\n");
        write(root, "inner/.git/HEAD", "");
        let ignored = IgnoreFiles::start_below(root);
        for (path, is_dir, expected) in [
            ("x.log", false, true),
            ("a/x.log", false, true),
            ("a/kept.log", false, false),
            ("kept.log", false, true),
            ("a/wanted.log", false, false),
            ("a/only-here", true, true),
            ("only-here", true, false),
            ("target", true, true),
            ("target", false, false),
            ("a/target", true, false),
            ("target/x.rs", false, false),
            ("a/private", true, true),
            ("inner/x.log", false, false),
        ] {
            assert_eq!(ignored.has(&root.join(path), is_dir), expected, "{path}");
        }
    }

    #[test]
    fn what_never_ends_ignores_nothing_and_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        std::os::unix::fs::symlink("/dev/zero", root.join(".ignore")).expect("a link");
        nix::unistd::mkfifo(&root.join(".gitignore"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        write(root, ".git/info/exclude", "secret\n");
        assert!(IgnoreFiles::anywhere().has(&root.join("secret"), true));
        assert!(!IgnoreFiles::anywhere().has(&root.join("other"), true));
        let told = find_oddities(std::iter::once(root)).join("\n");
        assert!(told.contains(".ignore is not obeyed: it is not a regular file"), "{told}");
        assert!(told.contains(".gitignore is not obeyed: it is not a regular file"), "{told}");
        assert!(!told.contains("exclude"), "{told}");
    }
}
