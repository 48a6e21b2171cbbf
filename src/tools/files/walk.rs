//! The files that a search sees: those that `.gitignore` and `.ignore` files do not exclude, including hidden
//! ones, but nothing inside `.git` or behind symbolic links. The user's own git settings are ignored, so that
//! every user's search finds the same files.
//!
//! Directories are opened and listed by handles: one that is swapped for a link meanwhile is not entered. Paths that a
//! rule denies, and those of credentials, are left out and counted; so are directories that cannot be listed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::base::output::ToolError;
use crate::files::disk::{Dir, DirEntry, DirEntryKind};
use crate::files::{ignored::IgnoreFiles, regular::Links, workspace::Workspace};
use crate::safety::Reach;

use super::super::aside::Abandoned;
use super::{UnreadPaths, describe_unread, left_out};

const MOST_THREADS: usize = 12;

/// What a walk or a listing did not see.
#[derive(Debug, Default)]
pub struct WalkGaps {
    /// The number of entries that were left out.
    pub omitted: u64,
    /// The directories that could not be listed.
    closed: UnreadPaths,
}

impl WalkGaps {
    /// Notes a directory that could not be listed, unless it has gone meanwhile.
    pub fn add(&mut self, dir: &Path, error: io::Error) {
        if error.kind() != io::ErrorKind::NotFound {
            self.closed.insert(dir.to_path_buf(), error);
        }
    }

    /// The lines that say so.
    pub fn describe(&self, workspace: &Workspace) -> String {
        let closed = describe_unread(workspace, &self.closed, "directory", "directories");
        let omitted = (self.omitted > 0).then(|| left_out(self.omitted));
        closed.into_iter().chain(omitted).map(|line| line + "\n").collect()
    }
}

/// Visits everything below `root` that is not a directory, on several threads, in no order. Each thread makes its own
/// visitor, which gets the directory, the entry in it, and its path.
pub fn walk_files<V>(root: &Path, reach: &Reach, abandoned: &Abandoned, visitor: impl Fn() -> V + Sync) -> WalkGaps
where
    V: FnMut(&Dir, &DirEntry, PathBuf),
{
    let walk = FileWalk {
        root,
        reach,
        abandoned,
        ignored: IgnoreFiles::anywhere(Links::Refuse),
        queue: Mutex::default(),
        more: Condvar::new(),
        gaps: Mutex::default(),
    };
    walk.queue().waiting.push(root.to_path_buf());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| walk.work(&mut visitor()));
        }
    });
    walk.gaps.into_inner().expect("no holder of the lock panics")
}

struct FileWalk<'a> {
    root: &'a Path,
    reach: &'a Reach,
    abandoned: &'a Abandoned,
    ignored: IgnoreFiles,
    queue: Mutex<WalkQueue>,
    more: Condvar,
    gaps: Mutex<WalkGaps>,
}

#[derive(Default)]
struct WalkQueue {
    /// Directories.
    waiting: Vec<PathBuf>,
    /// Threads that may still add to it.
    busy: usize,
}

impl FileWalk<'_> {
    fn work<V: FnMut(&Dir, &DirEntry, PathBuf)>(&self, visitor: &mut V) {
        while let Some(path) = self.next() {
            let _done = WalkDone(self);
            if !self.abandoned.get() {
                let below = self.directory(&path, visitor);
                self.queue().waiting.extend(below);
            }
        }
    }

    /// The next directory; `None` if there will be no more.
    fn next(&self) -> Option<PathBuf> {
        let mut queue = self.queue();
        loop {
            if let Some(next) = queue.waiting.pop() {
                queue.busy += 1;
                return Some(next);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.more.wait(queue).expect("no holder of the lock panics");
        }
    }

    /// Visits the entries of a directory; returns the directories in it.
    fn directory<V: FnMut(&Dir, &DirEntry, PathBuf)>(&self, path: &Path, visitor: &mut V) -> Vec<PathBuf> {
        let listed = Dir::open(path).and_then(|dir| Ok((dir.entries()?, dir)));
        let (entries, dir) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.gaps().add(path, error);
                return Vec::new();
            }
        };
        let ignored = self.ignored.read_in(path);
        let mut below = Vec::new();
        for entry in entries.iter().filter(|entry| entry.name != ".git") {
            let path = path.join(&entry.name);
            let is_dir = entry.kind == DirEntryKind::Dir;
            if ignored.has(&path, is_dir) || self.abandoned.get() {
                continue;
            }
            if self.reach.omits(&path, self.root) {
                self.gaps().omitted += 1;
            } else if is_dir {
                below.push(path);
            } else {
                visitor(&dir, entry, path);
            }
        }
        below
    }

    fn gaps(&self) -> MutexGuard<'_, WalkGaps> {
        self.gaps.lock().expect("no holder of the lock panics")
    }

    fn queue(&self) -> MutexGuard<'_, WalkQueue> {
        self.queue.lock().expect("no holder of the lock panics")
    }
}

