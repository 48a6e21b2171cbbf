//! Trials: a run works in a layer over the workspace or a copy of it, and its changes are applied later, or never.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::agent::Conversation;
use crate::config::Config;
use crate::conversation::session::{Session, Store};
use crate::files::history::{ChangingCall, Direction, RestorePlan};
use crate::files::private::make_private_dir;
use crate::files::trial::{self, TrialCopy, find_layer, find_trial};
use crate::files::workspace::Workspace;
use crate::safety::sandbox::enter_layer;

use super::{SessionChoice, SetupError, open_store};

/// The directory in which a run works.
pub struct RunPlace {
    pub workspace: Workspace,
    /// The copy or the layer, if this run made one. It is removed with this, unless it is kept.
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

    /// Puts a layer over the workspace, unless something in it would then be seen by this program alone: what it keeps,
    /// and the `outputs` that a person wants there.
    ///
    /// # Errors
    /// Why there can be none.
    fn layered(config: &Config, workspace: &Workspace, outputs: &[&Path]) -> Result<Self, String> {
        let (dirs, sessions) = (&config.dirs, config.session_dir());
        let kept = [&dirs.config, &dirs.data, &dirs.state, &dirs.cache, &sessions].map(PathBuf::as_path);
        let source = workspace.git_root().unwrap_or(workspace.root());
        let is_in = |path: &&&Path| {
            std::path::absolute(path).is_ok_and(|path| workspace.resolve_path(&path).path.starts_with(source))
        };
        if let Some(path) = kept.iter().chain(outputs).find(is_in) {
            return Err(format!("{} is written in it", path.display()));
        }
        remove_abandoned(config);
        let layer = TrialCopy::make_layer(workspace, &trials_dir(config), &config.session_dir())?;
        let entered = enter_trial(config, workspace.root(), layer.workspace(), false)?;
        Ok(Self { workspace: entered.with_original(workspace), copy: Some(layer), note: None, warning: None })
    }

    /// Copies the workspace.
    ///
    /// # Errors
    /// It is too large, or the disk fails.
    pub(super) fn copied(config: &Config, workspace: &Workspace) -> Result<Self, SetupError> {
        remove_abandoned(config);
        let mut copy =
            TrialCopy::make(workspace, &trials_dir(config), &config.session_dir()).map_err(SetupError::usage)?;
        let copied = Workspace::open(copy.workspace()).map_err(SetupError::from_failure)?;
        let workspace = copied.with_original(workspace);
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

/// Enters the layer of a trial: from here on this process sees the workspace with the changes that are in `changed`, and
/// where [`find_outside`] says without them, to change it if `is_applied`. It must have one thread.
///
/// # Errors
/// The layer is gone, or the system refuses it.
pub fn enter_trial(
    config: &Config,
    workspace: &Path,
    changed: &Path,
    is_applied: bool,
) -> Result<Workspace, String> {
    let layer = find_layer(&trials_dir(config), changed, workspace);
    let layer = layer.ok_or_else(|| format!("{} is no layer of a trial", changed.display()))?;
    let beneath = beneath_dir(config);
    let entered = make_private_dir(&beneath)
        .and_then(|()| enter_layer(&layer.source, &layer.top, &beneath, is_applied))
        .and_then(|()| Workspace::open(workspace));
    entered.map(|workspace| workspace.with_layer(changed.to_path_buf())).map_err(|error| error.to_string())
}

/// Enters the layer of a session that is a trial in one, as [`enter_trial`] does.
///
/// # Errors
/// The system refuses it.
pub fn enter_session(config: &Config, session: &Session, is_applied: bool) -> Result<(), SetupError> {
    let Some(changed) = session.find_copy().filter(|_| session.describe().is_layer) else { return Ok(()) };
    let entered = enter_trial(config, session.describe().workspace, changed, is_applied);
    entered.map(drop).map_err(|why| refuse_layer(changed, &why))
}

fn refuse_layer(changed: &Path, why: &str) -> SetupError {
    SetupError::usage(format!("the trial cannot go on here ({why}): what it changed is in {}", changed.display()))
}

/// The workspace of a session without the changes of its trial.
pub fn find_outside(config: &Config, session: &Session) -> PathBuf {
    let about = session.describe();
    let changed = about.copy.filter(|_| about.is_layer);
    let layer = changed.and_then(|changed| find_layer(&trials_dir(config), changed, about.workspace));
    layer.map_or_else(|| about.workspace.to_path_buf(), |layer| beneath_dir(config).join(layer.inner))
}

/// Where a process that entered a layer sees what is beneath it: out of reach of commands, to which a rule may deny files
/// there, and never in the directory of a trial, which is removed.
fn beneath_dir(config: &Config) -> PathBuf {
    config.dirs.data.join("beneath")
}

/// The wish for a trial.
pub struct TrialWish<'a> {
    /// The files that a person wants this program to write.
    pub outputs: &'a [&'a Path],
    /// Hears why the workspace is copied, which may take a while.
    pub say: &'a dyn Fn(&str),
}

/// Chooses where a run works: in a new layer or copy for a trial, in that of the session that goes on, else in the
/// workspace. This process must have one thread.
///
/// # Errors
/// The session cannot be read, the workspace cannot be copied, or its layer cannot be entered.
pub fn choose_place(
    config: &Config,
    store: &Store,
    workspace: &Workspace,
    choice: &SessionChoice,
    trial: Option<&TrialWish<'_>>,
) -> Result<RunPlace, SetupError> {
    if let Some(TrialWish { outputs, say }) = trial {
        return RunPlace::layered(config, workspace, outputs).or_else(|why| {
            say(&format!("Copying the workspace for the trial, as it can have no layer here: {why}"));
            RunPlace::copied(config, workspace)
        });
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
    let entered = if summary.is_layer {
        let entered = enter_trial(config, Path::new(&summary.workspace), &copy, false);
        entered.map_err(|why| refuse_layer(&copy, &why))?
    } else {
        Workspace::open(&copy).map_err(SetupError::from_failure)?
    };
    Ok(RunPlace { workspace: entered.with_original(workspace), copy: None, note: Some(note), warning: None })
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
