//! The input history of a workspace, shared by all of its chats.
//!
//! The file has one entry per line, as a JSON string. Chats append under a lock, and read the entries of other chats
//! before each line. A line that cannot be read is skipped. Once the file has twice the entries to keep, it is
//! rewritten under the same lock.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::base::digest::hash_sha256;
use crate::files::private::{make_private_dir, private_file};
use crate::files::regular::{self, Links};

/// The number of entries that are kept.
const MOST_ENTRIES: usize = 1000;
/// The longest entry on disk, in bytes; a longer one is kept by this chat only.
const LONGEST_ENTRY: usize = 16 * 1024;
/// The size in bytes above which the file is rewritten.
const LARGEST_FILE: usize = 4 * 1024 * 1024;
/// The size in bytes above which a file cannot be a history, and is not read.
const NO_HISTORY: u64 = 64 * 1024 * 1024;

/// The entries, oldest first, without duplicates.
#[derive(Debug, Default)]
pub struct SharedHistory {
    /// The file; `None` if nothing is kept on disk.
    path: Option<PathBuf>,
    entries: Vec<String>,
    /// Entries that are not on disk.
    own: Vec<String>,
    /// The state of the file when it was last read.
    read: Option<Stamp>,
}

/// The size of a file and when it was changed, compared to detect changes.
type Stamp = (u64, Option<SystemTime>);

/// Returns the path of a workspace's history in the state directory.
pub fn choose_file(state: &Path, workspace: &Path) -> PathBuf {
    let name = hash_sha256([workspace.as_os_str().as_encoded_bytes()]);
    state.join("histories").join(format!("{}.jsonl", &name[..16]))
}

