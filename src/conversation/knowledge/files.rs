//! The files that a conversation has seen. A file that it has never read, or that has changed since, is not
//! overwritten.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::base::digest::hash_sha256;

/// The files that were read or written, with the digest of their content at that time.
#[derive(Debug, Default)]
pub struct Ledger {
    inner: Mutex<SeenFilesState>,
}

#[derive(Debug, Default)]
struct SeenFilesState {
    seen: HashMap<PathBuf, String>,
    /// Changes that are not in the log yet.
    news: Vec<FileChange>,
}

/// A file that was seen. Written to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The absolute path.
    pub path: String,
    /// SHA-256 of its content, in hexadecimal.
    pub digest: String,
}

/// The relation of a file to what the conversation last saw of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Familiarity {
    /// Its content is unchanged since the conversation last saw it.
    Current,
    /// It has changed since.
    Changed,
    /// The conversation has never seen it.
    Unseen,
}

impl Ledger {
    /// A ledger restored from the log: digests by path.
    pub fn restore<'a>(seen: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let seen = seen.into_iter().map(|(path, digest)| (PathBuf::from(path), digest.clone())).collect();
        Self { inner: Mutex::new(SeenFilesState { seen, news: Vec::new() }) }
    }

    /// Records `content` as the content of `path`.
    pub fn remember(&self, path: &Path, content: &[u8]) {
        let digest = hash_sha256([content]);
        let mut inner = self.inner();
        if inner.seen.get(path) == Some(&digest) {
            return;
        }
        // A path that is not UTF-8 is known only while this process runs.
        if let Some(text) = path.to_str() {
            inner.news.push(FileChange { path: text.to_owned(), digest: digest.clone() });
        }
        inner.seen.insert(path.to_path_buf(), digest);
    }

    /// Compares the current content of `path` with what was seen.
    pub fn familiarity(&self, path: &Path, content: &[u8]) -> Familiarity {
        match self.inner().seen.get(path) {
            None => Familiarity::Unseen,
            Some(then) if *then == hash_sha256([content]) => Familiarity::Current,
            Some(_) => Familiarity::Changed,
        }
    }

    /// The changes since the last call.
    pub fn take_news(&self) -> Vec<FileChange> {
        std::mem::take(&mut self.inner().news)
    }

    fn inner(&self) -> MutexGuard<'_, SeenFilesState> {
        self.inner.lock().expect("no holder of the ledger panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_ledger_knows_what_the_log_held() {
        let ledger = Ledger::default();
        ledger.remember(Path::new("/w/a"), b"one");
        ledger.remember(Path::new("/w/a"), b"one");
        let news = ledger.take_news();
        assert_eq!((news.len(), ledger.take_news().len()), (1, 0), "a change is handed out once");
        let again = Ledger::restore(news.iter().map(|file| (&file.path, &file.digest)));
        assert_eq!(again.familiarity(Path::new("/w/a"), b"one"), Familiarity::Current);
        assert_eq!(again.familiarity(Path::new("/w/a"), b"two"), Familiarity::Changed);
        assert_eq!(again.familiarity(Path::new("/w/b"), b"one"), Familiarity::Unseen);
    }
}