/// Dropping it reports that a thread is done with its directory, even if its visitor panicked: the others wait for
/// that.
struct WalkDone<'a>(&'a FileWalk<'a>);

impl Drop for WalkDone<'_> {
    fn drop(&mut self) {
        self.0.queue().busy -= 1;
        self.0.more.notify_all();
    }
}

/// A pattern for paths relative to the search directory. Without a slash it matches names at any depth.
pub struct SearchPattern {
    /// A set with one pattern: unlike a single matcher it compares names and extensions without a regular expression.
    matcher: GlobSet,
    names_only: bool,
}

impl SearchPattern {
    /// # Errors
    /// It is not a valid pattern, or no file below the directory can match it.
    pub fn new(pattern: &str) -> Result<Self, ToolError> {
        let relative = pattern.trim_start_matches("./");
        if relative.starts_with('/') || relative.split('/').any(|part| part == "..") {
            return Err(ToolError::parameter(format!(
                "the pattern {pattern} leads out of the directory that is searched: give that directory as path, and \
                 a pattern relative to it"
            )));
        }
        let glob = GlobBuilder::new(relative).literal_separator(true).empty_alternates(true).build();
        let matcher = glob.and_then(|glob| GlobSetBuilder::new().add(glob).build()).map_err(|error| {
            ToolError::parameter(format!("{pattern} is not a valid pattern: {}", error.kind()))
        })?;
        Ok(Self { matcher, names_only: !relative.contains('/') })
    }

    /// True if `path`, which is below `root`, matches.
    pub fn matches(&self, root: &Path, path: &Path) -> bool {
        let subject = if self.names_only { path.file_name().map(Path::new) } else { path.strip_prefix(root).ok() };
        subject.is_some_and(|subject| self.matcher.is_match(subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_patterns_match() {
        let cases = [
            ("*.rs", "main.rs", true),
            ("*.rs", "src/deep/main.rs", true),
            ("src/*.rs", "src/main.rs", true),
            ("src/*.rs", "src/deep/main.rs", false),
            ("src/**/*.rs", "src/deep/main.rs", true),
            ("src/**/*.rs", "src/main.rs", true),
            ("./src/*.rs", "src/main.rs", true),
            ("*.{ts,tsx}", "a/b.tsx", true),
            ("中*", "文/中文.txt", true),
            ("**", "a/b", true),
        ];
        for (pattern, path, expected) in cases {
            let pattern_of = SearchPattern::new(pattern).expect("it is a pattern");
            assert_eq!(
                pattern_of.matches(Path::new("/w"), &Path::new("/w").join(path)),
                expected,
                "{pattern} on {path}"
            );
        }
    }

    #[test]
    fn what_is_no_pattern_says_so() {
        let message = |pattern| SearchPattern::new(pattern).err().map(|error| error.message).unwrap_or_default();
        assert!(message("a[").contains("a[ is not a valid pattern"), "{}", message("a["));
        assert!(message("../*.rs").contains("give that directory as path"));
        assert!(message("/etc/*").contains("give that directory as path"));
    }
}
