//! Files that the person changed in an editor and did not save. A call reads them as the editor has them; before one changes
//! such a file, the editor saves it, so that what the person wrote is kept and can be had back by an undo.

use std::path::Path;
use std::sync::Arc;

use crate::agent::Agent;
use crate::files::disk;
use crate::safety::policy::Verdict;

use super::prepare::{CallPlan, PreparedCall};

/// The most files of a call that the editor is asked about.
const MOST_FILES: usize = 20;
/// The longest such file, in bytes.
const LONGEST: u64 = 8 * 1024 * 1024;

impl PreparedCall<'_> {
    /// Takes in what the editor has of the files that the call names, where that is not what is on disk.
    pub(super) async fn look_at_editor(&mut self, agent: &Agent) {
        let (Ok(plan), Some(editor)) = (&mut self.plan, agent.approver.open_files()) else { return };
        if matches!(plan.verdict, Verdict::Deny { .. }) {
            return;
        }
        let named = plan.tool.reads(&self.arguments).into_iter().chain(plan.tool.writes(&self.arguments));
        let mut paths: Vec<_> = named.filter_map(|path| plan.reach.find(path).ok()).collect();
        paths.sort();
        paths.dedup();
        paths.retain(|path| path.starts_with(agent.workspace.root()));
        for path in paths.into_iter().take(MOST_FILES) {
            let Some(saved) = read_text(&path) else { continue };
            let Some(text) = editor.read(&path).await else { continue };
            if text.len() as u64 <= LONGEST && !is_same(&saved, &text) {
                let ends_as_windows = saved.contains("\r\n") && !text.contains('\r');
                let text = if ends_as_windows { text.replace('\n', "\r\n") } else { text };
                Arc::make_mut(&mut plan.reach).unsaved.insert(path, Arc::new(text));
            }
        }
    }
}

impl CallPlan<'_> {
    /// Has the editor save the files that the call is about to change.
    ///
    /// # Errors
    /// It does not: a sentence for the model.
    pub(super) async fn save_unsaved(&self, agent: &Agent, arguments: &serde_json::Value) -> Result<(), String> {
        let Some(editor) = agent.approver.open_files() else { return Ok(()) };
        for path in self.tool.writes(arguments).into_iter().filter_map(|path| self.reach.find(path).ok()) {
            let Some(text) = self.reach.unsaved.get(&path) else { continue };
            let saved = if editor.save(&path, text).await { read_text(&path) } else { None };
            if !saved.is_some_and(|saved| is_same(&saved, text)) {
                let shown = agent.workspace.display(&path);
                return Err(format!(
                    "Not run: {shown} has changes in the person's editor that are not saved, and the editor did not save \
                     them. Ask the person to save it."
                ));
            }
        }
        Ok(())
    }

    /// What the model should know about files that are not saved; `None` if there are none.
    pub(super) fn describe_unsaved(&self, agent: &Agent) -> Option<String> {
        let names: Vec<String> = self.reach.unsaved.keys().map(|path| agent.workspace.display(path)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "The person has changed {} in the editor. Calls that name the file see that text; it is saved before an \
                 edit. Until then commands and searches see what is on disk.",
                names.join(", ")
            )
        })
    }
}

/// The text of a file on disk; `None` if it has none that an editor could have in the same words.
fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(disk::read_file(path, LONGEST).ok()?).ok()
}

/// True if two texts differ at most in their line ends and byte-order marks, which editors keep apart from the text.
fn is_same(saved: &str, text: &str) -> bool {
    let bare = |text: &str| text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    saved == text || bare(saved) == bare(text)
}
