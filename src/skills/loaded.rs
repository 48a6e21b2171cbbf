//! Which skills this session has loaded: shared by the tool that loads them and whoever shows the catalogue.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// The names of the skills whose instructions are in the conversation.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The path of each, by its name.
    names: Mutex<BTreeMap<String, String>>,
}

impl Loaded {
    /// Whether the skill was not loaded before. `path` is where its instructions stand.
    pub fn insert(&self, name: &str, path: &str) -> bool {
        self.names().insert(name.to_owned(), path.to_owned()).is_none()
    }

    /// Whether the skill of this name was loaded.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.names().contains_key(name)
    }

    /// Its instructions are no longer in the conversation, so that loading it gives them again. Returns its path.
    pub fn forget(&self, name: &str) -> Option<String> {
        self.names().remove(name)
    }

    /// Nothing is loaded any more: a conversation that begins anew.
    pub fn clear(&self) {
        self.names().clear();
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.names.lock().expect("no holder of the names panics")
    }
}
