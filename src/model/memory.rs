//! What servers refused, remembered for a week by host and model: a refusal that taught something is not met again by
//! the next run. The refusals are kept, not the lessons, so that a better rule reads them anew.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{ModelError, ModelErrorKind};
use crate::base::text;
use crate::files::private::make_private_dir;
use crate::files::regular::{read_regular, replace_file};

/// The time after which a server may have changed.
const KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The most refusals that are kept, the newest of them.
const MOST: usize = 200;

/// The remembered refusals of all servers: a file with a line of JSON for each. Without a path nothing is remembered.
#[derive(Debug, Default)]
pub struct RefusalMemory {
    path: Option<PathBuf>,
    /// Held while the file is changed.
    changing: Mutex<()>,
}

/// A refusal that changed the requests to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedRefusal {
    /// The time, by RFC 3339.
    at: String,
    /// `host[:port]`
    host: String,
    model: String,
    status: Option<u16>,
    /// The server's words.
    pub message: String,
}

impl RefusalMemory {
    /// The memory in this directory; nothing is read yet.
    pub fn open(state_dir: &Path) -> Self {
        Self { path: Some(state_dir.join("refusals.jsonl")), changing: Mutex::default() }
    }

    /// The refusals of this model that still count, the oldest first.
    pub fn recall(&self, host: &str, model: &str) -> Vec<RememberedRefusal> {
        let mut all = self.read();
        all.retain(|refusal| refusal.is_of(host, model));
        all
    }

    /// Remembers a refusal. What cannot be written is forgotten with this process.
    pub fn keep(&self, host: &str, model: &str, error: &ModelError) {
        let refusal = RememberedRefusal {
            at: Timestamp::now().to_string(),
            host: host.to_owned(),
            model: model.to_owned(),
            status: error.status,
            message: error.message.clone(),
        };
        self.change(|all| {
            all.retain(|known| !(known.is_of(host, model) && known.message == refusal.message));
            all.push(refusal);
        });
    }

    /// Forgets the refusals of this model.
    pub fn forget(&self, host: &str, model: &str) {
        self.change(|all| all.retain(|refusal| !refusal.is_of(host, model)));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<RememberedRefusal>)) {
        let Some(path) = &self.path else { return };
        let _changing = self.changing.lock().expect("no holder of the memory panics");
        let before = self.read();
        let mut all = before.clone();
        change(&mut all);
        all.drain(..all.len().saturating_sub(MOST));
        if all == before {
            return;
        }
        let lines: Vec<String> = all.iter().filter_map(|refusal| serde_json::to_string(refusal).ok()).collect();
        let text = lines.join("\n") + "\n";
        let written =
            path.parent().map_or(Ok(()), make_private_dir).and_then(|()| replace_file(path, text.as_bytes()));
        // The lesson holds for this process; the next one learns it again.
        drop(written);
    }

    /// All refusals that still count. A file that cannot be read teaches nothing.
    fn read(&self) -> Vec<RememberedRefusal> {
        let text = self.path.as_ref().and_then(|path| read_regular(path).ok().flatten()).unwrap_or_default();
        let since = Timestamp::now() - KEPT;
        let all = text.lines().filter_map(|line| serde_json::from_str::<RememberedRefusal>(line).ok());
        all.filter(|refusal| refusal.at.parse::<Timestamp>().is_ok_and(|at| at >= since)).collect()
    }
}

impl RememberedRefusal {
    fn is_of(&self, host: &str, model: &str) -> bool {
        self.host == host && self.model == model
    }

    /// The day on which it came: `2026-11-27`.
    pub fn day(&self) -> &str {
        text::take_head(&self.at, 10)
    }

    /// The refusal as it came.
    pub(super) fn to_error(&self) -> ModelError {
        let error = ModelError::new(ModelErrorKind::BadRequest, &self.model, &self.message);
        ModelError { status: self.status, ..error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_remembered_for_a_week_and_for_its_model_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let memory = RefusalMemory::open(dir.path());
        let error = |words: &str| ModelError {
            status: Some(400),
            ..ModelError::new(ModelErrorKind::BadRequest, "m", words)
        };
        assert_eq!(memory.recall("h", "m"), []);
        for words in ["no temperature", "no strict", "no temperature"] {
            memory.keep("h", "m", &error(words));
        }
        memory.keep("h", "other", &error("no tools"));
        let words = |host: &str, model: &str| -> Vec<String> {
            memory.recall(host, model).into_iter().map(|refusal| refusal.message).collect()
        };
        assert_eq!(words("h", "m"), ["no strict", "no temperature"]);
        assert_eq!(words("other", "m"), Vec::<String>::new());

        let path = dir.path().join("refusals.jsonl");
        let text = std::fs::read_to_string(&path).expect("it was written");
        let old = text.replacen(&text[7..11], "2020", 1);
        std::fs::write(&path, format!("{old}no JSON\n")).expect("writable");
        assert_eq!(words("h", "m"), ["no temperature"], "the first is too old");

        memory.forget("h", "m");
        assert_eq!((words("h", "m").len(), words("h", "other").len()), (0, 1));
    }

    #[test]
    fn without_a_directory_nothing_is_remembered() {
        let memory = RefusalMemory::default();
        memory.keep("h", "m", &ModelError::new(ModelErrorKind::BadRequest, "m", "no"));
        assert_eq!(memory.recall("h", "m"), []);
    }
}
