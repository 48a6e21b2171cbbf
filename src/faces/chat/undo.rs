//! `/undo`, `/redo` and `/diff`, and what they share with `agent session undo`: a plan is shown, then carried out.

use std::collections::BTreeSet;
use std::fmt::Write;

use jiff::Timestamp;

use crate::agent::{Agent, Conversation, assembly};
use crate::base::{diff, text};
use crate::config::Config;
use crate::conversation::message::{Call, CallStatus, Step};
use crate::conversation::session::{Session, SessionError};
use crate::files::history::{Direction, FileHistory, PathChange, PathState, RestorePlan, Restored};
use crate::files::workspace::Workspace;

/// The answer where a conversation is in memory only.
pub const UNKEPT: &str = "nothing is kept of this conversation, so nothing can be taken back";
/// The word that overwrites what changed since.
const FORCE: &str = "--force";
/// The most paths that are listed; the rest are counted.
const MOST_SHOWN: usize = 30;

/// The history of the files of a session, if it is kept.
pub fn open_history(session: &Session) -> Option<FileHistory> {
    session.find_log().map(|log| FileHistory::new(session.find_root(), log, session.path().is_none()))
}

/// What to say where an undo back to item `from` puts no files back although calls changed some: they were not followed,
/// for want of room or because the workspace is too large.
pub fn explain_unkept(session: &Session, from: u64) -> Option<&'static str> {
    const CHANGING: [&str; 3] = ["write_file", "edit_file", "apply_patch"];
    let items = session.ids().iter().zip(session.items()).filter(|(id, _)| id.number >= from);
    let mut calls = items.filter_map(|(_, item)| item.as_step()).flat_map(Step::calls);
    let has_changed = |call: &Call| {
        CHANGING.contains(&call.request.name.as_str())
            && call.answer.as_ref().is_some_and(|answer| answer.status == CallStatus::Ok)
    };
    calls
        .any(has_changed)
        .then_some("No change of a file is kept for it: what its calls changed in files stays as it is.\n")
}

/// Puts files of a session back, and says what was done; or only what would be, in a `dry_run`. `None` if there is nothing.
///
/// # Errors
/// A sentence: what needs force, and it is not to be `forced`; what could not be put back, and the rest below it; or the
/// disk fails.
pub fn restore_files(
    config: &Config,
    session: &Session,
    history: &FileHistory,
    direction: Direction,
    forced: bool,
    dry_run: bool,
) -> Result<Option<String>, String> {
    let Some(mut plan) = history.plan(direction)? else { return Ok(None) };
    let mut doubts = if forced { Vec::new() } else { list_doubts(&plan) };
    if let Direction::Undo(from) = direction
        && session.find_copy().is_some()
        && !forced
        && let Some(path) = history.find_applied(&assembly::find_outside(config, session), from)?
    {
        let id = session.id();
        doubts.push(format!(
            "{path} was applied from this trial: after `agent session apply {id}`, or `agent session discard {id}`, an \
             undo takes it back in the workspace, and force undoes in the trial alone"
        ));
    }
    let doubts = doubts.join("; ");
    if !dry_run && !doubts.is_empty() {
        return Err(format!(
            "nothing was put back. {doubts}. Force does the rest, and keeps a copy of what it overwrites"
        ));
    }
    // Also where they are so already: that these changes are taken back is written down.
    let done = (!dry_run).then(|| history.carry_out(direction, &plan)).transpose()?;
    if plan == RestorePlan::default() {
        return Ok(Some("The files are already as they were.\n".to_owned()));
    }
    let Restored { made, left, failed } = done.unwrap_or_default();
    let made: BTreeSet<String> = made.into_iter().map(|change| change.path).collect();
    plan.retain_changes(|change| dry_run || made.contains(&change.path));
    let mut out = describe_plan(&plan, if dry_run { "Would put back" } else { "Put back" });
    for why in left {
        let _ = writeln!(out, "  left: {why}");
    }
    if !failed.is_empty() {
        return Err(format!("not put back: {}; the same again does the rest\n{out}", failed.join("; ")));
    }
    if !doubts.is_empty() {
        let _ = writeln!(out, "Needs {FORCE}: {doubts}");
    }
    if !dry_run && session.find_copy().is_some() {
        out += "That is in its trial: what was applied from it stays in the workspace.\n";
    }
    Ok(Some(out))
}

/// What an undo in a conversation needs besides it.
pub struct UndoGround<'a> {
    pub config: &'a Config,
    /// The workspace of the conversation.
    pub workspace: &'a Workspace,
    pub agent: &'a Agent,
}

/// Takes the last `messages` messages of a conversation back, and what they changed in files. Returns what was done.
///
/// # Errors
/// A sentence: there are not so many, files changed since and it is not to be `forced`, or the disk fails.
pub fn take_back(
    conversation: &mut Conversation,
    ground: &UndoGround<'_>,
    messages: usize,
    forced: bool,
) -> Result<String, String> {
    let history = conversation.file_history().ok_or(UNKEPT)?;
    let from = conversation.session.find_undo(messages).ok_or("there are not so many messages of yours")?;
    let session = &conversation.session;
    let put_back = restore_files(ground.config, session, history, Direction::Undo(from), forced, false)?;
    let unkept = || explain_unkept(session, from).map(str::to_owned);
    let mut told = put_back.or_else(unkept).unwrap_or_default();
    let said = ground.edit(conversation, |session| session.undo(messages, Timestamp::now()))?.unwrap_or_default();
    told.extend(["Taken back: ", &text::one_line(&said, 200), "\n/redo brings it back."]);
    Ok(told)
}

