//! The journal of a session's changes: one JSON object per line, only ever added to.
//!
//! ```text
//! {"begun":{"item":4,"call":"run_command"}}                   a call is about to change files
//! {"changed":{"item":4,"call":"run_command","changes":[…]}}   what it changed
//! {"undone":{"records":[0,1],"changes":[…]}}                  changes taken back, and what that changed
//! {"redone":{"changes":[…]}}                                  the last undo taken back
//! ```

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::private::{make_private_dir, private_file};

use super::state::PathChange;

/// The call behind changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangingCall {
    /// The number of its step in the conversation.
    pub item: u64,
    /// The name of its tool.
    pub call: String,
}

/// The changes of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChangeRecord {
    #[serde(flatten)]
    pub by: ChangingCall,
    pub changes: Vec<PathChange>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalLine {
    Begun(ChangingCall),
    Changed(ChangeRecord),
    Undone { records: Vec<usize>, changes: Vec<PathChange> },
    Redone { changes: Vec<PathChange> },
}

/// What a journal says.
#[derive(Debug, Default)]
pub(super) struct FileJournal {
    path: PathBuf,
    /// All changes, oldest first.
    pub records: Vec<ChangeRecord>,
    /// The numbers of the records that stand, in order.
    pub standing: Vec<usize>,
    /// The undos that may be taken back, the last at the end.
    pub undone: Vec<(Vec<usize>, Vec<PathChange>)>,
    /// The call that began and whose changes are not recorded.
    pub open: Option<ChangingCall>,
    /// The numbers of the lines that could not be read.
    pub damaged: Vec<usize>,
}

impl FileJournal {
    /// Reads a journal; an empty one if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let text = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            text => text?,
        };
        let mut journal = Self { path: path.to_path_buf(), ..Self::default() };
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(line) => journal.take_in(line),
                Err(_) => journal.damaged.push(number),
            }
        }
        Ok(journal)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// The disk fails; nothing has changed then.
    pub fn add(&mut self, line: JournalLine) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            make_private_dir(dir)?;
        }
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        private_file().append(true).create(true).open(&self.path)?.write_all(&text)?;
        self.take_in(line);
        Ok(())
    }

    /// The records of the step `from` and everything after it that stand.
    pub fn list_since(&self, from: u64) -> Vec<usize> {
        self.standing.iter().copied().filter(|at| self.records[*at].by.item >= from).collect()
    }

    fn take_in(&mut self, line: JournalLine) {
        match line {
            JournalLine::Begun(call) => self.open = Some(call),
            JournalLine::Changed(record) => {
                self.open = None;
                if !record.changes.is_empty() {
                    self.standing.push(self.records.len());
                    self.records.push(record);
                    self.undone.clear();
                }
            }
            JournalLine::Undone { records, changes } => {
                self.standing.retain(|at| !records.contains(at));
                self.undone.push((records, changes));
            }
            JournalLine::Redone { .. } => {
                if let Some((records, _)) = self.undone.pop() {
                    self.standing.extend(records.into_iter().filter(|at| *at < self.records.len()));
                    self.standing.sort_unstable();
                }
            }
        }
    }
}
