//! What a conversation changed in its workspace, by whatever means, so that it can be undone exactly.
//!
//! Before the first call that may change files, the workspace is looked through and its contents are kept; after each
//! such call it is looked through again, and what differs goes into the journal of the session. So a change by a command
//! is known like one by a tool. `.git` and what is ignored are left out; nothing here reads or writes a repository. The files
//! that a tool names are looked at wherever they are.
//!
//! Beside the logs of a workspace lie `files/` (former contents, and what was seen last, shared by its sessions) and for
//! each session `ID.files`, its journal.
//!
//! Invariants:
//! - A content is kept before the change that replaced it is written down, and a change before its call is answered.
//! - What changed otherwise since is overwritten only by force, and is kept then: an undo can be undone, also one that was
//!   stopped midway.
//! - Paths in the workspace are opened by handles that follow no link.

mod state;
mod content;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(not(target_os = "linux"))]
mod no_watch;
mod excluded;
mod readers;
mod scan;
mod view;
mod journal;
mod seen;
mod tracker;
mod restore;
mod transfer;
#[cfg(all(test, unix))]
mod damage;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journal::{FileJournal, JournalLine, UndoneRecords};
use restore::{apply_changes, join_changes, plan_reversal};
use scan::ScanError;
use tracker::Tracker;

use crate::files::file_name;

pub use content::contents_beside;
pub use excluded::AppearedPaths;
pub use journal::{ChangingCall, journal_beside};
pub use restore::RestorePlan;
pub use state::{PathChange, PathState};

/// The history of the files of one session.
pub struct FileHistory {
    /// The workspace.
    pub root: PathBuf,
    /// The session's log.
    log: PathBuf,
    /// True if nothing is written down: the session may be another process's.
    is_read: bool,
    stage: Mutex<HistoryStage>,
    /// The number of calls that run.
    running: AtomicUsize,
    /// True if it was said that changes cannot be undone.
    told: AtomicBool,
}

/// A call that may change files and runs. Dropping it leaves its changes to be found by the next look.
pub struct RunningChange {
    history: Arc<FileHistory>,
    by: ChangingCall,
}

enum HistoryStage {
    /// Nothing was looked at by this process.
    Fresh,
    Ready(Box<Tracker>),
    /// Changes are not followed, for this reason.
    Off(String),
}

/// What an undo or a redo did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    pub made: Vec<PathChange>,
    /// A sentence for each directory that stays for what is not undone in it.
    pub left: Vec<String>,
    /// A sentence for each path that could not be put back.
    pub failed: Vec<String>,
}

/// One of the two ways through a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Back to before the step with this number.
    Undo(u64),
    /// Forward, over the last undo.
    Redo,
}

impl FileHistory {
    /// The history of the session with this log, of which nothing is read yet, and nothing written if it only `is_read`.
    pub fn new(root: &Path, log: &Path, is_read: bool) -> Self {
        Self {
            root: root.to_path_buf(),
            log: log.to_path_buf(),
            is_read,
            stage: Mutex::new(HistoryStage::Fresh),
            running: AtomicUsize::new(0),
            told: AtomicBool::new(false),
        }
    }

    /// Changes are not followed, for this reason.
    pub fn stop(&self, why: String) {
        *self.lock() = HistoryStage::Off(why);
    }

    /// True if changes can be undone. The first call waits for the look at the workspace.
    pub fn is_followed(&self) -> bool {
        matches!(*self.stage(), HistoryStage::Ready(_))
    }

    /// Begins to look through the workspace, so that the first call need not wait for it.
    pub fn prepare(self: &Arc<Self>) {
        let is_fresh = self.stage.try_lock().is_ok_and(|stage| matches!(*stage, HistoryStage::Fresh));
        if is_fresh {
            let history = Arc::clone(self);
            std::thread::spawn(move || drop(history.stage()));
        }
    }

    /// Why changes cannot be undone, if that is so; said once.
    pub fn take_warning(&self) -> Option<String> {
        let HistoryStage::Off(why) = &*self.lock() else { return None };
        (!self.told.swap(true, Ordering::Relaxed)).then(|| why.clone())
    }

