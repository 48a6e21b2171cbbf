//! Has the history of files follow what a call changes.

use std::path::PathBuf;

use crate::files::history::{ChangingCall, RunningChange};
use crate::safety::Enclosure;
use crate::safety::sandbox::Undone;
use crate::tools::warn_of_changes;

use super::execute::CallServices;
use super::prepare::{CallPlan, PreparedCall};

impl CallServices<'_> {
    /// Has the history of files note what the call is about to change.
    pub(super) async fn begin_change(
        &self,
        prepared: &PreparedCall<'_>,
        plan: &CallPlan<'_>,
    ) -> Option<RunningChange> {
        let (history, workspace) = (self.shared.history.clone(), &self.agent.workspace);
        let history = history.filter(|history| history.root == workspace.root())?;
        let by = ChangingCall { item: prepared.slot.0, call: prepared.call.name.clone() };
        let named = plan.tool.writes(&prepared.arguments).into_iter();
        let named = named.filter_map(|path| plan.reach.find(path).ok());
        // Former contents are kept neither of credentials nor of repositories and temporary directories.
        let is_kept = |path: &PathBuf| {
            let is_of_work = path.starts_with(workspace.root()) || !workspace.resolve_path(path).inside;
            is_of_work && !workspace.is_secret(path) && path.iter().all(|name| name != ".git")
        };
        let named: Vec<PathBuf> = named.filter(is_kept).collect();
        let begun = tokio::task::spawn_blocking(move || history.begin_call(by, &named)).await;
        self.warn_of_history();
        begun.ok()
    }

    /// Has it note what the call changed. What would run in a repository that a confined command made is moved aside.
    pub(super) async fn end_change(&self, change: RunningChange, enclosure: Option<Enclosure>) -> Undone {
        let jobs_run = self.agent.jobs.are_running();
        let is_confined = matches!(enclosure, Some(Enclosure::Write | Enclosure::Opened));
        let sandbox = self.agent.sandbox.clone().filter(|_| is_confined);
        let end = move || {
            let appeared = change.end(jobs_run);
            let undone = sandbox.map(|sandbox| sandbox.guard_made(&appeared.repositories)).unwrap_or_default();
            (undone, appeared.executables)
        };
        let (undone, executables) = tokio::task::spawn_blocking(end).await.unwrap_or_default();
        self.warn_of_history();
        self.emitter.warn(warn_of_changes(&undone, &executables));
        undone
    }

    /// Says once that changes cannot be undone, if that is so.
    fn warn_of_history(&self) {
        self.emitter.warn(self.shared.history.as_ref().and_then(|history| history.take_warning()));
    }
}
