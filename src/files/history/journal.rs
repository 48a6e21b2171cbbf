//! The journal of a session's changes: one JSON object per line, with a seal (`base/seal.rs`), only ever added to.
//!
//! ```text
//! {"type":"begun","item":4,"call":"run_command"}                             a call is about to change files; with the
//!                                                                            states of those `named` apart from the others
//! {"type":"changed","number":1,"item":4,"call":"run_command","changes":[…]}  what it changed; with `unsure`: it, or a person
//!                                                                            after it was killed
//! {"type":"missed","item":4,"call":"run_command"}                            what it changed is not known
//! {"type":"undoing","records":[1,2],"changes":[…]}                           changes are about to be taken back, and what
//!                                                                            that is going to change
//! {"type":"undone","records":[1,2],"changes":[…]}                            they were taken back, and what that changed
//! {"type":"overwritten","records":[1,2],"changes":[…]}                       what else a redo of them is about to
//!                                                                            overwrite: the next undo brings it back
//! {"type":"redone","records":[1,2],"changes":[…]}                            that undo taken back
//! {"type":"left","paths":[…]}                                                the trial is over, and its changes at these
//!                                                                            paths never reached the workspace
//! ```
//!
//! A line without its seal is damaged, and counts for nothing but a warning: a path in it may be any other one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::seal::{has_seal, seal_line};
use crate::files::private::{make_private_dir, private_file};

use super::state::{PathChange, PathState};

/// The journal beside a log.
pub fn journal_beside(log: &Path) -> PathBuf {
    log.with_extension("files")
}

/// The call behind changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangingCall {
    /// The number of its step in the conversation.
    pub item: u64,
    /// The name of its tool.
    pub call: String,
}

/// A call that began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BegunCall {
    #[serde(flatten)]
    pub by: ChangingCall,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub named: NamedStates,
}

/// What is at the paths that a call names and no look comes by, as [`PathChange::path`] writes them.
pub(super) type NamedStates = BTreeMap<String, PathState>;

/// The changes of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChangeRecord {
    /// Its number among the records of the journal.
    pub number: u64,
    #[serde(flatten)]
    pub by: ChangingCall,
    /// True if they may be a person's, who came after a call that was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    pub changes: Vec<PathChange>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum JournalLine {
    Begun(BegunCall),
    Changed(ChangeRecord),
    Missed(ChangingCall),
    Undoing(UndoneRecords),
    Undone(UndoneRecords),
    Overwritten(UndoneRecords),
    Redone { records: Vec<u64>, changes: Vec<PathChange> },
    Left { paths: BTreeSet<String> },
}

/// An undo that may be taken back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct UndoneRecords {
    /// The numbers of the records that it took back.
    pub records: Vec<u64>,
    pub changes: Vec<PathChange>,
}

