//! Files for `@`: a list of the workspace's files, made in the background, and completions from it.
//!
//! The first `@` starts the list, which leaves out what git ignores. Until it is complete, completion uses the part
//! that exists. An old list is made again while it still serves.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{fuzzy, mentions};
use crate::base::text;
use crate::files::ignored::IgnoreFiles;
use crate::files::regular::Links;
use crate::screen::line::Offer;

/// The most files of a list. Directories near the top come first.
const MOST_FILES: usize = 200_000;
/// The most directories that are read.
const MOST_DIRS: usize = 100_000;
/// The age above which a list is made again.
const OLD: Duration = Duration::from_secs(3);
/// The number of files in the first part of a list to be shown; each further part is twice as long.
const FIRST_PART: usize = 1024;

/// The files of a workspace. Clones share the list.
#[derive(Debug, Clone, Default)]
pub struct Finder {
    root: PathBuf,
    list: Arc<FileList>,
}

#[derive(Debug, Default)]
struct FileList {
    state: Mutex<FileListState>,
    /// Notified when a list is complete.
    whole: Condvar,
}

#[derive(Debug, Default)]
struct FileListState {
    files: Arc<Vec<Box<str>>>,
    is_scanning: bool,
    /// The time when the last list became complete.
    made: Option<Instant>,
}

impl FileList {
    fn state(&self) -> MutexGuard<'_, FileListState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Finder {
    /// Creates a finder. Reads nothing yet.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), list: Arc::default() }
    }

    /// Starts a thread that makes the list, unless there is a recent one.
    pub fn prepare(&self) {
        let mut state = self.list.state();
        if state.is_scanning || state.made.is_some_and(|made| made.elapsed() < OLD) {
            return;
        }
        state.is_scanning = true;
        let is_first = state.made.is_none();
        drop(state);
        let (root, list) = (self.root.clone(), Arc::clone(&self.list));
        let scan = move || {
            let files = scan_files(&root, |part| {
                if is_first {
                    list.state().files = Arc::new(part.to_vec());
                }
            });
            *list.state() =
                FileListState { files: Arc::new(files), is_scanning: false, made: Some(Instant::now()) };
            list.whole.notify_all();
        };
        if std::thread::Builder::new().name("files".to_owned()).spawn(scan).is_err() {
            self.list.state().is_scanning = false;
        }
    }

    /// Completes a word that begins with `@`, with at most `most` offers. Waits at most `patience` for the first list.
    pub fn offers(&self, word: &str, most: usize, patience: Duration) -> Vec<Offer> {
        let quoted = word.starts_with("@\"");
        let typed = word.trim_start_matches('@').trim_start_matches('"');
        let is_elsewhere = typed.starts_with(['/', '~']) || typed.starts_with("..");
        // Other places may be slow: they are not looked at while somebody types.
        if is_elsewhere && patience.is_zero() {
            return Vec::new();
        }
        if typed.is_empty() || is_elsewhere {
            return self.list_continuations(typed, quoted, most);
        }
        let files = self.files(patience);
        let shows_hidden = typed.starts_with('.') || typed.contains("/.");
        let found = if shows_hidden {
            fuzzy::find_best(typed, &files, most)
        } else {
            let found = fuzzy::find_best(typed, &files, most.saturating_mul(4));
            found.into_iter().filter(|path| !is_hidden(path)).take(most).collect()
        };
        if found.is_empty() {
            // Ignored files are offered to those who name their directory.
            return self.list_continuations(typed, quoted, most);
        }
        found.into_iter().map(|path| self.file_offer(path, quoted)).collect()
    }

    /// Returns the files found so far.
    fn files(&self, patience: Duration) -> Arc<Vec<Box<str>>> {
        self.prepare();
        let state = self.list.state();
        let unmade = |state: &mut FileListState| state.made.is_none() && state.is_scanning;
        let waited = self.list.whole.wait_timeout_while(state, patience, unmade);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&state.files)
    }

    /// Lists files and directories that continue a path. Lists hidden ones only after a dot.
    pub fn list_continuations(&self, path: &str, quoted: bool, most: usize) -> Vec<Offer> {
        let (dir, prefix) = path.rsplit_once('/').map_or(("", path), |(dir, prefix)| (dir, prefix));
        let base = if path.starts_with('/') { Path::new("/").join(dir) } else { self.root.join(dir) };
        let Ok(entries) = fs::read_dir(base) else { return Vec::new() };
        let ignored = IgnoreFiles::start_below(&self.root);
        let parent = &path[..path.len() - prefix.len()];
        let mut names: Vec<(String, bool)> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let hidden = name.starts_with('.') && !prefix.starts_with('.');
                if hidden || !name.starts_with(prefix) || !is_typeable(&name) {
                    return None;
                }
                let is_dir = fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir());
                let is_wanted = !prefix.is_empty() || !ignored.has(&entry.path(), is_dir);
                is_wanted.then_some((name, is_dir))
            })
            .collect();
        names.sort();
        names.truncate(most);
        let offers = names.into_iter().map(|(name, is_dir)| {
            if !is_dir {
                return self.file_offer(&format!("{parent}{name}"), quoted);
            }
            // The quotes of a directory stay open, so completion can continue inside it.
            let shown = format!("{name}/");
            Offer { inserted: open_mention(&format!("{parent}{shown}"), quoted), shown }
        });
        offers.collect()
    }

    /// Makes the offer of a file, with an estimate of its tokens.
    fn file_offer(&self, path: &str, quoted: bool) -> Offer {
        let mut inserted = open_mention(path, quoted);
        if inserted.starts_with("@\"") {
            inserted.push('"');
        }
        let size = fs::metadata(self.root.join(path)).map(|metadata| metadata.len());
        let shown = match size {
            Ok(bytes) if bytes > mentions::MOST_BYTES => format!("{path} · too large to attach"),
            Ok(bytes) => format!("{path} · {} tokens", bytes.div_ceil(BYTES_PER_TOKEN)),
            Err(_) => path.to_owned(),
        };
        Offer { shown, inserted }
    }
}

