//! Puts the changes of a session into another directory: those of a trial into the workspace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::files::file_name;

use super::journal::JournalLine;
use super::restore::{RestorePlan, apply_changes, plan_reversal};
use super::scan::ScanError;
use super::view::look_at;
use super::{ChangingCall, Direction, FileHistory, PathChange, PathState, Restored, describe_error};

impl FileHistory {
    /// Takes what changed since the last call as changed by this one.
    ///
    /// # Errors
    /// A sentence: changes were not followed, or the journal cannot be written.
    pub fn take_rest(&self, by: ChangingCall) -> Result<(), String> {
        let mut stage = self.stage();
        let tracker = stage.tracker()?;
        let taken = tracker.settle().and_then(|()| tracker.look()).and_then(|changes| tracker.record(by, changes));
        taken.map_err(|error| describe_error(&error))
    }

    /// What putting all its changes into another directory would do: `changed_since` are those that changed there too.
    /// Only those within `paths` count, if any are given.
    ///
    /// # Errors
    /// A sentence: changes were not followed, or the store fails.
    pub fn plan_transfer(&self, to: &Path, paths: &[PathBuf]) -> Result<RestorePlan, String> {
        let is_meant = |path: &str| {
            let path = file_name::unquote(path);
            paths.is_empty() || paths.iter().any(|meant| path.starts_with(meant))
        };
        // A directory that was made for them.
        let is_needed = |change: &PathChange| {
            let is_new = change.before.is_dir() && !change.after.is_dir();
            is_new && paths.iter().any(|meant| meant.starts_with(change.to_path()))
        };
        let own = self.plan(Direction::Undo(0))?.unwrap_or_default();
        // Each as it is here, and as it was before, which is what is expected there. What is outside is there already.
        let own_here = own.changes.iter().filter(|change| change.to_path().is_relative());
        let changes = own_here.filter(|change| is_meant(&change.path) || is_needed(change));
        let mut stage = self.stage();
        let tracker = stage.tracker()?;
        let planned = plan_reversal(to, changes, &tracker.store);
        let mut plan = planned.map_err(|error| format!("contents cannot be read: {error}"))?;
        plan.gaps = own.gaps;
        plan.lost.extend(own.lost.into_iter().filter(|path| is_meant(path)));
        Ok(plan)
    }

    /// A path that an undo back to before the step `from` would put back here alone: it reached `to` already.
    ///
    /// # Errors
    /// A sentence: changes were not followed, or the store fails.
    pub fn find_applied(&self, to: &Path, from: u64) -> Result<Option<String>, String> {
        let Some(undo) = self.plan(Direction::Undo(from))? else { return Ok(None) };
        let all = self.plan(Direction::Undo(0))?.unwrap_or_default();
        let waits = self.plan_transfer(to, &[])?;
        let list = |plan: &RestorePlan| -> BTreeSet<String> {
            plan.changes.iter().map(|change| &change.path).chain(&plan.lost).cloned().collect()
        };
        let (all, waits) = (list(&all), list(&waits));
        let mut applied = undo.changes.into_iter().filter(|change| change.to_path().is_relative());
        let applied = applied.find(|change| all.contains(&change.path) && !waits.contains(&change.path));
        Ok(applied.map(|change| change.path))
    }

    /// Notes that the trial is over, and which changes never reached `to`: an undo leaves these alone. All of them, without
    /// `to`. `beside` are versions that were kept beside files there.
    ///
    /// # Errors
    /// A sentence: changes were not followed, or the journal cannot be written.
    pub fn end_trial(&self, to: Option<&Path>, beside: Vec<PathChange>) -> Result<(), String> {
        let missing = to.map(|to| self.plan_transfer(to, &[])).transpose()?;
        let mut stage = self.stage();
        let tracker = stage.tracker()?;
        let paths: BTreeSet<String> = match missing {
            Some(plan) => plan.changes.into_iter().map(|change| change.path).chain(plan.lost).collect(),
            None => {
                let all = tracker.journal.records.iter().flat_map(|record| &record.changes);
                all.filter(|change| change.to_path().is_relative()).map(|change| change.path.clone()).collect()
            }
        };
        let mut noted = Ok(());
        // What was undone in the trial is not to be redone in the workspace.
        if !paths.is_empty() || tracker.journal.last_undo().is_some() {
            noted = tracker.journal.add(JournalLine::Left { paths }).map_err(ScanError::from);
        }
        let last = tracker.journal.records.last().map(|record| record.by.clone());
        if let Some(by) = last.filter(|_| !beside.is_empty()) {
            noted = noted.and_then(|()| tracker.record(by, beside));
        }
        noted.map_err(|error| describe_error(&error))
    }

    /// True if this is at an absolute path.
    pub fn is_found(&self, path: &Path, state: &PathState) -> bool {
        self.stage().tracker().is_ok_and(|tracker| look_at(path, &tracker.store).is_ok_and(|now| now == *state))
    }

    /// Makes the changes of such a plan.
    ///
    /// # Errors
    /// A sentence: changes were not followed.
    pub fn transfer(&self, to: &Path, changes: &[PathChange]) -> Result<Restored, String> {
        let mut stage = self.stage();
        Ok(apply_changes(to, changes, &stage.tracker()?.store))
    }
}
