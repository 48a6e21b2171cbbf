//! Deletes sessions: their logs, the texts beside them, and the sessions of their helpers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::SessionError;
use super::listing::{id_of, read_parent};
use super::log::Log;
use super::store::{Store, logs_in};
use crate::conversation::spill;
use crate::files::history;

impl Store {
    /// Deletes the session with this id, or with the only id that has this prefix, and those of its helpers. Returns
    /// the ids.
    ///
    /// # Errors
    /// There is no such session, it is in use, or a file cannot be removed.
    pub fn delete(&self, id: &str) -> Result<Vec<String>, SessionError> {
        let path = self.find(id)?;
        let mut deleted = Vec::new();
        self.delete_family(&path, &mut deleted)?;
        Ok(deleted)
    }

    /// Checks that no other process uses the session with this id.
    ///
    /// # Errors
    /// There is no such session, or it is in use.
    pub fn check_free(&self, id: &str) -> Result<(), SessionError> {
        Log::open(&self.find(id)?, id).map(drop)
    }

    fn delete_family(&self, path: &Path, deleted: &mut Vec<String>) -> Result<(), SessionError> {
        let id = id_of(path);
        // Nobody writes to it while it is locked here.
        let log = Log::open(path, &id)?;
        let is_child = |log: &&PathBuf| read_parent(log).as_ref() == Some(&id);
        for child in self.logs()?.iter().filter(is_child) {
            self.delete_family(child, deleted)?;
        }
        match fs::remove_dir_all(spill::place_beside(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(SessionError::io(path, "deleted", error));
            }
            _ => {}
        }
        fs::remove_file(path).map_err(|error| SessionError::io(path, "deleted", error))?;
        let _ = fs::remove_file(history::journal_beside(path));
        // The former contents belong to all sessions of the workspace.
        if path.parent().is_some_and(|dir| logs_in(dir).is_ok_and(|logs| logs.is_empty())) {
            let _ = fs::remove_dir_all(history::contents_beside(path));
        }
        drop(log);
        deleted.push(id);
        Ok(())
    }
}
