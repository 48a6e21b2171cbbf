//! State that a conversation keeps beside its items: keys that tools set, the files that were read, the loaded
//! skills. The log holds every change, so a reopened session has the same state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conversation::knowledge::{FileChange, SkillChange};

/// A change of the state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateChange {
    /// Keys that tools set; `null` removes a key.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub changes: Map<String, Value>,
    /// Files that were read or written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// Skills that were loaded or unloaded, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillChange>,
}

impl StateChange {
    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.files.is_empty() && self.skills.is_empty()
    }
}

/// The state after all changes so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionState {
    /// Keys that tools set: prompts read them as `state`.
    pub keys: Map<String, Value>,
    /// The digest of each file as it was last seen, by its path.
    pub files: BTreeMap<String, String>,
    /// The loaded skills, in the order in which they were loaded.
    pub skills: Vec<SkillChange>,
}

impl SessionState {
    pub(super) fn apply(&mut self, change: StateChange) {
        for (key, value) in change.changes {
            if value.is_null() {
                self.keys.shift_remove(&key);
            } else {
                self.keys.insert(key, value);
            }
        }
        self.files.extend(change.files.into_iter().map(|file| (file.path, file.digest)));
        for skill in change.skills {
            if let SkillChange::Unloaded { name } = &skill {
                self.skills.retain(|known| known.name() != name);
            } else {
                self.skills.push(skill);
            }
        }
    }
}
