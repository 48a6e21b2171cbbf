//! The store of sessions: `DIR/WORKSPACE/ID.jsonl`, found by id, by a prefix of an id, or as a workspace's latest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::SystemTime;

use jiff::Timestamp;

use crate::base::text;

use super::error::SessionError;
use super::header::no_log;
use super::id::workspace_slug;
use super::lines::Far;
use super::listing::{ListedSessions, SessionSummary, id_of, open_log, read_summary, sort_newest};
use super::log::Log;
use super::replay::{self, INTERRUPTED, Replayed};
use super::{About, Partial, Session};

type Tell = Arc<dyn Fn(Far) + Send + Sync>;

/// The directory of all sessions.
#[derive(Clone)]
pub struct Store {
    dir: PathBuf,
    tell: Tell,
}

impl Store {
    /// A store below `dir`, which is created with the first session.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), tell: Arc::new(|_| {}) }
    }

    /// The same, where `tell` hears how far a reading is.
    pub fn watch_reading(self, tell: impl Fn(Far) + Send + Sync + 'static) -> Self {
        Self { tell: Arc::new(tell), ..self }
    }

    /// A new session. Nothing is written before its first message.
    pub fn create(&self, about: About<'_>, now: Timestamp) -> Session {
        Session::new(about, None, now, Some(self))
    }

    /// A new session of a helper, called in the session `parent`.
    pub fn create_child(&self, about: About<'_>, parent: &str, now: Timestamp) -> Session {
        Session::new(about, Some(parent), now, Some(self))
    }

    /// Opens a session to continue it: locked, repaired, and settled if it was interrupted. The warnings name the
    /// repairs.
    ///
    /// # Errors
    /// There is no such session, it is in use, or its log cannot be read or written.
    pub fn open(&self, id: &str, now: Timestamp) -> Result<(Session, Vec<String>), SessionError> {
        let path = self.find(id)?;
        open_log(&path)?;
        let mut log = Log::open(&path, &id_of(&path))?;
        let file = log.file().expect("it was opened");
        let replayed = replay::replay_log(&path, file, None, &*self.tell)?;
        log.cut(replayed.whole, replayed.ends_with_newline)?;
        let (mut session, warnings) = restore_session(&path, replayed, Some(log))?;
        session.settle(INTERRUPTED, now)?;
        Ok((session, warnings))
    }

    /// Reads a session without changing it: entries recorded in the result are not written.
    ///
    /// # Errors
    /// There is no such session or its log cannot be read.
    pub fn read(&self, id: &str) -> Result<(Session, Vec<String>), SessionError> {
        let path = self.find(id)?;
        let (file, _) = open_log(&path)?;
        restore_session(&path, replay::replay_log(&path, &file, None, &*self.tell)?, None)
    }

    /// Reads a session as it was when its request `step` was sent, and whether that asked for a closing answer. Steps
    /// count from 1, those that were undone later among them.
    ///
    /// # Errors
    /// There is no such session or step, or its log cannot be read.
    pub fn read_before(&self, id: &str, step: u64) -> Result<(Session, bool), SessionError> {
        let path = self.find(id)?;
        let (file, _) = open_log(&path)?;
        let found = replay::find_step(&file, step).map_err(|error| SessionError::io(&path, "read", error))?;
        let (length, closing) = found.map_err(|steps| SessionError::NoStep { id: id_of(&path), step, steps })?;
        let replayed = replay::replay_log(&path, &file, Some(length), &*self.tell)?;
        Ok((restore_session(&path, replayed, None)?.0, closing))
    }

    /// Reads a session as [`Store::open`] opens it, without changing it.
    ///
    /// # Errors
    /// There is no such session or its log cannot be read.
    pub fn read_settled(&self, id: &str, now: Timestamp) -> Result<(Session, Vec<String>), SessionError> {
        let (mut session, warnings) = self.read(id)?;
        session.settle(INTERRUPTED, now)?;
        Ok((session, warnings))
    }

    /// The session of this workspace that was written last, leaving out those of helpers, and the logs after it that
    /// cannot be read.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn latest(
        &self,
        workspace: &Path,
        now: Timestamp,
    ) -> Result<(Option<SessionSummary>, Vec<SessionError>), SessionError> {
        let mut left_out = Vec::new();
        for (written, path) in sort_newest(logs_in(&self.dir.join(workspace_slug(workspace)))?, now) {
            match read_summary(&path, written) {
                Ok(summary) if summary.parent.is_none() => return Ok((Some(summary), left_out)),
                Ok(_) => {}
                Err(error) => left_out.push(error),
            }
        }
        Ok((None, left_out))
    }

    /// The sessions of a workspace, or of all, those written last first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self, workspace: Option<&Path>, now: Timestamp) -> Result<ListedSessions, SessionError> {
        let logs = match workspace {
            Some(workspace) => logs_in(&self.dir.join(workspace_slug(workspace)))?,
            None => self.logs()?,
        };
        let mut listed = ListedSessions::default();
        for read in self.read_summaries(&sort_newest(logs, now)) {
            match read {
                Ok(summary) => listed.sessions.push(summary),
                Err(error) => listed.left_out.push(error),
            }
        }
        Ok(listed)
    }

    /// The summaries of these logs, in their order. Many are read on all cores.
    fn read_summaries(&self, logs: &[(SystemTime, PathBuf)]) -> Vec<Result<SessionSummary, SessionError>> {
        /// The fewest logs that are worth a thread.
        const FEW: usize = 128;
        let (all, done) = (logs.len() as u64, AtomicU64::new(0));
        let read = |(written, path): &(SystemTime, PathBuf)| {
            (self.tell)(Far::Logs(done.fetch_add(1, Ordering::Relaxed), all));
            read_summary(path, *written)
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let part = logs.len().div_ceil(cores).max(FEW);
        thread::scope(|scope| {
            let parts = logs.chunks(part).map(|logs| scope.spawn(|| logs.iter().map(read).collect::<Vec<_>>()));
            let parts: Vec<_> = parts.collect();
            parts.into_iter().flat_map(|part| part.join().expect("reading never panics")).collect()
        })
    }

    /// The log of the session with this id, with the only id that has this prefix, or with this title.
    ///
    /// # Errors
    /// None matches, or more than one.
    pub fn find(&self, id: &str) -> Result<PathBuf, SessionError> {
        let logs = self.logs()?;
        if let Some(exact) = logs.iter().find(|path| id_of(path) == id) {
            return Ok(exact.clone());
        }
        let mut begin_so = logs.iter().filter(|path| !id.is_empty() && id_of(path).starts_with(id));
        match (begin_so.next(), begin_so.next()) {
            (Some(only), None) => Ok(only.clone()),
            (Some(first), Some(second)) => Err(refuse_ambiguous(id, [first, second].into_iter().chain(begin_so))),
            _ => {
                if let Some(path) = find_by_title(&logs, id)? {
                    return Ok(path);
                }
                let ids: Vec<String> = logs.iter().map(|path| id_of(path)).collect();
                let hint = match text::find_nearest(id, ids.iter().map(String::as_str)).as_slice() {
                    [] => String::new(),
                    near => format!("; did you mean {}?", near.join(" or ")),
                };
                Err(SessionError::Unknown { id: id.to_owned(), hint })
            }
        }
    }

    /// What a list shows of the session with this id, or with the only id that has this prefix, or this title.
    ///
    /// # Errors
    /// There is no such session, or its log cannot be read.
    pub fn summarize(&self, id: &str) -> Result<SessionSummary, SessionError> {
        read_summary(&self.find(id)?, SystemTime::UNIX_EPOCH)
    }

    /// The path of a session's log.
    pub(super) fn path(&self, workspace: &Path, id: &str) -> PathBuf {
        self.dir.join(workspace_slug(workspace)).join(format!("{id}.jsonl"))
    }

    /// Every log, by id.
    pub(super) fn logs(&self) -> Result<Vec<PathBuf>, SessionError> {
        let mut logs = Vec::new();
        for dir in list_entries(&self.dir)?.into_iter().filter(|path| path.is_dir()) {
            logs.extend(logs_in(&dir)?);
        }
        logs.sort_by_key(|path| id_of(path));
        Ok(logs)
    }
}

