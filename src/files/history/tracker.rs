//! Follows the changes of a session: what each call changed, and what was changed between calls.

use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};

use crate::files::file_name;

use super::content::{ContentStore, contents_beside};
use super::journal::{
    BegunCall, ChangeRecord, ChangingCall, FileJournal, JournalLine, NamedStates, journal_beside,
};
use super::scan::{ScanError, SeenPath};
use super::seen::LastLook;
use super::state::PathChange;
use super::view::{WorkspaceView, look_at};

/// The view of the workspace, the contents that are kept, and the journal, while changes are followed.
pub(super) struct Tracker {
    pub view: WorkspaceView,
    pub store: ContentStore,
    pub journal: FileJournal,
    /// What the calls that run name and no look comes by, as it was last.
    pub named: NamedStates,
    /// The step of the last call of this turn, if it left commands in the background: what changes is theirs.
    pub left_by: Option<u64>,
    /// Writes down what was seen, of a large workspace megabytes, beside everything but the next call.
    noting: Option<JoinHandle<()>>,
}

impl Tracker {
    /// Looks through the workspace, and records what a call changed that was killed.
    pub fn open(root: &Path, log: &Path) -> Result<Self, ScanError> {
        let place = contents_beside(log);
        // Of a large workspace each is megabytes.
        let (store, last) = std::thread::scope(|scope| {
            let last = Builder::new().spawn_scoped(scope, || LastLook::load(&place));
            let store = ContentStore::open(&place);
            (store, last.ok().and_then(|last| last.join().ok()).unwrap_or_default())
        });
        let (store, journal) = (store?, FileJournal::open(&journal_beside(log))?);
        let is_own = last.log == log.to_string_lossy();
        let change = last.change;
        let mut seen = last.into_seen();
        if is_own {
            let since = journal.records.iter().filter(|record| record.number > change);
            let since = since.flat_map(|record| &record.changes).filter(|change| change.to_path().is_relative());
            seen.extend(since.map(|change| {
                (change.to_path().into_owned(), SeenPath { stamp: None, state: change.after.clone() })
            }));
        }
        let named = journal.open.as_ref().map(|open| open.named.clone()).unwrap_or_default();
        let mut tracker =
            Self { view: WorkspaceView::new(root, seen), store, journal, named, left_by: None, noting: None };
        let changes = tracker.look()?;
        if let Some(BegunCall { by, .. }) = tracker.journal.open.clone() {
            if is_own {
                tracker.record(by, changes)?;
            } else {
                // Another session looked since, or what was seen is damaged.
                tracker.journal.add(JournalLine::Missed(by))?;
            }
        }
        tracker.note_look(log);
        Ok(tracker)
    }

    /// Notes how things are before a call that names these paths. Unless it `is_alone`, what runs beside it has seen to the
    /// rest.
    pub fn begin_call(&mut self, by: &ChangingCall, named: &[PathBuf], is_alone: bool) -> Result<(), ScanError> {
        if is_alone {
            self.settle()?;
            self.take_left()?;
            self.named.clear();
            let by_commands = std::mem::take(&mut self.view.appeared);
            self.look()?;
            // The rest is a person's.
            self.view.appeared = by_commands;
        }
        let root = &self.view.root;
        for path in named {
            // Directories that are missing are made with it.
            let missing = path.ancestors().skip(1).take_while(|above| above.symlink_metadata().is_err());
            for path in std::iter::once(path.as_path()).chain(missing) {
                let name = path.strip_prefix(root).unwrap_or(path);
                if !self.view.seen.contains_key(name) {
                    let state = look_at(path, &self.store)?;
                    self.named.entry(file_name::quote(name).into_owned()).or_insert(state);
                }
            }
        }
        if is_alone {
            // A later process compares with it, should this one be killed.
            self.wait_for_note();
            let begun = BegunCall { by: by.clone(), named: self.named.clone() };
            self.journal.add(JournalLine::Begun(begun))?;
        }
        Ok(())
    }

    /// Records what commands in the background changed.
    pub fn take_left(&mut self) -> Result<(), ScanError> {
        let Some(item) = self.left_by.take() else { return Ok(()) };
        let changes = self.look()?;
        self.record(ChangingCall { item, call: "background".to_owned() }, changes)
    }

    /// Records what a call changed that was interrupted.
    pub fn settle(&mut self) -> Result<(), ScanError> {
        let Some(open) = self.journal.open.clone() else { return Ok(()) };
        let changes = self.look()?;
        self.record(open.by, changes)
    }

    /// Writes down what a call changed.
    pub fn record(&mut self, by: ChangingCall, changes: Vec<PathChange>) -> Result<(), ScanError> {
        // A damaged line may hold one of the numbers before it.
        let FileJournal { records, damaged, .. } = &self.journal;
        let number = records.last().map_or(0, |record| record.number) + 1 + damaged.len() as u64;
        Ok(self.journal.add(JournalLine::Changed(ChangeRecord { number, by, changes }))?)
    }

    /// What changed since the last look, in the workspace and at the named paths.
    pub fn look(&mut self) -> Result<Vec<PathChange>, ScanError> {
        let mut changes = self.view.look(&self.store)?;
        for (path, state) in &mut self.named {
            let name = file_name::unquote(path);
            if self.view.seen.contains_key(&*name) {
                continue;
            }
            let after = look_at(&self.view.root.join(name), &self.store)?;
            if after != *state {
                let before = std::mem::replace(state, after.clone());
                changes.push(PathChange { path: path.clone(), before, after });
            }
        }
        Ok(changes)
    }

    /// Writes down what was seen, for later processes, once the last such is written.
    pub fn note_look(&mut self, log: &Path) {
        self.wait_for_note();
        let change = self.journal.records.last().map_or(0, |record| record.number);
        let (seen, place) = (LastLook::new(log, change, &self.view.seen), contents_beside(log));
        self.noting = Builder::new().spawn(move || seen.save(&place)).ok();
    }

    fn wait_for_note(&mut self) {
        if let Some(noting) = self.noting.take() {
            let _ = noting.join();
        }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.wait_for_note();
    }
}
