//! The files that the calls of a turn have named, and whether they are still as they were: the evidence that a command
//! changed something. What a call named is looked at after every later call, and nothing else is.
//!
//! Only the state counts, never the time of a change: a file that is written with the same content, or changed back,
//! has a state that it had before. A hash of a state ignores clocks and the order of lines.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files::regular::{self, Links};
use crate::files::workspace::{Resolved, Workspace};

use super::normal_form::{hash_value, omit_clocks};

/// The most files and directories that are watched: those that were named last.
const MOST_FILES: usize = 64;
/// The most words of a command that are taken for names.
const MOST_WORDS: usize = 64;
/// The longest word that is taken for a name, in bytes.
const LONGEST_NAME: usize = 255;
/// The most directories in which the words of a command are looked up.
const MOST_DIRS: usize = 4;
/// The most bytes that are read at the head and at the tail of a file.
const MOST_BYTES: u64 = 128 * 1024;
/// The most entries of a directory that are read.
const MOST_ENTRIES: usize = 2000;

/// The files and directories that were named, oldest first.
#[derive(Debug, Default)]
pub(in crate::agent) struct WatchedFiles {
    files: VecDeque<WatchedFile>,
}

#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    /// Only the size of a file outside the workspace is looked at, never what it holds.
    is_inside: bool,
    /// The stamp at the last look; `None` before the first.
    stamp: Option<FileStamp>,
}

/// The cheap signs that a file is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileStamp {
    Missing,
    Directory { modified: Option<SystemTime> },
    File { modified: Option<SystemTime>, length: u64 },
}

impl WatchedFiles {
    /// Watches what a tool names as its path, if it exists.
    pub fn watch_path(&mut self, workspace: &Workspace, written: &str) {
        self.watch(workspace.resolve(written));
    }

    /// Watches what the words of a command name in its directory, or in one that a word before them names
    /// (`cd sub && cat a`).
    pub fn watch_words(&mut self, workspace: &Workspace, command: &str, workdir: Option<&str>) {
        let mut dirs = vec![workspace.resolve(workdir.unwrap_or(".")).path];
        let is_separator = |c: char| c.is_whitespace() || "\"'`;|&<>(){}=,".contains(c);
        let words = command.split(is_separator).filter(|word| may_be_name(word)).take(MOST_WORDS);
        for word in words {
            let found = dirs.iter().map(|dir| workspace.resolve_path(&dir.join(word)));
            let found: Vec<Resolved> = found.filter(|found| found.path.exists()).collect();
            for resolved in found {
                if dirs.len() < MOST_DIRS && resolved.path.is_dir() && !dirs.contains(&resolved.path) {
                    dirs.push(resolved.path.clone());
                }
                self.watch(resolved);
            }
        }
    }

    fn watch(&mut self, Resolved { path, inside }: Resolved) {
        let known = self.files.iter().position(|file| file.path == path);
        let file = known.and_then(|at| self.files.remove(at));
        if file.is_none() && FileStamp::read(&path) == FileStamp::Missing {
            return;
        }
        self.files.push_back(file.unwrap_or(WatchedFile { path, is_inside: inside, stamp: None }));
        if self.files.len() > MOST_FILES {
            self.files.pop_front();
        }
    }

    /// Looks at all files. Returns a hash of the path and the state of each that is not as it was at the last look.
    pub fn take_changes(&mut self) -> Vec<u64> {
        let changed = |file: &mut WatchedFile| {
            let stamp = FileStamp::read(&file.path);
            let is_same = file.stamp.replace(stamp) == Some(stamp);
            (!is_same).then(|| hash_value(&(&file.path, file.state(stamp).unwrap_or_default())))
        };
        self.files.iter_mut().filter_map(changed).collect()
    }
}

/// True if a word of a command could name a file: no flag, no pattern, nothing that the shell replaces.
fn may_be_name(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= LONGEST_NAME
        && !word.starts_with('-')
        && !word.contains(['$', '*', '?', '~', '\0'])
}

impl FileStamp {
    fn read(path: &Path) -> Self {
        match path.symlink_metadata() {
            Ok(facts) if facts.is_file() => Self::File { modified: facts.modified().ok(), length: facts.len() },
            Ok(facts) if facts.is_dir() => Self::Directory { modified: facts.modified().ok() },
            _ => Self::Missing,
        }
    }
}