/// The log of the only session with this title, whatever the case of its letters.
fn find_by_title(logs: &[PathBuf], title: &str) -> Result<Option<PathBuf>, SessionError> {
    let title = title.trim().to_lowercase();
    let has_title = |path: &&PathBuf| {
        let summary = read_summary(path, SystemTime::UNIX_EPOCH);
        summary.is_ok_and(|summary| summary.parent.is_none() && summary.title.to_lowercase() == title)
    };
    if title.is_empty() {
        return Ok(None);
    }
    let mut found = logs.iter().filter(has_title);
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => Err(refuse_ambiguous(&title, [first, second].into_iter().chain(found))),
        (first, _) => Ok(first.cloned()),
    }
}

/// The refusal of a name that several sessions have.
fn refuse_ambiguous<'a>(id: &str, logs: impl Iterator<Item = &'a PathBuf>) -> SessionError {
    const SHOWN: usize = 5;
    let ids = logs.map(|path| id_of(path)).take(SHOWN).collect::<Vec<_>>().join(", ");
    SessionError::Ambiguous { id: id.to_owned(), ids }
}

fn restore_session(
    path: &Path,
    replayed: Replayed,
    log: Option<Log>,
) -> Result<(Session, Vec<String>), SessionError> {
    let Replayed { header, transcript, originals, partial: (text, reasoning), warnings, .. } = replayed;
    let started_at = header.created_at.parse().map_err(|error| no_log(path, error))?;
    // The text in the log counts as logged.
    let (logged_text, logged_reasoning) = (text.len(), reasoning.len());
    let partial = Partial { text, reasoning, logged_text, logged_reasoning };
    let originals = Arc::new(originals);
    Ok((Session { header, started_at, transcript, partial, log, originals }, warnings))
}