/// Takes the last undo back.
///
/// # Errors
/// As [`take_back`].
pub fn bring_back(
    conversation: &mut Conversation,
    ground: &UndoGround<'_>,
    forced: bool,
) -> Result<String, String> {
    let history = conversation.file_history().ok_or(UNKEPT)?;
    let session = &conversation.session;
    let files = restore_files(ground.config, session, history, Direction::Redo, forced, false)?;
    let has_messages = session.can_redo();
    if files.is_none() && !has_messages {
        return Err("there is no undo to take back".to_owned());
    }
    let mut told = files.unwrap_or_default();
    if has_messages {
        ground.edit(conversation, |session| session.redo(Timestamp::now()))?;
        told += "The conversation is as it was before the undo.";
    }
    Ok(told.trim_end().to_owned())
}

impl UndoGround<'_> {
    fn edit<T>(
        &self,
        conversation: &mut Conversation,
        change: impl FnOnce(Session) -> Result<T, SessionError>,
    ) -> Result<T, String> {
        let store = assembly::open_store(self.config);
        let edited = assembly::edit_session(&store, self.workspace, self.agent, conversation, change);
        edited.map_err(|error| error.message)
    }
}

/// What the words of an undo say: how many messages of the session, one without a number, or those since a checkpoint; and
/// whether it is forced.
///
/// # Errors
/// A sentence that says what to write.
pub fn parse_undo(session: &Session, words: &str) -> Result<(usize, bool), String> {
    let (mut messages, mut forced) = (1, false);
    for word in words.split_whitespace() {
        match word.parse::<usize>() {
            Ok(number) if number > 0 => messages = number,
            _ if word == FORCE => forced = true,
            _ if session.list_checkpoints().any(|name| name == word) => messages = session.count_since(word)?,
            _ => return Err(format!("write a number of messages, a checkpoint, or {FORCE}")),
        }
    }
    if messages == 0 {
        return Err("nothing was said since that checkpoint".to_owned());
    }
    Ok((messages, forced))
}

/// The reasons for which a plan needs force.
fn list_doubts(plan: &RestorePlan) -> Vec<String> {
    let list = |paths: &[String]| {
        let shown = paths.iter().take(MOST_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let rest = paths.len().saturating_sub(MOST_SHOWN);
        if rest == 0 { shown } else { format!("{shown} and {rest} more") }
    };
    let mut why = Vec::new();
    if !plan.changed_since.is_empty() {
        why.push(format!("changed since by something else: {}", list(&plan.changed_since)));
    }
    if !plan.unsure.is_empty() {
        let paths = list(&plan.unsure);
        why.push(format!("changed during or after a call that was killed, maybe by something else: {paths}"));
    }
    if !plan.lost.is_empty() {
        why.push(format!("the former content is not kept: {}", list(&plan.lost)));
    }
    why.extend(plan.gaps.iter().cloned());
    why
}

/// A line for each path.
pub fn describe_plan(plan: &RestorePlan, verb: &str) -> String {
    let count = plan.changes.len();
    let mut out = format!("{verb} {count} {}:\n", if count == 1 { "path" } else { "paths" });
    for (change, lines) in plan.changes.iter().zip(&plan.lines).take(MOST_SHOWN) {
        let what = describe_change(change);
        let lines = lines.map_or_else(String::new, |lines| format!("  {lines}"));
        let _ = writeln!(out, "  {what} {}{lines}", change.path);
    }
    if count > MOST_SHOWN {
        let _ = writeln!(out, "  and {} more", count - MOST_SHOWN);
    }
    let lost = plan.lost.iter().map(|path| format!("lost    {path}  its former content is not kept"));
    for line in lost.chain(plan.gaps.iter().cloned()) {
        let _ = writeln!(out, "  {line}");
    }
    out
}

fn describe_change(change: &PathChange) -> &'static str {
    match (&change.before, &change.after) {
        (_, PathState::Absent) => "delete ",
        (PathState::Absent, _) => "create ",
        _ => "change ",
    }
}

/// The changes since a step as one diff.
///
/// # Errors
/// A sentence.
pub fn format_diff(history: &FileHistory, from: u64) -> Result<String, String> {
    let read = |state: &PathState| match state {
        PathState::File { .. } => {
            history.read_kept(state).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        }
        _ => Some(String::new()),
    };
    let mut out = String::new();
    for change in history.compare(from)? {
        let (before, after) = (read(&change.before), read(&change.after));
        match before.zip(after) {
            Some((before, after)) if before != after => out += &diff::unify(&change.path, &before, &after),
            _ => {
                let _ = writeln!(out, "{} {}", describe_change(&change).trim_end(), change.path);
            }
        }
    }
    Ok(out)
}
