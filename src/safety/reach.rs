//! The files that one call may open: the paths that it names, as they were judged, and the paths below that a rule
//! denies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::output::ToolError;
use crate::base::text::GlobPattern;
use crate::files::workspace::Workspace;

use super::enclosure::WallOpening;

/// The reach of one call. A tool opens the file that was judged, not the one that the path leads to by then.
#[derive(Debug, Clone)]
pub struct Reach {
    workspace: Workspace,
    /// The paths as the model wrote them, with their targets when the call was judged.
    judged: Vec<(String, PathBuf)>,
    /// Patterns of paths that a rule denies to this call.
    pub denied: Vec<GlobPattern>,
    /// Patterns of paths that a rule denies for writing.
    pub unwritten: Vec<GlobPattern>,
    /// What its command needs beyond the walls.
    pub opening: WallOpening,
    /// The files whose text in the person's editor is not saved, with that text: the call reads it instead.
    pub unsaved: BTreeMap<PathBuf, Arc<String>>,
}

impl Reach {
    /// `judged` has the paths as the model wrote them, with their targets: absolute, with links followed.
    pub fn new(workspace: &Workspace, judged: Vec<(String, PathBuf)>, denied: Vec<GlobPattern>) -> Self {
        Self {
            workspace: workspace.clone(),
            judged,
            denied,
            unwritten: Vec::new(),
            opening: WallOpening::default(),
            unsaved: BTreeMap::new(),
        }
    }

    /// Adds the patterns that are denied to a command, which may write, and what it needs beyond the walls.
    pub fn of_command(self, unwritten: Vec<GlobPattern>, opening: WallOpening) -> Self {
        Self { unwritten, opening, ..self }
    }

    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The target of a path that the call names. One that was not judged with the call must be in the workspace.
    ///
    /// # Errors
    /// It was not judged and leads elsewhere.
    pub fn find(&self, written: &str) -> Result<PathBuf, ToolError> {
        if let Some((_, path)) = self.judged.iter().find(|(judged, _)| judged == written) {
            return Ok(path.clone());
        }
        let resolved = self.workspace.resolve(written);
        if resolved.inside && !self.omits(&resolved.path, self.workspace.root()) {
            return Ok(resolved.path);
        }
        Err(ToolError::permanent(format!(
            "{written} leads out of the workspace, which was not judged with this call"
        )))
    }

    /// True if a search or a listing that began at `start` leaves `path` out: a rule denies it, or it is a place of
    /// credentials that the call did not name.
    pub fn omits(&self, path: &Path, start: &Path) -> bool {
        self.is_denied(path) || (self.workspace.is_secret(path) && !self.workspace.is_secret(start))
    }

    fn is_denied(&self, path: &Path) -> bool {
        if self.denied.is_empty() {
            return false;
        }
        let former = self.workspace.denied().former_path(path);
        let judged = former.unwrap_or_else(|| path.to_path_buf());
        let counterpart = self.workspace.find_counterpart(path);
        let mut names = [Some(judged), counterpart].into_iter().flatten();
        names.any(|path| {
            let relative = self.workspace.relative(&path).to_string_lossy();
            self.denied.iter().any(|denied| denied.matches(&relative))
        })
    }
}
