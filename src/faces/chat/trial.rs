//! The end of a run or a chat in a trial: what changed, and how it gets into the workspace.

use std::fmt::Write;
use std::path::Path;

use super::undo::{describe_plan, format_diff};
use crate::agent::Conversation;
use crate::agent::assembly;
use crate::base::text;
use crate::config::Config;
use crate::conversation::session::Session;
use crate::files::disk;
use crate::files::workspace::Workspace;

/// The longest diff that is shown, in lines.
const LONGEST_DIFF: usize = 200;

/// Takes in what a trial changed. Returns what is to be shown; the copy of one without changes is removed. `None` if the
/// conversation is none.
pub fn end_trial(config: &Config, conversation: &Conversation) -> Option<String> {
    let copy = conversation.session.find_copy()?;
    let told = describe_end(config, conversation).and_then(|told| match told {
        Some(told) => Ok(told),
        None => assembly::remove_trial(config, copy)
            .map(|_| "The trial changed no file.".to_owned())
            .map_err(|error| error.message),
    });
    Some(told.unwrap_or_else(|why| why))
}

/// What a trial changed, and what to do with it; `None` if it changed nothing.
fn describe_end(config: &Config, conversation: &Conversation) -> Result<Option<String>, String> {
    if !assembly::take_changes(conversation).map_err(|error| error.message)? {
        return Ok(None);
    }
    let Some(history) = conversation.file_history() else { return Ok(None) };
    let id = conversation.session.id();
    let plan = history.plan_transfer(&assembly::find_outside(config, &conversation.session), &[])?;
    let diff = format_diff(history, 0)?;
    let mut out = if diff.lines().count() <= LONGEST_DIFF { diff } else { String::new() };
    out += &describe_plan(&plan, "The trial changed");
    if has_git_gone_on(&conversation.session) {
        out += "git went on in the trial: what is applied is files, not commits and branches.\n";
    }
    let _ = write!(out, "They are not in the workspace: agent session apply {id}, or agent session discard {id}");
    Ok(Some(text::make_visible(&out).into_owned()))
}

/// True if the log of HEAD in a copy is another one than that of its workspace. A layer has one if it was written.
fn has_git_gone_on(session: &Session) -> bool {
    /// The most of a log that is read, in bytes.
    const MOST: u64 = 4 << 20;
    let workspace = session.describe().workspace;
    let Some(source) = Workspace::open(workspace).ok().and_then(|found| found.git_root().map(Path::to_path_buf))
    else {
        return false;
    };
    let inner = workspace.strip_prefix(&source).map_or(0, |inner| inner.components().count());
    let Some(copy) = session.find_copy().and_then(|copy| copy.ancestors().nth(inner)) else { return false };
    let read = |dir: &Path| disk::read_file(&dir.join(".git/logs/HEAD"), MOST).ok();
    read(copy).is_some_and(|log| session.describe().is_layer || read(&source) != Some(log))
}
