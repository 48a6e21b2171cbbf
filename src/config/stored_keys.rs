//! Keys that a person handed over with `agent key set`: a file for this user alone. Each stands in for an environment
//! variable that is not set.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::secrets::Secret;
use crate::files::private::{make_private_dir, private_file};
use crate::files::regular::{read_regular, replace_file};

/// The stored keys, by the names of their variables: a line `NAME=KEY` for each.
#[derive(Debug, Clone)]
pub struct StoredKeys {
    path: PathBuf,
}

impl StoredKeys {
    /// The keys of this user; nothing is read or written yet.
    pub fn open(data_dir: &Path) -> Self {
        Self { path: data_dir.join("keys") }
    }

    /// The file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the keys; none if there is no file.
    ///
    /// # Errors
    /// The file cannot be read; the end of a sentence about it.
    pub fn read(&self) -> Result<BTreeMap<String, Secret>, String> {
        let text = read_regular(&self.path)?.unwrap_or_default();
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Ok(pairs.map(|(name, key)| (name.to_owned(), Secret::new(key.to_owned()))).collect())
    }

    /// Keeps a key, in place of an earlier one; `None` removes it. Returns true if there was one.
    ///
    /// # Errors
    /// The file cannot be read or written; it is as it was.
    pub fn put(&self, variable: &str, key: Option<&str>) -> io::Result<bool> {
        if let Some(dir) = self.path.parent() {
            make_private_dir(dir)?;
        }
        // Another process may keep one at the same time.
        let turn = private_file().append(true).create(true).open(self.path.with_added_extension("lock"))?;
        turn.lock()?;
        let mut keys = self.read().map_err(|why| io::Error::other(format!("it {why}")))?;
        let had = keys.remove(variable).is_some();
        keys.extend(key.map(|key| (variable.to_owned(), Secret::new(key.to_owned()))));
        let lines: Vec<String> = keys.iter().map(|(name, key)| format!("{name}={}\n", key.reveal())).collect();
        replace_file(&self.path, lines.concat().as_bytes())?;
        Ok(had)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_kept_at_once_are_all_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let names: Vec<String> = (0..16).map(|number| format!("KEY_{number}")).collect();
        std::thread::scope(|scope| {
            for name in &names {
                scope.spawn(|| StoredKeys::open(dir.path()).put(name, Some("k")).expect("kept"));
            }
        });
        assert_eq!(StoredKeys::open(dir.path()).read().expect("read").len(), names.len());
    }
}
