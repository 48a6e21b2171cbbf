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
    /// The files that were read in part: their digests, and the number of lines, from the first one on, that were read.
    begun: HashMap<PathBuf, (String, u64)>,
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
    /// Its content is unchanged since, but no more than this number of lines was read from its beginning.
    Begun { lines: u64 },
    /// It has changed since.
    Changed,
    /// The conversation has never seen it.
    Unseen,
}

impl Ledger {
    /// A ledger restored from the log: digests by path.
    pub fn restore<'a>(seen: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let seen = seen.into_iter().map(|(path, digest)| (PathBuf::from(path), digest.clone())).collect();
        Self { inner: Mutex::new(SeenFilesState { seen, ..SeenFilesState::default() }) }
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

    /// Records that of `content`, which has `total` lines, `lines` were read, from 1. The file is known once all were, in
    /// order.
    pub fn remember_lines(&self, path: &Path, content: &[u8], lines: &std::ops::Range<u64>, total: u64) {
        let digest = hash_sha256([content]);
        let begun =
            self.inner().begun.get(path).filter(|(then, _)| *then == digest).map_or(0, |(_, lines)| *lines);
        let read = if lines.start <= begun + 1 { begun.max(lines.end.saturating_sub(1)) } else { begun };
        self.inner().begun.insert(path.to_path_buf(), (digest, read));
        if read >= total {
            self.remember(path, content);
        }
    }

    /// Compares the current content of `path` with what was seen.
    pub fn familiarity(&self, path: &Path, content: &[u8]) -> Familiarity {
        let (inner, digest) = (self.inner(), hash_sha256([content]));
        match (inner.seen.get(path), inner.begun.get(path)) {
            (Some(then), _) if *then == digest => Familiarity::Current,
            (_, Some((then, lines))) if *then == digest => Familiarity::Begun { lines: *lines },
            (None, None) => Familiarity::Unseen,
            _ => Familiarity::Changed,
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

    #[test]
    fn a_file_is_known_once_all_its_lines_were_read() {
        let (ledger, path, text) = (Ledger::default(), Path::new("/w/a"), b"1\n2\n3\n");
        let now = |content: &[u8]| ledger.familiarity(path, content);
        for (lines, begun) in [(3..4, 0), (1..2, 1), (2..3, 2)] {
            ledger.remember_lines(path, text, &lines, 3);
            assert_eq!(now(text), Familiarity::Begun { lines: begun });
        }
        assert_eq!(now(b"other"), Familiarity::Changed);
        assert!(ledger.take_news().is_empty());
        ledger.remember_lines(path, text, &(3..4), 3);
        assert_eq!((now(text), ledger.take_news().len()), (Familiarity::Current, 1));
        ledger.remember_lines(path, text, &(2..3), 3);
        assert_eq!(now(text), Familiarity::Current);
    }
}
