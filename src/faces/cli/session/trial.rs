//! `agent session apply / discard`: what becomes of a trial.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::agent::assembly;
use crate::config::Config;
use crate::conversation::session::Session;
use crate::faces::chat::undo::{describe_plan, format_diff, open_history};
use crate::files::file_name;
use crate::files::history::{Direction, FileHistory, PathChange, PathState, RestorePlan, Restored};
use crate::files::workspace::Workspace;

use super::super::setup::CliSetup;
use super::super::signals::Signals;
use super::super::{CommandFailure, CommandOutcome, exit, note_progress, print_visible, warn_person};

/// The names that are tried for a version beside a file.
const MOST_NAMES: usize = 20;

/// The mode of a directory that is made for such a version.
const ROOM_MODE: u32 = 0o755;

/// Puts the changes of a trial into the workspace. What changed there meanwhile stays, with the trial's version beside it.
pub(super) fn apply_trial(
    setup: &CliSetup,
    config: &Config,
    workspace: &Workspace,
    id: Option<String>,
    paths: &[PathBuf],
    dry_run: bool,
) -> CommandOutcome {
    let (session, history) = open_trial(setup, config, workspace, id, dry_run)?;
    assembly::enter_session(config, &session, !dry_run)?;
    let failed = |why: String| CommandFailure::word(exit::FAILED, why);
    let outside = assembly::find_outside(config, &session);
    let workspace = outside.as_path();
    if dry_run && paths.is_empty() {
        return print_visible(&format_diff(&history, 0).map_err(failed)?);
    }
    let place = session.describe().workspace;
    let within = paths.iter().map(|path| path.strip_prefix(place).or(path.strip_prefix(".")).unwrap_or(path));
    let paths: Vec<PathBuf> = within.map(Path::to_path_buf).collect();
    require_changes(&history, &paths)?;
    let mut plan = history.plan_transfer(workspace, &paths).map_err(failed)?;
    let since: BTreeSet<String> = plan.changed_since.drain(..).collect();
    let is_conflict = |change: &PathChange| since.contains(&change.path);
    let conflicts: Vec<PathChange> = plan.changes.iter().filter(|change| is_conflict(change)).cloned().collect();
    plan.retain_changes(|change| !is_conflict(change));
    if dry_run {
        return print_visible(&describe_plan(&plan, "Would apply"));
    }
    assembly::note_writes(config);
    Signals::listen()?;
    let Restored { made, left, failed: mut told } = history.transfer(workspace, &plan.changes).map_err(failed)?;
    let made: BTreeSet<String> = made.into_iter().map(|change| change.path).collect();
    plan.retain_changes(|change| made.contains(&change.path));
    if !plan.changes.is_empty() {
        note_progress(describe_plan(&plan, "Applied").trim_end());
    }
    let id = session.id();
    let Some(copy) = session.find_copy() else { return Ok(exit::FAILED) };
    told.extend(left.into_iter().chain(plan.gaps));
    for path in &plan.lost {
        told.push(format!("{path}: over 16 MiB, or not readable; it is in {}", copy.display()));
    }
    // What is nowhere but in the copy.
    let mut is_needed = !told.is_empty();
    let mut beside = Vec::new();
    for change in conflicts {
        let kept = keep_beside(&history, workspace, change, &mut beside);
        is_needed |= kept.is_err();
        told.push(kept.unwrap_or_else(|why| format!("{why}; the trial's version is in {}", copy.display())));
    }
    for line in &told {
        note_progress(line);
    }
    let has_rest = || history.plan_transfer(workspace, &[]).is_ok_and(|left| !left.changes.is_empty());
    if is_needed || !paths.is_empty() && has_rest() {
        note_progress(&format!("The rest waits: agent session apply {id}, or agent session discard {id}"));
    } else {
        history.end_trial(Some(workspace), beside).map_err(failed)?;
        assembly::remove_trial(config, copy)?;
    }
    if plan.changes.is_empty() && told.is_empty() {
        note_progress("Nothing is left to apply.");
    }
    Ok(if told.is_empty() { exit::DONE } else { exit::FAILED })
}

