//! Trials: a run works in a copy of the workspace, and its changes are applied later, or never.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::agent::Conversation;
use crate::config::Config;
use crate::conversation::session::Store;
use crate::files::history::{ChangingCall, Direction, RestorePlan};
use crate::files::trial::{self, TrialCopy, find_trial};
use crate::files::workspace::Workspace;

use super::{SessionChoice, SetupError, open_store};

/// The directory in which a run works.
pub struct RunPlace {
    pub workspace: Workspace,
    /// The copy, if this run made one. It is removed with this, unless it is kept.
    pub copy: Option<TrialCopy>,
    /// That an earlier trial goes on.
    pub note: Option<String>,
    /// What the copy lacks.
    pub warning: Option<String>,
}

impl RunPlace {
    /// The workspace itself.
    fn plain(workspace: &Workspace) -> Self {
        Self { workspace: workspace.clone(), copy: None, note: None, warning: None }
    }

    /// Copies the workspace.
    ///
    /// # Errors
    /// It is too large, or the disk fails.
    pub(super) fn copied(config: &Config, workspace: &Workspace) -> Result<Self, SetupError> {
        remove_abandoned(config);
        let mut copy =
            TrialCopy::make(workspace, &trials_dir(config), &config.session_dir()).map_err(SetupError::usage)?;
        let workspace = Workspace::open(copy.workspace()).map_err(SetupError::from_failure)?;
        let warning = copy.left_out.take();
        Ok(Self { workspace, copy: Some(copy), note: None, warning })
    }
}

/// Where the copies of workspaces are.
fn trials_dir(config: &Config) -> PathBuf {
    config.dirs.cache.join("trials")
}

/// Removes the copies of runs that were killed before a session named them.
fn remove_abandoned(config: &Config) {
    let abandoned = trial::find_abandoned(&trials_dir(config), &config.session_dir());
    if abandoned.is_empty() {
        return;
    }
    let Ok(listed) = open_store(config).list(None, Timestamp::now()) else { return };
    // A log that cannot be read may name any of them.
    if !listed.left_out.is_empty() {
        return;
    }
    for top in abandoned {
        let is_named = |copy: &PathBuf| copy.starts_with(&top);
        if listed.sessions.iter().filter_map(|session| session.copy.as_ref()).any(is_named) {
            trial::forget_maker(&top);
        } else {
            // What cannot be removed is tried again by the next trial.
            let _ = trial::remove_copy(&top);
        }
    }
}

/// Chooses where a run works: in a new copy for a trial, in that of the session that goes on, else in the workspace.
///
/// # Errors
/// The session cannot be read, or the workspace cannot be copied.
pub fn choose_place(
    config: &Config,
    store: &Store,
    workspace: &Workspace,
    choice: &SessionChoice,
    is_trial: bool,
) -> Result<RunPlace, SetupError> {
    if is_trial {
        return RunPlace::copied(config, workspace);
    }
    let all = trials_dir(config);
    let summary = match choice {
        SessionChoice::New | SessionChoice::Ephemeral | SessionChoice::Fork(_) => {
            return Ok(RunPlace::plain(workspace));
        }
        _ if !all.is_dir() => return Ok(RunPlace::plain(workspace)),
        SessionChoice::Id(id) => store.summarize(id).map_err(SetupError::session)?,
        SessionChoice::Latest => match store.latest(workspace.root(), Timestamp::now()) {
            Ok((Some(summary), _)) => summary,
            _ => return Ok(RunPlace::plain(workspace)),
        },
    };
    let Some(copy) = summary.copy.filter(|copy| find_trial(&all, copy).is_some()) else {
        return Ok(RunPlace::plain(workspace));
    };
    let note = format!(
        "The trial goes on: nothing reaches the workspace. `agent session apply {0}`, `discard {0}`",
        summary.id
    );
    let workspace = Workspace::open(&copy).map_err(SetupError::from_failure)?;
    Ok(RunPlace { workspace, copy: None, note: Some(note), warning: None })
}

/// Refuses a trial whose changes cannot be followed: they could not be applied.
///
/// # Errors
/// The reason.
pub fn require_history(conversation: &Conversation) -> Result<(), SetupError> {
    let Some(history) = conversation.file_history() else {
        return Err(SetupError::usage("a trial needs a session on disk: leave --ephemeral out"));
    };
    if history.is_followed() {
        return Ok(());
    }
    let why = history.take_warning().unwrap_or_default();
    Err(SetupError::usage(format!("no trial is possible here: {why}")))
}

/// Ends a trial: takes in what changed after its last call, and keeps the copy if anything did.
///
/// # Errors
/// The changes are not known.
pub(super) fn keep_trial(copy: TrialCopy, conversation: &Conversation) -> Result<(), SetupError> {
    if take_changes(conversation)? {
        copy.keep();
    }
    Ok(())
}

/// Takes in what changed in a trial after its last call. Returns true if anything changed at all.
///
/// # Errors
/// The changes are not known.
pub fn take_changes(conversation: &Conversation) -> Result<bool, SetupError> {
    let Some(history) = conversation.file_history() else { return Ok(false) };
    let item = conversation.session.ids().last().map_or(0, |id| id.number);
    let taken = history.take_rest(ChangingCall { item, call: "trial".to_owned() });
    let plan = taken
        .and_then(|()| history.plan(Direction::Undo(0)))
        .map_err(|why| SetupError::from_failure(anyhow::Error::msg(why)))?;
    Ok(plan.is_some_and(|plan| plan != RestorePlan::default()))
}

/// Removes the copy of a trial. Returns false if there is none any more.
///
/// # Errors
/// The disk fails.
pub fn remove_trial(config: &Config, copy: &Path) -> Result<bool, SetupError> {
    match find_trial(&trials_dir(config), copy) {
        Some(top) => trial::remove_copy(&top).map(|()| true).map_err(SetupError::from_failure),
        None => Ok(false),
    }
}
