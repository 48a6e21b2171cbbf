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
/// The names of ignore files, in order of precedence: an earlier one decides, however far above it is.
const NAMES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];
/// The index of the first of git's, which do not apply beyond the top of a repository.
const OF_GIT: usize = 1;

/// The ignore files of directories, each read when it is first needed.
pub struct IgnoreFiles {
    dirs: Mutex<HashMap<PathBuf, Exclusions>>,
    /// Nothing above this directory is read.
    top: Option<PathBuf>,
    links: Links,
}

/// The exclusions of the ignore files of a directory and of those above it.
#[derive(Clone, Default)]
pub struct Exclusions(Option<Arc<IgnoreLayer>>);

/// The ignore files of one directory.
struct IgnoreLayer {
    files: [Option<Gitignore>; NAMES.len()],
    is_repository: bool,
    above: Exclusions,
}

impl IgnoreFiles {
    /// Uses the ignore files of all directories above a path. `links` says whether one may be a link.
    pub fn anywhere(links: Links) -> Self {
        Self { dirs: Mutex::default(), top: None, links }
    }

    /// Uses the ignore files from `top` on, which may be links.
    pub fn start_below(top: &Path) -> Self {
        Self { top: Some(top.to_path_buf()), ..Self::anywhere(Links::Follow) }
    }

    /// True if an entry is to be skipped. Called for each part of a path separately: an entry of an ignored directory
    /// is not ignored itself, so that the directory can be searched by its name.
    pub fn has(&self, path: &Path, is_dir: bool) -> bool {
        path.parent().is_some_and(|dir| self.read_in(dir).has(path, is_dir))
    }

    /// The exclusions that apply to the entries of `dir`.
    pub fn read_in(&self, dir: &Path) -> Exclusions {
        if self.top.as_deref().is_some_and(|top| !dir.starts_with(top)) {
            return Exclusions::default();
        }
        if let Some(known) = self.dirs.lock().unwrap_or_else(PoisonError::into_inner).get(dir) {
            return known.clone();
        }
        let above = dir.parent().map_or_else(Exclusions::default, |parent| self.read_in(parent));
        let exclusions = above.read_below(dir, self.links);
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        dirs.insert(dir.to_path_buf(), exclusions.clone());
        exclusions
    }
}

impl Exclusions {
    fn read_below(self, dir: &Path, links: Links) -> Self {
        let files = NAMES.map(|name| read_ignore_file(dir, name, links).ok().flatten());
        let git = dir.join(".git");
        let is_repository = git.is_file() || git.join("HEAD").exists();
        if !is_repository && files.iter().all(Option::is_none) {
            return self;
        }
        Self(Some(Arc::new(IgnoreLayer { files, is_repository, above: self })))
    }

    /// True if an entry of the directory is left out.
    pub fn has(&self, path: &Path, is_dir: bool) -> bool {
        (0..NAMES.len()).find_map(|kind| self.judge_by(kind, path, is_dir)).unwrap_or(false)
    }

    /// The verdict of the files of a kind, the nearest first.
    fn judge_by(&self, kind: usize, path: &Path, is_dir: bool) -> Option<bool> {
        let mut next = self.0.as_deref();
        while let Some(layer) = next {
            match layer.files[kind].as_ref().map(|file| file.matched(path, is_dir)) {
                Some(Match::Ignore(_)) => return Some(true),
                Some(Match::Whitelist(_)) => return Some(false),
                Some(Match::None) | None => {}
            }
            next = layer.above.0.as_deref().filter(|_| kind < OF_GIT || !layer.is_repository);
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

fn read_ignore_file(dir: &Path, name: &str, links: Links) -> Result<Option<Gitignore>, String> {
    let Some(bytes) = read_bytes(&dir.join(name), links, LONGEST)? else { return Ok(None) };
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

    use super::{IgnoreFiles, Links, find_oddities};

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
        write(root, ".ignore", "everywhere\n");
        write(root, "inner/.git/HEAD", "");
        write(root, "inner/.git/info/exclude", "own\n");
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
            // Git's files above a repository do not count in it; `.ignore` does.
            ("inner/own", false, true),
            ("inner/everywhere", false, true),
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
        assert!(IgnoreFiles::anywhere(Links::Follow).has(&root.join("secret"), true));
        assert!(!IgnoreFiles::anywhere(Links::Follow).has(&root.join("other"), true));
        let told = find_oddities(std::iter::once(root)).join("\n");
        assert!(told.contains(".ignore is not obeyed: it is not a regular file"), "{told}");
        assert!(told.contains(".gitignore is not obeyed: it is not a regular file"), "{told}");
        assert!(!told.contains("exclude"), "{told}");
    }

    #[test]
    fn links_count_only_where_they_may() {
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), "elsewhere", "secret\n");
        std::os::unix::fs::symlink("elsewhere", dir.path().join(".ignore")).expect("a link");
        for (links, expected) in [(Links::Follow, true), (Links::Refuse, false)] {
            assert_eq!(IgnoreFiles::anywhere(links).has(&dir.path().join("secret"), true), expected, "{links:?}");
        }
    }
}
