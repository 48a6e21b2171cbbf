//! Sessions that are deleted: by a person, by their age, and by the setting `session.retention`, once a day.

use std::fs::{DirEntry, Metadata};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{Timestamp, Zoned};

use crate::config::Config;
use crate::conversation::session::{SessionError, SessionSummary, Store};
use crate::files::disk;
use crate::files::private::make_private_dir;
use crate::files::regular::{read_regular, replace_file};

use super::boundary::KEPT;
use super::{SetupError, remove_trial};

/// The file with the day on which sessions were last looked through.
const LOOKED: &str = "retention";

/// True if nobody wrote in a session for so long, and it is not kept by its name. Those of helpers go with their caller's.
pub fn is_old(summary: &SessionSummary, older_than: Duration, keep_named: bool, now: Timestamp) -> bool {
    let age = summary.updated_at.parse::<Timestamp>().map(|written| now.duration_since(written));
    let is_kept = summary.parent.is_some() || (keep_named && summary.named);
    !is_kept && age.is_ok_and(|age| age.unsigned_abs() > older_than && age.is_positive())
}

/// Deletes a session, and the copy of the workspace in which it works. Returns the ids of what was deleted.
///
/// # Errors
/// There is no such session, or it is in use; or its copy stays.
pub fn delete_session(config: &Config, store: &Store, id: &str) -> Result<Vec<String>, DeleteError> {
    let copy = store.summarize(id).ok().and_then(|summary| summary.copy);
    let deleted = store.delete(id).map_err(DeleteError::Session)?;
    if let Some(copy) = copy {
        remove_trial(config, &copy).map_err(DeleteError::Copy)?;
    }
    Ok(deleted)
}

/// Why a session was not deleted whole.
#[derive(Debug)]
pub enum DeleteError {
    Session(SessionError),
    /// The copy of the workspace is still there.
    Copy(SetupError),
}

/// What was moved aside after commands so long ago ([`crate::safety::sandbox`]), each in a directory of its own.
pub fn list_old_kept(config: &Config, older_than: Duration) -> Vec<PathBuf> {
    let is_old = |entry: &DirEntry| {
        let kept = entry.metadata().ok().filter(Metadata::is_dir)?;
        kept.modified().ok()?.elapsed().ok().filter(|age| *age > older_than)
    };
    let entries = std::fs::read_dir(config.dirs.state.join(KEPT)).into_iter().flatten().flatten();
    entries.filter(|entry| is_old(entry).is_some()).map(|entry| entry.path()).collect()
}

/// Deletes the sessions that are older than the settings keep them, once a day; those with a name stay. Returns their number.
pub fn apply_retention(config: &Config) -> usize {
    let Some(kept) = config.settings.session.retention.map(Duration::from) else { return 0 };
    let (now, today) = (Timestamp::now(), Zoned::now().date().to_string());
    let looked = config.dirs.state.join(LOOKED);
    if read_regular(&looked).ok().flatten().is_some_and(|day| day == today) {
        return 0;
    }
    // What cannot be written is looked through again.
    let _ = make_private_dir(&config.dirs.state).and_then(|()| replace_file(&looked, today.as_bytes()));
    let store = super::open_store(config);
    let listed = store.list(None::<&Path>, now).map(|listed| listed.sessions).unwrap_or_default();
    let old = listed.iter().filter(|summary| is_old(summary, kept, true, now));
    for dir in list_old_kept(config, kept) {
        let _ = disk::remove_tree(&dir);
    }
    // One that is in use stays.
    old.filter(|summary| delete_session(config, &store, &summary.id).is_ok()).count()
}