/// What a journal says.
#[derive(Debug, Default)]
pub(super) struct FileJournal {
    pub path: PathBuf,
    /// True if what is added stays in memory.
    pub is_read: bool,
    /// All changes, oldest first.
    pub records: Vec<ChangeRecord>,
    /// The numbers of the records that stand.
    standing: BTreeSet<u64>,
    /// The undos that may be taken back, the last at the end.
    pub undone: Vec<UndoneRecords>,
    /// The undo that began and did not end; its records stand.
    pub undoing: Option<UndoneRecords>,
    /// The call that began and whose changes are not recorded.
    pub open: Option<BegunCall>,
    /// The calls whose changes are not known.
    missed: Vec<ChangingCall>,
    /// The numbers of the lines that are damaged.
    pub damaged: Vec<usize>,
    /// True if the last line has no end: the next one must not be joined to it.
    is_torn: bool,
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
        let is_torn = text.last().is_some_and(|byte| *byte != b'\n');
        let mut journal = Self { path: path.to_path_buf(), is_torn, ..Self::default() };
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.is_empty()) {
            match serde_json::from_slice(line).ok().filter(|_| has_seal(line) == Some(true)) {
                Some(line) => journal.take_in(line),
                None => journal.damaged.push(number),
            }
        }
        Ok(journal)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// The disk fails; nothing has changed then.
    pub fn add(&mut self, line: JournalLine) -> io::Result<()> {
        if self.is_read {
            self.take_in(line);
            return Ok(());
        }
        if let Some(dir) = self.path.parent() {
            make_private_dir(dir)?;
        }
        let mut text = serde_json::to_vec(&line)?;
        seal_line(&mut text, 0);
        text.push(b'\n');
        if self.is_torn {
            text.insert(0, b'\n');
        }
        let written = private_file().append(true).create(true).open(&self.path)?.write_all(&text);
        // Half a line may be there.
        self.is_torn = written.is_err();
        written?;
        self.take_in(line);
        Ok(())
    }

    /// Writes down what a call changed; `unsure`, if it may have been a person.
    ///
    /// # Errors
    /// The disk fails; nothing has changed then.
    pub fn record(&mut self, by: ChangingCall, changes: Vec<PathChange>, unsure: bool) -> io::Result<()> {
        // A damaged line may hold one of the numbers before it.
        let number = self.records.last().map_or(0, |record| record.number) + 1 + self.damaged.len() as u64;
        self.add(JournalLine::Changed(ChangeRecord { number, by, unsure, changes }))
    }

    /// The records of the step `from` and everything after it that stand.
    pub fn list_since(&self, from: u64) -> impl Iterator<Item = &ChangeRecord> {
        self.records.iter().filter(move |record| record.by.item >= from && self.standing.contains(&record.number))
    }

    /// Of the step `from` and everything after it, the paths of the changes that may be a person's.
    pub fn list_unsure(&self, from: u64) -> BTreeSet<&str> {
        let unsure = self.list_since(from).filter(|record| record.unsure);
        unsure.flat_map(|record| &record.changes).map(|change| change.path.as_str()).collect()
    }

    /// The undo that a redo takes back.
    pub fn last_undo(&self) -> Option<&UndoneRecords> {
        self.undoing.as_ref().or(self.undone.last())
    }

    /// A sentence for each gap in what is known of the step `from` and everything after it.
    pub fn list_gaps(&self, from: u64) -> Vec<String> {
        let missed = self.missed.iter().filter(|by| by.item >= from);
        let missed = missed.map(|by| format!("what {} changed in step {} is not known", by.call, by.item));
        let name = self.path.display();
        let damaged = self.damaged.iter().map(|line| format!("{name}:{line}: this line is damaged"));
        missed.chain(damaged).collect()
    }

    fn take_in(&mut self, line: JournalLine) {
        match line {
            JournalLine::Begun(call) => self.open = Some(call),
            JournalLine::Missed(call) => {
                self.open = None;
                self.missed.push(call);
            }
            JournalLine::Changed(record) => {
                self.open = None;
                if !record.changes.is_empty() {
                    self.standing.insert(record.number);
                    self.records.push(record);
                    self.undone.clear();
                    self.undoing = None;
                }
            }
            JournalLine::Undoing(begun) => self.undoing = Some(begun),
            JournalLine::Undone(undone) => {
                self.undoing = None;
                self.standing.retain(|number| !undone.records.contains(number));
                self.undone.push(undone);
            }
            JournalLine::Overwritten(UndoneRecords { records, changes }) => {
                for overwritten in changes {
                    let meant = self.records.iter_mut().filter(|record| records.contains(&record.number));
                    let first =
                        meant.flat_map(|record| &mut record.changes).find(|it| it.path == overwritten.path);
                    if let Some(first) = first {
                        first.before = overwritten.before;
                    }
                }
            }
            JournalLine::Redone { records, .. } => {
                self.undoing = None;
                self.undone.retain(|undone| undone.records != records);
                self.standing.extend(records);
            }
            JournalLine::Left { paths } => {
                for record in &mut self.records {
                    record.changes.retain(|change| !paths.contains(&change.path));
                }
                self.undone.clear();
                self.undoing = None;
            }
        }
    }
}