    /// Called before a call that may change files, and names these, by their absolute paths.
    pub fn begin_call(self: &Arc<Self>, by: ChangingCall, named: &[PathBuf]) -> RunningChange {
        let is_alone = self.running.fetch_add(1, Ordering::Relaxed) == 0;
        let mut stage = self.stage();
        if let HistoryStage::Ready(tracker) = &mut *stage
            && let Err(error) = tracker.begin_call(&by, named, is_alone, &self.log)
        {
            *stage = HistoryStage::Off(describe_error(&error));
        }
        if matches!(*stage, HistoryStage::Off(_)) {
            note_missed(&self.log, by.clone());
        }
        drop(stage);
        RunningChange { history: Arc::clone(self), by }
    }

    /// Called after a turn: writes down what an interrupted call changed, and commands in the background since the last call.
    /// What changes from here on may be a person's work, and is nobody's. Returns what appeared, as [`RunningChange::end`]
    /// does; `None` if changes are not followed.
    pub fn end_turn(&self) -> Option<AppearedPaths> {
        let mut stage = self.lock();
        let HistoryStage::Ready(tracker) = &mut *stage else { return None };
        let settled = tracker.settle().and_then(|()| tracker.take_left());
        let appeared = std::mem::take(&mut tracker.view.appeared);
        if let Err(error) = settled {
            *stage = HistoryStage::Off(describe_error(&error));
        }
        Some(appeared)
    }

    /// What an undo or a redo would do; `None` if there is nothing.
    ///
    /// # Errors
    /// A sentence: changes were not followed, or the store fails.
    pub fn plan(&self, direction: Direction) -> Result<Option<RestorePlan>, String> {
        let mut stage = self.stage();
        let tracker = stage.tracker()?;
        tracker.settle().map_err(|error| describe_error(&error))?;
        let Tracker { store, journal, .. } = tracker;
        let (changes, gaps) = match direction {
            Direction::Undo(from) => {
                (journal.list_since(from).map(|record| &record.changes).collect(), journal.list_gaps(from))
            }
            // What was undone and what is not known of it may stand in a damaged line.
            Direction::Redo => {
                (Vec::from_iter(journal.last_undo().map(|undone| &undone.changes)), journal.list_gaps(u64::MAX))
            }
        };
        if changes.is_empty() && gaps.is_empty() {
            return Ok(None);
        }
        let planned = plan_reversal(&self.root, changes.into_iter().flatten(), store);
        let planned = planned.map_err(|error| format!("former contents cannot be read: {error}"))?;
        let unsure = match direction {
            Direction::Undo(from) => journal.list_unsure(from),
            Direction::Redo => BTreeSet::new(),
        };
        let unsure =
            planned.changes.iter().map(|change| &change.path).filter(|path| unsure.contains(path.as_str()));
        Ok(Some(RestorePlan { unsure: unsure.cloned().collect(), gaps, ..planned }))
    }

    /// Makes the changes of a plan, and writes them down. One that fails in part is like one that was stopped: the same again
    /// does the rest.
    ///
    /// # Errors
    /// A sentence: the journal cannot be written.
    pub fn carry_out(&self, direction: Direction, plan: &RestorePlan) -> Result<Restored, String> {
        let mut stage = self.stage();
        let tracker = stage.tracker()?;
        let (line, restored) = match direction {
            Direction::Undo(from) => {
                let records: Vec<u64> = tracker.journal.list_since(from).map(|record| record.number).collect();
                let begun = tracker.list_begun().map_err(|error| describe_error(&error))?;
                // Should this be stopped, a redo knows what it did and overwrote.
                let changes = join_changes(begun.clone(), &plan.changes);
                let undoing = JournalLine::Undoing(UndoneRecords { records: records.clone(), changes });
                tracker.journal.add(undoing).map_err(|error| describe_error(&error.into()))?;
                let restored = apply_changes(&self.root, &plan.changes, &tracker.store);
                let changes = join_changes(begun, &restored.made);
                (JournalLine::Undone(UndoneRecords { records, changes }), restored)
            }
            Direction::Redo => {
                let records = tracker.journal.last_undo().map(|undone| undone.records.clone()).unwrap_or_default();
                let mut changes = plan.changes.clone();
                changes.retain(|change| plan.changed_since.contains(&change.path));
                if !changes.is_empty() {
                    let line = JournalLine::Overwritten(UndoneRecords { records: records.clone(), changes });
                    tracker.journal.add(line).map_err(|error| describe_error(&error.into()))?;
                }
                let restored = apply_changes(&self.root, &plan.changes, &tracker.store);
                (JournalLine::Redone { records, changes: restored.made.clone() }, restored)
            }
        };
        let written = if restored.failed.is_empty() { tracker.journal.add(line) } else { Ok(()) };
        let written = written.map_err(ScanError::from);
        written.and_then(|()| tracker.look().map(drop)).map_err(|error| describe_error(&error))?;
        tracker.note_look(&self.log);
        Ok(restored)
    }

