//! Which skills this session has loaded: shared by the tool that loads them and whoever shows the catalogue.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

/// The names of the skills whose instructions are in the conversation.
#[derive(Debug, Default)]
pub struct Loaded {
    names: Mutex<BTreeSet<String>>,
}

impl Loaded {
    /// Whether the skill was not loaded before.
    pub fn insert(&self, name: &str) -> bool {
        self.names().insert(name.to_owned())
    }

    /// Whether the skill of this name was loaded.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.names().contains(name)
    }

    /// Its instructions are no longer in the conversation, so that loading it gives them again.
    pub fn forget(&self, name: &str) {
        self.names().remove(name);
    }

    /// Nothing is loaded any more: a conversation that begins anew.
    pub fn clear(&self) {
        self.names().clear();
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.names.lock().expect("no holder of the names panics")
    }
}
