//! Puts the changes of a session into another directory: those of a trial into the workspace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::files::file_name;

use super::journal::JournalLine;
use super::restore::{RestorePlan, apply_changes, plan_reversal};
use super::scan::ScanError;
use super::{ChangingCall, Direction, FileHistory, PathChange, Restored, describe_error};

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
        let own = self.plan(Direction::Undo(0))?.unwrap_or_default();
        // Each as it is here, and as it was before, which is what is expected there. What is outside is there already.
        let changes = own.changes.iter().filter(|change| change.to_path().is_relative() && is_meant(&change.path));
        let mut stage = self.stage();
        let tracker = stage.tracker()?;
        let planned = plan_reversal(to, changes, &tracker.store);
        let mut plan = planned.map_err(|error| format!("contents cannot be read: {error}"))?;
        plan.gaps = own.gaps;
        plan.lost.extend(own.lost.into_iter().filter(|path| is_meant(path)));
        Ok(plan)
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
        if !paths.is_empty() {
            noted = tracker.journal.add(JournalLine::Left { paths }).map_err(ScanError::from);
        }
        let last = tracker.journal.records.last().map(|record| record.by.clone());
        if let Some(by) = last.filter(|_| !beside.is_empty()) {
            noted = noted.and_then(|()| tracker.record(by, beside));
        }
        noted.map_err(|error| describe_error(&error))
    }

    /// Makes the changes of such a plan.
    ///
    /// # Errors
    /// A sentence: changes were not followed.
    pub fn transfer(&self, to: &Path, changes: &[PathChange]) -> Result<Restored, String> {
        let mut stage = self.stage();
        let (made, failed) = apply_changes(to, changes, &stage.tracker()?.store);
        Ok(Restored { made, failed })
    }
}