    /// The content of a file as it was, if it is kept.
    pub fn read_kept(&self, state: &PathState) -> Option<Vec<u8>> {
        let PathState::File { sha256, .. } = state else { return None };
        self.stage().tracker().ok()?.store.get(sha256).ok()
    }

    /// What the calls from the step `from` on changed, and how it is now: `before` is before the first of them.
    ///
    /// # Errors
    /// A sentence: changes were not followed, or the store fails.
    pub fn compare(&self, from: u64) -> Result<Vec<PathChange>, String> {
        let plan = self.plan(Direction::Undo(from))?.unwrap_or_default();
        Ok(plan.changes.into_iter().map(PathChange::reverse).collect())
    }

    fn lock(&self) -> MutexGuard<'_, HistoryStage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stage after the first look.
    fn stage(&self) -> MutexGuard<'_, HistoryStage> {
        let mut held = self.lock();
        if let HistoryStage::Fresh = *held {
            *held = match Tracker::open(&self.root, &self.log, self.is_read) {
                Ok(tracker) => HistoryStage::Ready(Box::new(tracker)),
                Err(_) if !self.root.exists() => {
                    let why = format!("changes cannot be undone: {} is not there", file_name::quote(&self.root));
                    HistoryStage::Off(why)
                }
                Err(error) => HistoryStage::Off(describe_error(&error)),
            };
        }
        held
    }
}

impl RunningChange {
    /// Called after the call: writes down what it changed. If that fails, changes are not followed from here on. `jobs_run`
    /// is true if commands run in the background.
    pub fn end(self, jobs_run: bool) -> AppearedPaths {
        let mut stage = self.history.stage();
        let HistoryStage::Ready(tracker) = &mut *stage else { return AppearedPaths::default() };
        tracker.left_by = jobs_run.then_some(self.by.item);
        let recorded = tracker.look().and_then(|changes| tracker.record(self.by.clone(), changes));
        let appeared = std::mem::take(&mut tracker.view.appeared);
        if self.history.running.load(Ordering::Relaxed) == 1 {
            tracker.named.clear();
        }
        if let Err(error) = recorded {
            *stage = HistoryStage::Off(describe_error(&error));
        }
        appeared
    }
}

impl Drop for RunningChange {
    fn drop(&mut self) {
        self.history.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HistoryStage {
    fn tracker(&mut self) -> Result<&mut Tracker, String> {
        match self {
            Self::Ready(tracker) => Ok(tracker),
            Self::Off(why) => Err(why.clone()),
            Self::Fresh => Err("the workspace was not looked at".to_owned()),
        }
    }
}

/// Writes down that what a call changes will not be known, for an undo that a later process is asked for. If not even that can
/// be written, it says what it knows.
fn note_missed(log: &Path, by: ChangingCall) {
    let noted =
        FileJournal::open(&journal_beside(log)).and_then(|mut journal| journal.add(JournalLine::Missed(by)));
    let _ = noted;
}

fn describe_error(error: &ScanError) -> String {
    match error {
        ScanError::TooLarge(why) => format!("changes in this workspace cannot be undone: {why}"),
        ScanError::Io(error) => format!("changes in this workspace cannot be undone: {error}"),
    }
}