/// An estimate for code and English text.
const BYTES_PER_TOKEN: u64 = 4;

/// Lists the files below `root`, near ones first, except what git ignores. Passes growing parts of the list to `show`.
fn scan_files(root: &Path, mut show: impl FnMut(&[Box<str>])) -> Vec<Box<str>> {
    let ignored = IgnoreFiles::anywhere(Links::Follow);
    let mut files: Vec<Box<str>> = Vec::new();
    let mut dirs = VecDeque::from([(root.to_path_buf(), String::new())]);
    let mut seen = 0;
    let mut next_part = FIRST_PART;
    while let Some((dir, name)) = dirs.pop_front() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        let mut names: Vec<_> = entries.flatten().filter_map(|entry| read_typeable(&entry)).collect();
        names.sort_unstable();
        for (entry, is_dir) in names {
            let path = dir.join(&entry);
            if entry == ".git" || ignored.has(&path, is_dir) {
                continue;
            }
            let whole = format!("{name}{entry}");
            if !is_dir {
                files.push(whole.into());
                if files.len() >= MOST_FILES {
                    return files;
                }
            } else if seen < MOST_DIRS {
                seen += 1;
                dirs.push_back((path, whole + "/"));
            }
        }
        if files.len() >= next_part {
            show(&files);
            next_part *= 2;
        }
    }
    files
}

/// Returns the name of an entry if it can be typed, and whether it is a directory. Links to directories are skipped.
fn read_typeable(entry: &fs::DirEntry) -> Option<(String, bool)> {
    let kind = entry.file_type().ok()?;
    let name = entry.file_name().into_string().ok().filter(|name| is_typeable(name))?;
    let is_file = kind.is_file() || kind.is_symlink() && entry.path().is_file();
    (kind.is_dir() || is_file).then_some((name, kind.is_dir()))
}

/// False for a name that would garble the line, or that cannot be quoted.
fn is_typeable(name: &str) -> bool {
    text::make_visible(name) == name && !name.contains(['"', '\n'])
}

fn is_hidden(path: &str) -> bool {
    path.starts_with('.') || path.contains("/.")
}

/// The mention of a path. Quotes, if it needs them, stay open.
fn open_mention(path: &str, quoted: bool) -> String {
    if quoted || path.contains(char::is_whitespace) { format!("@\"{path}") } else { format!("@{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inserted(finder: &Finder, word: &str) -> Vec<String> {
        finder.offers(word, 10, Duration::from_secs(9)).into_iter().map(|offer| offer.inserted).collect()
    }

    #[test]
    fn paths_complete_after_an_at() {
        let dir = tempfile::tempdir().expect("a directory for the test");
        for (name, content) in [
            ("src/main.rs", "x".repeat(1648)),
            ("src/日本語.rs", String::new()),
            ("src/deep/er/remains.rs", String::new()),
            ("my docs/a b.md", String::new()),
            (".hidden", String::new()),
            (".gitignore", "/built/\n".to_owned()),
            ("built/main.rs", String::new()),
            ("large.bin", "x".repeat(300 * 1024)),
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("created");
            fs::write(path, content).expect("written");
        }
        fs::create_dir(dir.path().join(".git")).expect("created");
        fs::write(dir.path().join(".git/HEAD"), "ref: refs/heads/main\n").expect("written");
        let finder = Finder::new(dir.path());
        for (word, expected) in [
            ("@", vec!["@large.bin", "@\"my docs/", "@src/"]),
            ("@main", vec!["@src/main.rs", "@src/deep/er/remains.rs"]),
            ("@日", vec!["@src/日本語.rs"]),
            ("@\"docs a", vec![]),
            ("@docsa", vec!["@\"my docs/a b.md\""]),
            ("@\"my docs/a", vec!["@\"my docs/a b.md\""]),
            ("@.h", vec!["@.hidden"]),
            ("@built/m", vec!["@built/main.rs"]),
        ] {
            assert_eq!(inserted(&finder, word), expected, "{word:?}");
        }
        let shown = |word: &str| {
            finder.offers(word, 1, Duration::from_secs(9)).into_iter().map(|offer| offer.shown).next()
        };
        assert_eq!(shown("@main").as_deref(), Some("src/main.rs · 412 tokens"));
        assert_eq!(shown("@large").as_deref(), Some("large.bin · too large to attach"));
    }
}
