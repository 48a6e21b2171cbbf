//! The ignore files that a search honours: `.ignore`, `.gitignore` and `.git/info/exclude`. They are read like any
//! other file: no links, regular files only, up to a size limit.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files::disk::{Dir, DirEntry};

/// Only this much of a longer ignore file counts.
const MOST_BYTES: u64 = 256 * 1024;

/// The exclusions of the ignore files of a directory and of those above it.
#[derive(Clone, Default)]
pub struct Exclusions(Option<Arc<IgnoreLayer>>);

/// The ignore files of one directory.
struct IgnoreLayer {
    /// `.ignore`, `.gitignore`, `.git/info/exclude`: an earlier one takes precedence, however far above it is.
    files: [Option<Gitignore>; 3],
    /// True if it is the top of a repository: git's files above it do not count.
    has_git: bool,
    above: Exclusions,
}

impl Exclusions {
    /// The ignore files above `dir`.
    pub fn read_above(dir: &Path) -> Self {
        let mut above: Vec<&Path> = dir.ancestors().skip(1).collect();
        above.reverse();
        above.into_iter().fold(Self::default(), |ignored, path| match Dir::open(path) {
            Ok(dir) => ignored.layer(&dir, path, dir.facts(OsStr::new(".git")).is_ok()),
            Err(_) => ignored,
        })
    }

    /// The ignore files that apply to the entries of `dir`, whose path is `path`.
    pub fn read_in(&self, dir: &Dir, path: &Path, entries: &[DirEntry]) -> Self {
        let has = |name: &str| entries.iter().any(|entry| entry.name == name);
        let has_git = has(".git");
        if has_git || has(".ignore") || has(".gitignore") { self.layer(dir, path, has_git) } else { self.clone() }
    }

    fn layer(&self, dir: &Dir, path: &Path, has_git: bool) -> Self {
        let git = || dir.dir(OsStr::new(".git"))?.dir(OsStr::new("info"));
        let exclude = if has_git { git().ok().and_then(|info| read_file(&info, "exclude", path)) } else { None };
        let files = [read_file(dir, ".ignore", path), read_file(dir, ".gitignore", path), exclude];
        if !has_git && files.iter().all(Option::is_none) {
            return self.clone();
        }
        Self(Some(Arc::new(IgnoreLayer { files, has_git, above: self.clone() })))
    }

    /// True if an entry is left out.
    pub fn excludes(&self, path: &Path, is_dir: bool) -> bool {
        let mut found = [None; 3];
        let mut below_git = true;
        let mut next = &self.0;
        while let Some(layer) = next {
            for (at, file) in layer.files.iter().enumerate() {
                if let (None, Some(file), true) = (found[at], file, at == 0 || below_git) {
                    found[at] = match file.matched(path, is_dir) {
                        Match::None => None,
                        Match::Ignore(_) => Some(true),
                        Match::Whitelist(_) => Some(false),
                    };
                }
            }
            below_git &= !layer.has_git;
            next = &layer.above.0;
        }
        found.into_iter().flatten().next().unwrap_or(false)
    }
}

/// An ignore file; `None` if there is none or it has no patterns.
fn read_file(dir: &Dir, name: &str, path: &Path) -> Option<Gitignore> {
    let bytes = dir.file(OsStr::new(name)).and_then(|mut opened| opened.read(MOST_BYTES)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(path);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // An invalid pattern ignores nothing; the others apply.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|file| !file.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Place;
    use super::*;

    #[test]
    fn the_nearest_decides_and_ignore_files_beat_those_of_git() {
        let place = Place::with(&[
            (".gitignore", "*.log\n/top\n[invalid\n"),
            (".ignore", "!kept.log\n"),
            ("sub/.gitignore", "!deep.log\n"),
            ("repo/.git/info/exclude", "own\n"),
            ("repo/.gitignore", "*.tmp\n"),
        ]);
        let root = place.workspace.root();
        let enter = |ignored: &Exclusions, path: &Path| {
            let dir = Dir::open(path).expect("it is there");
            ignored.read_in(&dir, path, &dir.entries().expect("it can be listed"))
        };
        let top = enter(&Exclusions::read_above(root), root);
        let (sub, repo) = (enter(&top, &root.join("sub")), enter(&top, &root.join("repo")));
        for (ignored, path, expected) in [
            (&top, "a.log", true),
            (&top, "kept.log", false),
            (&top, "top", true),
            (&sub, "sub/top", false),
            (&sub, "sub/a.log", true),
            (&sub, "sub/deep.log", false),
            (&sub, "sub/kept.log", false),
            // Git's files above a repository do not count in it; `.ignore` does.
            (&repo, "repo/a.log", false),
            (&repo, "repo/a.tmp", true),
            (&repo, "repo/own", true),
        ] {
            assert_eq!(ignored.excludes(&root.join(path), false), expected, "{path}");
        }
    }
}
