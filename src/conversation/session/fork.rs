//! Forks a session: a copy of its log under another id, which goes on by itself.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;

use super::entry::LogHeader;
use super::error::SessionError;
use super::header::{FoundHeader, no_log, read_header};
use super::id::{format_stamp, session_id};
use super::lines::LogLines;
use super::listing::open_log;
use super::log::Log;
use super::store::Store;
use crate::conversation::spill;
use crate::files::private::make_private_dir;

impl Store {
    /// Copies a session as far as it is written, also one that is in use. Returns the id of the copy. What the first one
    /// changed in files stays its own to undo.
    ///
    /// # Errors
    /// There is no such session, its log cannot be read, or the copy cannot be written.
    pub fn fork(&self, id: &str, now: Timestamp) -> Result<String, SessionError> {
        /// What is copied at a time, in bytes.
        const BLOCK: usize = 1 << 20;
        let path = self.find(id)?;
        let unreadable = |error| SessionError::io(&path, "read", error);
        let (file, _) = open_log(&path)?;
        let mut lines = LogLines::new(file);
        let first = lines.read().map_err(unreadable)?.ok_or_else(|| no_log(&path, "it is empty"))?.to_vec();
        let FoundHeader { header, is_gone, .. } = read_header(&path, &first)?;
        let header = LogHeader {
            forked_from: Some(header.id),
            id: session_id(now, fastrand::u32(..)),
            created_at: format_stamp(now),
            parent: None,
            copy: None,
            is_layer: false,
            ..header
        };
        let copy = path.with_file_name(format!("{}.jsonl", header.id));
        copy_texts(&path, &copy).map_err(|error| SessionError::io(&copy, "written", error))?;
        let mut log = Log::new(copy);
        log.push(&header);
        if is_gone {
            log.push_line(&first);
        }
        while let Some(line) = lines.read().map_err(unreadable)?.filter(|line| line.ends_with(b"\n")) {
            if log.push_line(line) > BLOCK {
                log.write()?;
            }
        }
        log.sync()?;
        Ok(header.id)
    }
}

/// Copies the texts beside a log.
fn copy_texts(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (spill::place_beside(from), spill::place_beside(to));
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    make_private_dir(&to)?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOON, begun, step, texts, user};

    #[test]
    fn a_fork_has_what_was_said_and_goes_on_by_itself() {
        let (_dir, store, mut session) = begun();
        step(&mut session, "", &["a"]);
        session.say(user("more"), NOON).expect("written");
        let forked = store.fork(session.id(), NOON).expect("also while it is in use");
        session.say(user("only there"), NOON).expect("written");
        let (mut fork, warnings) = store.open(&forked, NOON).expect("sound");
        assert_eq!((fork.id(), warnings.len()), (forked.as_str(), 0));
        assert_eq!(texts(fork.items()), texts(&session.items()[..session.items().len() - 1]));
        fork.say(user("only here"), NOON).expect("written");
        drop(fork);
        let again = store.read(&forked).expect("sound").0;
        assert_eq!(texts(again.items()).last().map(String::as_str), Some("only here"));
        assert!(!texts(session.items()).contains(&"only here".to_owned()));
    }
}
