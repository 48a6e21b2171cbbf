//! Follows the changes of a session: what each call changed, and what was changed between calls.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, UNIX_EPOCH};

use crate::files::disk::{open_through, split_path};
use crate::files::file_name;

use super::content::{ContentStore, contents_beside};
use super::journal::{BegunCall, ChangingCall, FileJournal, JournalLine, NamedStates, journal_beside};
use super::scan::{ScanError, SeenPath};
use super::seen::LastLook;
use super::state::PathChange;
use super::view::{WorkspaceView, look_at};

/// How long after a call began a change is taken for its own, if it was killed: when that was is not known, and a person may
/// have come since.
const SURELY_ITS_OWN: Duration = Duration::from_secs(3);

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
    /// Looks through the workspace, and records what a call changed that was killed; in memory alone, if the session only
    /// `is_read`.
    pub fn open(root: &Path, log: &Path, is_read: bool) -> Result<Self, ScanError> {
        let place = contents_beside(log);
        // Of a large workspace each is megabytes.
        let (store, last) = std::thread::scope(|scope| {
            let last = Builder::new().spawn_scoped(scope, || LastLook::load(&place));
            let store = ContentStore::open(&place);
            (store, last.ok().and_then(|last| last.join().ok()).unwrap_or_default())
        });
        let (store, mut journal) = (store?, FileJournal::open(&journal_beside(log))?);
        journal.is_read = is_read;
        let is_own = last.log == log.to_string_lossy();
        let mut ended = (!is_own && !is_read).then(|| EndedSession::open(Path::new(&last.log))).flatten();
        let change = last.change;
        let mut seen = last.into_seen();
        let mut named = NamedStates::new();
        // What was seen may be older than what the session that saw it wrote down.
        if let Some(looker) = ended.as_ref().map(|ended| &ended.journal).or(is_own.then_some(&journal)) {
            let since = looker.records.iter().filter(|record| record.number > change);
            let since = since.flat_map(|record| &record.changes).filter(|change| change.to_path().is_relative());
            seen.extend(since.map(|change| {
                (change.to_path().into_owned(), SeenPath { stamp: None, state: change.after.clone() })
            }));
            named = looker.open.as_ref().map(|open| open.named.clone()).unwrap_or_default();
        }
        let mut tracker =
            Self { view: WorkspaceView::new(root, seen), store, journal, named, left_by: None, noting: None };
        let changes = tracker.look()?;
        if is_own {
            settle_killed(root, &mut tracker.journal, changes)?;
        } else {
            tracker.named.clear();
            if let Some(ended) = &mut ended {
                settle_killed(root, &mut ended.journal, changes)?;
            }
            // Another session looked since, while this one was not there, or what was seen is damaged.
            if let Some(BegunCall { by, .. }) = tracker.journal.open.clone() {
                tracker.journal.add(JournalLine::Missed(by))?;
            }
        }
        tracker.note_look(log);
        Ok(tracker)
    }

    /// Notes how things are before a call that names these paths. Unless it `is_alone`, what runs beside it has seen to the
    /// rest.
    pub fn begin_call(
        &mut self,
        by: &ChangingCall,
        named: &[PathBuf],
        is_alone: bool,
        log: &Path,
    ) -> Result<(), ScanError> {
        if is_alone {
            self.settle()?;
            self.take_left()?;
            self.named.clear();
            let by_commands = std::mem::take(&mut self.view.appeared);
            // The rest is a person's, also for a process that comes after this one.
            if !self.look()?.is_empty() {
                self.note_look(log);
            }
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

    /// What an undo did that was stopped, as far as it is still so.
    pub fn list_begun(&self) -> Result<Vec<PathChange>, ScanError> {
        let mut begun = Vec::new();
        for change in self.journal.undoing.iter().flat_map(|undoing| &undoing.changes) {
            if look_at(&self.view.root.join(change.to_path()), &self.store)? == change.after {
                begun.push(change.clone());
            }
        }
        Ok(begun)
    }

    /// Writes down what a call changed.
    pub fn record(&mut self, by: ChangingCall, changes: Vec<PathChange>) -> Result<(), ScanError> {
        Ok(self.journal.record(by, changes, false)?)
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
        if self.journal.is_read {
            return;
        }
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

/// Another session that looked last and has ended. Its log is locked, so that it does not begin again meanwhile.
struct EndedSession {
    journal: FileJournal,
    _log: File,
}

impl EndedSession {
    /// `None` if it runs or is gone.
    fn open(log: &Path) -> Option<Self> {
        let held = File::open(log).ok()?;
        held.try_lock().ok()?;
        Some(Self { journal: FileJournal::open(&journal_beside(log)).ok()?, _log: held })
    }
}

/// Records what a call changed that was killed with its session.
fn settle_killed(root: &Path, journal: &mut FileJournal, changes: Vec<PathChange>) -> Result<(), ScanError> {
    let Some(BegunCall { by, .. }) = journal.open.clone() else { return Ok(()) };
    let begun = journal.path.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let begun = i64::try_from((begun + SURELY_ITS_OWN).as_nanos()).unwrap_or(i64::MAX);
    let (late, own) = changes.into_iter().partition(|change| is_later(root, change, begun));
    journal.record(by.clone(), late, true)?;
    Ok(journal.record(by, own, false)?)
}

/// True if what is at a path, or the directory from which it is gone, changed after a time, in nanoseconds since 1970.
fn is_later(root: &Path, change: &PathChange, time: i64) -> bool {
    let path = root.join(change.to_path());
    let stamps = path.ancestors().map(|above| {
        let (parent, name) = split_path(above)?.ok_or(io::ErrorKind::InvalidInput)?;
        let (dir, _opened) = open_through(parent)?;
        dir.examine(name)
    });
    let nearest = stamps.flatten().next();
    nearest.is_none_or(|(_, stamp)| stamp.changed > time)
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.wait_for_note();
    }
}