impl SharedHistory {
    /// Opens the history at `path`. If it cannot be written, the history is kept in memory.
    pub fn open(path: Option<PathBuf>) -> Self {
        let path = path.filter(|path| path.parent().is_none_or(|dir| make_private_dir(dir).is_ok()));
        let mut history = Self { path, ..Self::default() };
        history.refresh();
        history
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Reads entries that other chats added. Returns true if there is anything new.
    pub fn refresh(&mut self) -> bool {
        let Some(path) = &self.path else { return false };
        let stamp = read_stamp(path);
        if stamp.is_none() || stamp == self.read {
            return false;
        }
        self.read = stamp;
        let bytes = regular::read_bytes(path, Links::Refuse, NO_HISTORY).ok().flatten().unwrap_or_default();
        self.entries = keep_latest(parse_entries(&bytes).chain(self.own.iter().cloned()));
        true
    }

    /// Adds an entry, unless it is blank.
    pub fn add(&mut self, entry: &str) {
        if entry.trim().is_empty() {
            return;
        }
        self.entries = keep_latest(std::mem::take(&mut self.entries).into_iter().chain([entry.to_owned()]));
        // A failure to write the history must not stop the chat.
        let is_kept = entry.len() <= LONGEST_ENTRY
            && self.path.as_ref().is_some_and(|path| append_entry(path, entry).is_ok());
        if !is_kept {
            self.own.push(entry.to_owned());
        }
    }
}

fn read_stamp(path: &Path) -> Option<Stamp> {
    let data = fs::metadata(path).ok()?;
    Some((data.len(), data.modified().ok()))
}

fn append_entry(path: &Path, entry: &str) -> io::Result<()> {
    let _lock = lock_histories(path)?;
    let mut file = private_file().create(true).read(true).append(true).open(path)?;
    let mut line = serde_json::to_string(entry)?;
    line.push('\n');
    let length = file.seek(SeekFrom::End(0))?;
    let mut last = [b'\n'];
    if length > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    // A line that was never finished must not damage this one.
    if last != [b'\n'] {
        line.insert(0, '\n');
    }
    file.write_all(line.as_bytes())?;
    drop(file);
    shorten_file(path)
}

/// Rewrites the file if it has grown too long. The caller holds the lock.
fn shorten_file(path: &Path) -> io::Result<()> {
    let bytes = regular::read_bytes(path, Links::Refuse, NO_HISTORY).ok().flatten().unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n').count();
    if lines <= 2 * MOST_ENTRIES && bytes.len() <= LARGEST_FILE {
        return Ok(());
    }
    let mut kept = Vec::new();
    for entry in keep_latest(parse_entries(&bytes)).into_iter().rev() {
        let mut line = serde_json::to_string(&entry)?;
        line.push('\n');
        if kept.iter().map(String::len).sum::<usize>() + line.len() > LARGEST_FILE / 2 {
            break;
        }
        kept.push(line);
    }
    kept.reverse();
    // The new file is readable only by its owner, as temporary files are.
    regular::replace_file(path, kept.concat().as_bytes())
}

/// Waits for the lock of all histories in the directory. Dropping the file releases it.
fn lock_histories(path: &Path) -> io::Result<File> {
    let file = private_file().create(true).truncate(false).write(true).open(path.with_file_name("lock"))?;
    file.lock()?;
    Ok(file)
}

fn parse_entries(bytes: &[u8]) -> impl Iterator<Item = String> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// Keeps the last entries; of equal ones, only the latest.
fn keep_latest(entries: impl Iterator<Item = String>) -> Vec<String> {
    let entries: Vec<String> = entries.collect();
    let mut seen = HashSet::new();
    let places: Vec<usize> =
        (0..entries.len()).rev().filter(|at| seen.insert(entries[*at].as_str())).take(MOST_ENTRIES).collect();
    drop(seen);
    let mut kept: Vec<Option<String>> = entries.into_iter().map(Some).collect();
    places.into_iter().rev().filter_map(|at| kept[at].take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chats_of_a_workspace_share_what_they_enter() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = choose_file(dir.path(), Path::new("/work"));
        assert_ne!(path, choose_file(dir.path(), Path::new("/other")));
        let (mut one, mut two) =
            (SharedHistory::open(Some(path.clone())), SharedHistory::open(Some(path.clone())));
        one.add("first");
        two.add("second\nline");
        one.add("third");
        two.add("first");
        two.add("  ");
        for chat in [&mut one, &mut two] {
            chat.refresh();
            assert_eq!(chat.entries(), ["second\nline", "third", "first"]);
        }
        assert!(!one.refresh(), "nothing new");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().expect("a directory"))), (0o600, 0o700));
        }
    }

    #[test]
    fn a_damaged_line_harms_no_other() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = choose_file(dir.path(), Path::new("/work"));
        SharedHistory::open(Some(path.clone())).add("one");
        let mut bytes = fs::read(&path).expect("written");
        bytes.extend(b"\xff\xfe{\n\"two\"\n17\n\"torn");
        fs::write(&path, bytes).expect("damaged");
        let mut history = SharedHistory::open(Some(path.clone()));
        history.add("three");
        assert_eq!(SharedHistory::open(Some(path)).entries(), ["one", "two", "three"]);
    }

    #[test]
    fn a_history_is_bounded_in_memory_and_on_disk() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = choose_file(dir.path(), Path::new("/work"));
        let mut history = SharedHistory::open(Some(path.clone()));
        let lines: Vec<String> = (0..2 * MOST_ENTRIES).map(|number| format!("\"entry {number}\"\n")).collect();
        fs::write(&path, lines.concat()).expect("written");
        history.refresh();
        assert_eq!(history.entries().len(), MOST_ENTRIES);
        history.add("the last");
        let text = fs::read_to_string(&path).expect("it is there");
        assert_eq!(text.lines().count(), MOST_ENTRIES);
        assert!(text.starts_with("\"entry 1001\"\n") && text.ends_with("\"the last\"\n"), "{}", text.len());
        let long = "x".repeat(LONGEST_ENTRY + 1);
        history.add(&long);
        assert!(history.refresh() && history.entries().last() == Some(&long), "this chat knows it");
        assert_ne!(SharedHistory::open(Some(path)).entries().last(), Some(&long), "others do not");
    }

    #[test]
    fn without_a_file_it_is_kept_in_memory() {
        let mut history = SharedHistory::open(Some(PathBuf::from("/proc/none/history")));
        history.add("one");
        assert!(!history.refresh());
        assert_eq!(history.entries(), ["one"]);
    }
}
