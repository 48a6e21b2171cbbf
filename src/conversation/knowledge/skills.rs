//! The skills that a conversation has loaded. Shared by the tools that load them, the catalogue, and the builder
//! of the system prompt.

use std::sync::{Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::base::present;

/// The heading of the part of the system prompt that shows loaded skills.
pub const SECTION: &str = "Loaded Skill Instructions";

/// A skill was loaded or unloaded, or one of its files was read. Written to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum SkillChange {
    Loaded {
        name: String,
        /// Its `SKILL.md`.
        path: String,
        /// Identifies the version of the instructions.
        fingerprint: u64,
    },
    /// Lines of a file of a loaded skill.
    Referenced {
        name: String,
        file: String,
        offset: Option<usize>,
        limit: Option<usize>,
    },
    Unloaded {
        name: String,
    },
}

impl SkillChange {
    /// The name of the skill.
    pub fn name(&self) -> &str {
        match self {
            Self::Loaded { name, .. } | Self::Referenced { name, .. } | Self::Unloaded { name } => name,
        }
    }
}

/// The skills whose instructions the model has, in the order in which they were loaded.
#[derive(Debug, Default)]
pub struct Loaded {
    inner: Mutex<LoadedSkillsState>,
}

#[derive(Debug, Default)]
struct LoadedSkillsState {
    skills: Vec<LoadedSkill>,
    /// True if the loaded skills, or their instructions on display, changed since the last call.
    changed: bool,
    /// Changes that are not in the log yet.
    news: Vec<SkillChange>,
}

#[derive(Debug)]
struct LoadedSkill {
    name: String,
    path: String,
    fingerprint: u64,
    /// Under `skill_disclosure: system`, the instructions that the system prompt shows.
    instructions: Option<String>,
    /// Likewise for files: title and text.
    references: Vec<(String, String)>,
}

impl LoadedSkill {
    fn new(name: &str, path: &str, fingerprint: u64) -> Self {
        let (name, path) = (name.to_owned(), path.to_owned());
        Self { name, path, fingerprint, instructions: None, references: Vec::new() }
    }
}

impl Loaded {
    /// The skills restored from the log. Their instructions for the system prompt are not known yet.
    pub fn restore(changes: &[SkillChange]) -> Self {
        let entry = |change: &SkillChange| match change {
            SkillChange::Loaded { name, path, fingerprint } => Some(LoadedSkill::new(name, path, *fingerprint)),
            SkillChange::Referenced { .. } | SkillChange::Unloaded { .. } => None,
        };
        let skills = changes.iter().filter_map(entry).collect();
        Self { inner: Mutex::new(LoadedSkillsState { skills, ..LoadedSkillsState::default() }) }
    }

    /// Adds a skill. Returns true if it is new or its text has changed.
    pub fn insert(&self, name: &str, path: &str, fingerprint: u64) -> bool {
        let mut inner = self.inner();
        let is_new = match inner.skills.iter_mut().find(|entry| entry.name == name) {
            Some(known) => std::mem::replace(&mut known.fingerprint, fingerprint) != fingerprint,
            None => {
                inner.skills.push(LoadedSkill::new(name, path, fingerprint));
                true
            }
        };
        if is_new {
            let (name, path) = (name.to_owned(), path.to_owned());
            inner.news.push(SkillChange::Loaded { name, path, fingerprint });
            inner.changed = true;
        }
        is_new
    }

    /// Sets the instructions of a loaded skill that the system prompt shows.
    pub fn show(&self, name: &str, instructions: String) {
        let mut inner = self.inner();
        if let Some(entry) = inner.skills.iter_mut().find(|entry| entry.name == name) {
            entry.instructions = Some(instructions);
            inner.changed = true;
        }
    }

    /// Adds lines of a file, given by their offset and limit, to the instructions of a loaded skill that the system
    /// prompt shows. `shown` is a title that names the file and the lines, and their text. Returns false if the skill is
    /// not loaded.
    pub fn show_reference(
        &self,
        name: &str,
        file: &str,
        lines: (Option<usize>, Option<usize>),
        shown: (&str, &str),
    ) -> bool {
        let mut inner = self.inner();
        let Some(entry) = inner.skills.iter_mut().find(|entry| entry.name == name) else { return false };
        entry.references.retain(|(known, _)| known != shown.0);
        entry.references.push((shown.0.to_owned(), shown.1.to_owned()));
        let (name, file, (offset, limit)) = (name.to_owned(), file.to_owned(), lines);
        inner.news.push(SkillChange::Referenced { name, file, offset, limit });
        inner.changed = true;
        true
    }

    /// True if the skill of this name is loaded.
    pub fn contains(&self, name: &str) -> bool {
        self.inner().skills.iter().any(|entry| entry.name == name)
    }

    /// Unloads a skill, so that loading it returns its instructions again. Returns its path.
    pub fn forget(&self, name: &str) -> Option<String> {
        let mut inner = self.inner();
        let at = inner.skills.iter().position(|entry| entry.name == name)?;
        inner.changed = true;
        inner.news.push(SkillChange::Unloaded { name: name.to_owned() });
        Some(inner.skills.remove(at).path)
    }

    /// True if the system prompt should show a skill whose instructions are unknown here.
    pub fn lacks_instructions(&self) -> bool {
        self.inner().skills.iter().any(|entry| entry.instructions.is_none())
    }

    /// True if anything changed since the last call.
    pub fn take_changed(&self) -> bool {
        std::mem::take(&mut self.inner().changed)
    }

    /// The changes since the last call.
    pub fn take_news(&self) -> Vec<SkillChange> {
        std::mem::take(&mut self.inner().news)
    }

    /// The section of the system prompt that shows the loaded skills; empty if there is nothing to show.
    pub fn section(&self) -> String {
        let inner = self.inner();
        let shown = inner.skills.iter().filter_map(|entry| Some((entry, entry.instructions.as_ref()?)));
        let parts: Vec<String> = shown
            .map(|(entry, instructions)| {
                let reference = |(title, text): &(String, String)| {
                    let (title, text) = (title.replace('"', "'"), present::break_text_marks(text));
                    format!(
                        "\n\n<skill_reference skill=\"{}\" file=\"{title}\">\n{text}\n</skill_reference>",
                        entry.name
                    )
                };
                instructions.clone() + &entry.references.iter().map(reference).collect::<String>()
            })
            .collect();
        if parts.is_empty() {
            return String::new();
        }
        format!("# {SECTION}\n\n{}", parts.join("\n\n"))
    }

    fn inner(&self) -> MutexGuard<'_, LoadedSkillsState> {
        self.inner.lock().expect("no holder panics")
    }
}
