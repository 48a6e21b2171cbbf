//! What is there already, and what is written.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use super::tree::digest_tree;
use super::{EntryPlan, ImportEntry, SettingsList};
use crate::files::disk::{CopyWatch, Dir, FileFacts, copy_tree};
use crate::files::regular::{LONGEST_FILE, Links, read_bytes, replace_file};

/// The file with the lists.
const SETTINGS: &str = "agent.yaml";
/// The name of a copy that is not whole yet.
pub(super) const NEW: &str = ".new";
/// What a skill may have, in bytes.
const LARGEST_SKILL: u64 = 64 << 20;

/// How an entry stands against what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    New,
    /// It is there already.
    Same,
    /// Something else is there, which stays.
    Differs,
    /// Nothing is to be done.
    Nothing,
}

/// Leaves out entries that another one writes already: two agents that know the same server.
pub(super) fn drop_repeated(entries: &mut [ImportEntry]) {
    for at in 0..entries.len() {
        let (before, rest) = entries.split_at_mut(at);
        let entry = &mut rest[0];
        let EntryPlan::Write(to, text) = &entry.plan else { continue };
        let other = before.iter().find_map(|other| match &other.plan {
            EntryPlan::Write(taken, written) if taken == to => Some((other.agent, written == text)),
            _ => None,
        });
        if let Some((agent, is_same)) = other {
            entry.note = if is_same {
                format!("as that of {}", agent.word())
            } else {
                format!("{} has that of {}", to.display(), agent.word())
            };
            entry.plan = if is_same { EntryPlan::Used } else { EntryPlan::Left };
        }
    }
}

/// How each entry stands against the configuration in `dir`. The lists of all entries are one file.
pub fn settle_entries(entries: &[ImportEntry], dir: &Path) -> Vec<EntryState> {
    let read = |to: &Path| read_bytes(&dir.join(to), Links::Follow, LONGEST_FILE).ok().flatten();
    let settings = read(Path::new(SETTINGS)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let state = |entry: &ImportEntry| match &entry.plan {
        EntryPlan::Used | EntryPlan::Left => EntryState::Nothing,
        EntryPlan::Write(to, text) => match read(to) {
            None if dir.join(to).symlink_metadata().is_ok() => EntryState::Differs,
            None => EntryState::New,
            Some(there) if there == text.as_bytes() => EntryState::Same,
            Some(_) => EntryState::Differs,
        },
        EntryPlan::Copy(to, _) if dir.join(to).symlink_metadata().is_err() => EntryState::New,
        EntryPlan::Copy(to, from) => match (digest_tree(from), digest_tree(&dir.join(to))) {
            (Ok(theirs), Ok(own)) if theirs == own => EntryState::Same,
            _ => EntryState::Differs,
        },
        EntryPlan::List(_, lines) => match &settings {
            None => EntryState::New,
            Some(text) if lines.iter().all(|line| text.contains(&write_line(line))) => EntryState::Same,
            Some(_) => EntryState::Differs,
        },
    };
    entries.iter().map(state).collect()
}

fn write_line(line: &str) -> String {
    format!("    - {line}\n")
}

/// Writes an entry that is new. The first of a list writes the lists of all.
///
/// # Errors
/// A sentence: the disk fails, or a skill is too large.
pub fn write_entry(entry: &ImportEntry, all: &[&ImportEntry], dir: &Path) -> Result<(), String> {
    let failed = |to: &Path, error: io::Error| format!("{}: {error}", dir.join(to).display());
    match &entry.plan {
        EntryPlan::Used | EntryPlan::Left => Ok(()),
        EntryPlan::Write(to, text) => {
            replace_file(&dir.join(to), text.as_bytes()).map_err(|error| failed(to, error))
        }
        EntryPlan::List(..) => {
            let to = Path::new(SETTINGS);
            if dir.join(to).exists() {
                return Ok(());
            }
            let text: String = [SettingsList::Rules, SettingsList::Directories]
                .into_iter()
                .map(|wanted| {
                    let lines = all.iter().filter_map(|entry| match &entry.plan {
                        EntryPlan::List(list, lines) if *list == wanted => Some(lines),
                        _ => None,
                    });
                    let lines: String = lines.flatten().map(|line| write_line(line)).collect();
                    let [above, key] = wanted.keys();
                    if lines.is_empty() { lines } else { format!("{above}:\n  {key}:\n{lines}") }
                })
                .collect();
            replace_file(&dir.join(to), text.as_bytes()).map_err(|error| failed(to, error))
        }
        EntryPlan::Copy(to, from) => {
            let (whole, copy) = (dir.join(to), dir.join(to).with_file_name(NEW));
            let copied = copy_dir(from, &copy).and_then(|()| fs::rename(&copy, &whole));
            copied.map_err(|error| failed(to, error))
        }
    }
}

/// Copies a directory, in place of what an earlier try may have left.
pub(super) fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    remove_dir(to)?;
    let from = crate::files::canonicalize(from)?;
    let (Some(above), Some(name), Some(parent), Some(new)) =
        (from.parent(), from.file_name(), to.parent(), to.file_name())
    else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    fs::create_dir_all(parent)?;
    let parent = Dir::open(&crate::files::canonicalize(parent)?)?;
    let copied = copy_tree(&Dir::open(above)?, name, &parent, OsStr::new(new), &mut SkillCopy { bytes: 0 });
    if copied.is_err() {
        let _ = fs::remove_dir_all(to);
    }
    copied
}

/// Removes what is there, whatever it is.
pub(super) fn remove_dir(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    }
}

struct SkillCopy {
    bytes: u64,
}

impl CopyWatch for SkillCopy {
    fn admit(&mut self, _: &Path, facts: &FileFacts) -> io::Result<bool> {
        self.bytes += facts.len;
        if self.bytes > LARGEST_SKILL { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(true) }
    }

    fn miss(&mut self, _: &Path, error: io::Error) -> io::Result<()> {
        Err(error)
    }
}
