//! Watches a turn for loops: adds to what is known of a call what can be seen of its effects.

use std::time::Duration;

use serde_json::Value;

use crate::config::Limits;
use crate::files::workspace::Workspace;
use crate::safety::policy::usually_reads;
use crate::tools::Tool;

use super::detector::{LoopDetector, LoopVerdict, ObservedCall};
use super::normal_form::waits;
use super::watched_files::WatchedFiles;

/// The calls of a turn so far, and the files that they named.
#[derive(Debug)]
pub(in crate::agent) struct LoopWatch {
    detector: LoopDetector,
    files: WatchedFiles,
}

impl LoopWatch {
    pub fn new(limits: &Limits) -> Self {
        let detector = LoopDetector::new(limits.loop_window, limits.loop_threshold);
        Self { detector, files: WatchedFiles::default() }
    }

    /// Judges a finished call, of which only the time waited and the changed files are not known yet. `tool` is the one
    /// that it called, if there is one, and `duration` the time that this ran.
    pub fn observe(
        &mut self,
        workspace: &Workspace,
        tool: Option<&dyn Tool>,
        duration: Option<Duration>,
        observed: ObservedCall<'_>,
    ) -> LoopVerdict {
        let (mut waited, mut changes) = (None, observed.changes);
        if let Some(tool) = tool {
            self.watch_named(workspace, tool, observed.arguments);
            let shell = tool.shell_line(observed.arguments);
            let is = |kind: fn(&str) -> bool| shell.as_ref().is_some_and(|shell| kind(&shell.line));
            waited = duration.filter(|_| tool.waits_for_time(observed.arguments) || is(waits));
            changes &= !is(usually_reads);
        }
        let files = self.files.take_changes();
        self.detector.observe(ObservedCall { waited, changes, files: &files, ..observed })
    }

    /// Watches the files that a call names, and with a command the entries of the workspace.
    fn watch_named(&mut self, workspace: &Workspace, tool: &dyn Tool, arguments: &Value) {
        for path in tool.reads(arguments).into_iter().chain(tool.writes(arguments)) {
            self.files.watch_path(workspace, path);
        }
        if let Some(shell) = tool.shell_line(arguments) {
            self.files.watch_path(workspace, ".");
            self.files.watch_words(workspace, &shell.line, shell.workdir.as_deref());
        }
    }
}