/// Refuses paths where a trial changed nothing.
fn require_changes(history: &FileHistory, paths: &[PathBuf]) -> Result<(), CommandFailure> {
    let own = history.plan(Direction::Undo(0)).map_err(|why| CommandFailure::word(exit::FAILED, why))?;
    let RestorePlan { changes, lost, .. } = own.unwrap_or_default();
    let changed: Vec<&String> = changes.iter().map(|change| &change.path).chain(&lost).collect();
    let is_unknown =
        |path: &&PathBuf| !changed.iter().any(|changed| file_name::unquote(changed).starts_with(path.as_path()));
    let Some(path) = paths.iter().find(is_unknown) else { return Ok(()) };
    let path = file_name::quote(path);
    Err(CommandFailure::usage(format!("the trial changed nothing at {path}; nothing was applied")))
}

/// Writes the trial's version of a file beside that of the workspace, which changed too. Returns a sentence; so is the
/// error, if that fails. `made` takes what that changes.
fn keep_beside(
    history: &FileHistory,
    workspace: &Path,
    change: PathChange,
    made: &mut Vec<PathChange>,
) -> Result<String, String> {
    let PathChange { path, after, .. } = change;
    if !matches!(after, PathState::File { .. } | PathState::Link { .. }) {
        return Ok(format!("{path}: it changed in the workspace too, and stays as it is there"));
    }
    let names =
        (1..MOST_NAMES).map(|n| if n == 1 { format!("{path}.trial") } else { format!("{path}.trial-{n}") });
    for name in names {
        let beside = PathChange { path: name.clone(), before: PathState::Absent, after: after.clone() };
        let is_there = |path: &Path| workspace.join(path).symlink_metadata().is_ok();
        // An earlier try may have written it.
        let is_written = history.is_found(&workspace.join(beside.to_path()), &after);
        if !is_written && is_there(&beside.to_path()) {
            continue;
        }
        // Its directory may be gone.
        let place = beside.to_path().into_owned();
        let missing = place.ancestors().skip(1).take_while(|above| !is_there(above));
        let rooms =
            missing.map(|above| PathChange::new(above, PathState::Absent, PathState::Dir { mode: ROOM_MODE }));
        let changes: Vec<PathChange> = rooms.chain([beside]).collect();
        let restored = if is_written {
            Restored { made: changes, ..Restored::default() }
        } else {
            history.transfer(workspace, &changes)?
        };
        made.extend(restored.made);
        return match restored.failed.into_iter().next() {
            Some(why) => Err(why),
            None => {
                Ok(format!("{path}: it changed in the workspace too; the trial's version is beside it, {name}"))
            }
        };
    }
    Err(format!("{path}: there are too many versions beside it"))
}

/// Forgets a trial: its copy is removed, the conversation stays.
pub(super) fn discard_trial(
    setup: &CliSetup,
    config: &Config,
    workspace: &Workspace,
    id: Option<String>,
) -> CommandOutcome {
    let (session, history) = open_trial(setup, config, workspace, id, false)?;
    // A layer that cannot be entered can be removed, and so can one whose changes are not known any more.
    let outside =
        assembly::enter_session(config, &session, false).map(|()| assembly::find_outside(config, &session));
    let _ = history.end_trial(outside.as_deref().ok(), Vec::new());
    session.find_copy().map_or(Ok(false), |copy| assembly::remove_trial(config, copy))?;
    note_progress(&format!("The changes of session {} are gone. Its conversation is kept.", session.id()));
    Ok(exit::DONE)
}

/// The session of a trial whose copy is still there: the given one, else the latest of this workspace. Nobody works in it
/// meanwhile, unless it is only read.
fn open_trial(
    setup: &CliSetup,
    config: &Config,
    workspace: &Workspace,
    id: Option<String>,
    is_read: bool,
) -> Result<(Session, FileHistory), CommandFailure> {
    let id = match id {
        Some(id) => Some(id),
        None => setup.find_latest(config, workspace)?,
    };
    let id =
        id.ok_or_else(|| CommandFailure::usage("this workspace has no session: agent run --trial makes one"))?;
    let store = setup.store(config);
    let opened = if is_read { store.read(&id) } else { store.open(&id, Timestamp::now()) };
    // And its bar.
    drop(store);
    let (session, warnings) = opened.map_err(|error| CommandFailure::new(exit::USAGE, error))?;
    for warning in &warnings {
        warn_person(warning);
    }
    match open_history(&session).filter(|_| session.find_copy().is_some()) {
        Some(history) => Ok((session, history)),
        None => {
            let why = if session.describe().copy.is_some() { "its copy is gone" } else { "it was none" };
            Err(CommandFailure::usage(format!("session {} has no trial that waits: {why}", session.id())))
        }
    }
}
