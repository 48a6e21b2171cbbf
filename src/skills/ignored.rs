//! Directories that git ignores: they hold third-party files (dependencies, builds) and are not searched for
//! skills.

use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The ignore files that apply to a place, the nearest last. The start directory of a search is always searched:
/// only directories below it can be ignored.
#[derive(Default)]
pub(super) struct Ignored {
    files: Vec<(PathBuf, Gitignore)>,
}

impl Ignored {
    /// The ignore files from the topmost directory of a project down to a directory in it.
    pub fn above(top: &Path, dir: &Path) -> Self {
        let mut ignored = Self::default();
        ignored.read(top, &top.join(".git/info/exclude"));
        let mut dirs: Vec<&Path> = dir.ancestors().skip(1).take_while(|dir| dir.starts_with(top)).collect();
        dirs.reverse();
        for dir in dirs {
            ignored.read(dir, &dir.join(".gitignore"));
        }
        ignored
    }

    /// Adds the ignore file of a directory; [`Self::leave`] forgets it.
    pub fn enter(&mut self, dir: &Path) {
        self.read(dir, &dir.join(".gitignore"));
    }

    pub fn leave(&mut self, dir: &Path) {
        self.files.retain(|(of, _)| of != dir);
    }

    /// Whether git would skip this directory.
    pub fn has(&self, dir: &Path) -> bool {
        for (of, file) in self.files.iter().rev().filter(|(of, _)| dir.starts_with(of)) {
            match file.matched(dir.strip_prefix(of).unwrap_or(dir), true) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    fn read(&mut self, dir: &Path, file: &Path) {
        if !file.is_file() {
            return;
        }
        let mut builder = GitignoreBuilder::new(dir);
        // An invalid pattern ignores nothing; the others apply.
        let _ = builder.add(file);
        if let Ok(read) = builder.build() {
            self.files.push((dir.to_path_buf(), read));
        }
    }
}