impl WatchedFile {
    /// A hash of what it holds.
    fn state(&self, stamp: FileStamp) -> io::Result<u64> {
        match stamp {
            FileStamp::Missing => Ok(0),
            FileStamp::File { length, .. } if !self.is_inside => Ok(length),
            FileStamp::File { .. } => {
                let opened = regular::open_file(&self.path, Links::Refuse).map_err(io::Error::other)?;
                opened.map_or(Ok(0), |(file, length)| state_of_file(file, length))
            }
            FileStamp::Directory { .. } if !self.is_inside => Ok(1),
            FileStamp::Directory { .. } => {
                let entries = self.path.read_dir()?.take(MOST_ENTRIES).flatten();
                let names = entries.map(|entry| hash_value(&entry.file_name()));
                Ok(names.fold(1, u64::wrapping_add))
            }
        }
    }
}

/// A hash of the lines of a file, in any order; of a long one, those of its head and its tail, and its length.
fn state_of_file(mut file: File, length: u64) -> io::Result<u64> {
    let mut bytes = Vec::new();
    let is_long = length > 2 * MOST_BYTES;
    if is_long {
        file.by_ref().take(MOST_BYTES).read_to_end(&mut bytes)?;
        file.seek(SeekFrom::Start(length - MOST_BYTES))?;
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    } else {
        file.take(2 * MOST_BYTES).read_to_end(&mut bytes)?;
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(|line| hash_value(&omit_clocks(line)));
    Ok(lines.fold(if is_long { length } else { 2 }, u64::wrapping_add))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// True if the last command changed something into a state that was not returned before.
    fn watched(command: &str, changes: &[(&str, &str)]) -> Vec<bool> {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("sub")).expect("a directory");
        for name in ["q", "sub/q"] {
            fs::write(dir.path().join(name), "one\ntwo at 12:00:01\n").expect("it is writable");
        }
        let workspace = Workspace::open(dir.path()).expect("it exists");
        let mut files = WatchedFiles::default();
        files.watch_words(&workspace, command, None);
        let mut seen = files.take_changes();
        let is_new = |(name, content): &(&str, &str)| {
            let path = dir.path().join(name);
            if content.is_empty() { fs::remove_file(path) } else { fs::write(path, content) }
                .expect("it is writable");
            let now = files.take_changes();
            let is_new = now.iter().any(|state| !seen.contains(state));
            seen.extend(now);
            is_new
        };
        changes.iter().map(is_new).collect()
    }

    #[test]
    fn a_file_that_a_command_names_is_watched() {
        let grown = "one\ntwo at 12:00:01\nthree\n";
        for command in
            ["cat q", "sed -i 1d 'q'", "echo x >>q", "cd sub && head -1 q; true", "tool --in=q", "(cat ./q)"]
        {
            assert_eq!(
                watched(command, &[(if command.contains("sub") { "sub/q" } else { "q" }, grown)]),
                [true],
                "{command}"
            );
        }
        for command in ["cat other", "cat $q", "cat q*", "-q"] {
            assert_eq!(watched(command, &[("q", grown)]), [false], "{command}");
        }
    }

    #[test]
    fn a_state_is_new_only_once_and_clocks_are_no_part_of_it() {
        let table = [
            ("one\ntwo at 12:34:56\nmore", true),
            ("one\ntwo at 12:59:59\nmore", false),
            ("two at 12:59:59\none\nmore", false),
            ("one\ntwo at 12:00:01", false),
            ("", true),
            ("one\ntwo at 12:00:01\nmore", false),
            ("one 1", true),
            ("one 12", true),
        ];
        let changes: Vec<(&str, &str)> = table.iter().map(|(content, _)| ("q", *content)).collect();
        let expected: Vec<bool> = table.iter().map(|(_, is_new)| *is_new).collect();
        assert_eq!(watched("cat q", &changes), expected);
    }

    #[test]
    fn the_entries_of_a_directory_are_watched_and_a_long_file_by_its_length() {
        assert_eq!(watched("ls sub", &[("sub/new", "x"), ("sub/new", "y"), ("other", "x")]), [true, false, false]);
        let long = "x".repeat(300 * 1024);
        let longer = format!("{long}x");
        assert_eq!(watched("cat q", &[("q", &long), ("q", &longer), ("q", &long)]), [true, true, false]);
    }

    #[test]
    fn only_the_files_named_last_are_watched() {
        let dir = tempfile::tempdir().expect("a directory");
        let workspace = Workspace::open(dir.path()).expect("it exists");
        let mut files = WatchedFiles::default();
        for n in 0..MOST_FILES + 10 {
            fs::write(dir.path().join(format!("f{n}")), "x").expect("it is writable");
            files.watch_path(&workspace, &format!("f{n}"));
        }
        assert_eq!((files.files.len(), files.take_changes().len()), (MOST_FILES, MOST_FILES));
        files.watch_path(&workspace, "f70");
        assert_eq!(files.take_changes(), Vec::<u64>::new());
    }
}