pub(super) fn logs_in(dir: &Path) -> Result<Vec<PathBuf>, SessionError> {
    Ok(list_entries(dir)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect())
}

/// The entries of a directory; empty if it does not exist.
fn list_entries(dir: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let listing = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing,
    };
    listing
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(|error| SessionError::io(dir, "listed", error))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use jiff::SignedDuration;

    use super::super::tests::{NOON, about, begun, path, user};
    use super::*;

    #[test]
    fn sessions_are_found_by_the_beginning_of_their_id() {
        let (_dir, store, first) = begun();
        let mut later = store.create(about(Path::new("/w/other")), NOON + SignedDuration::from_secs(1));
        later.say(user("  what is\nthis "), NOON).expect("written");
        let id = first.id();
        assert_eq!(store.find(id).expect("exact"), path(&first));
        assert_eq!(store.find(&id[..17]).expect("unique"), path(&first));
        let error = store.find("2027").expect_err("both").to_string();
        assert!(error.contains(id) && error.contains(later.id()), "{error}");
        let error = store.find("20270115-080000-").err();
        assert!(error.is_none(), "{error:?}");
        let mistyped = format!("{}_", &id[..20]);
        assert!(store.find(&mistyped).expect_err("none").to_string().contains(&format!("did you mean {id}")));
        assert!(matches!(store.find(""), Err(SessionError::Unknown { .. })));

        let told = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&told);
        let watched = store.clone().watch_reading(move |far| hears.lock().expect("one thread").push(far));
        let all = watched.list(None, NOON).expect("readable").sessions;
        assert_eq!(*told.lock().expect("one thread"), [Far::Logs(0, 2), Far::Logs(1, 2)]);
        assert_eq!(
            all.iter().map(|summary| summary.title.as_str()).collect::<Vec<_>>(),
            ["what is this", "hello"]
        );
        let latest = |workspace| store.latest(Path::new(workspace), NOON).expect("readable").0;
        assert_eq!(latest("/w/project").expect("one").id, id);
        assert_eq!(latest("/w/none"), None);
    }
}
