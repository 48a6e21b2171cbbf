//! Which skills this session has loaded: shared by the tools that load them, whoever shows the catalogue, and whoever
//! makes the system prompt.

use std::sync::{Mutex, MutexGuard};

use crate::present;

/// The heading of the part of the system prompt that shows loaded skills.
pub const SECTION: &str = "Loaded Skill Instructions";

/// Whether the answer to a call that loads a skill, or a file of one, gave it: what took its place later did not.
#[must_use]
pub fn discloses(answer: &str) -> bool {
    ["<skill name=", "&lt;skill name=", "\"instructions\":", SECTION].iter().any(|mark| answer.contains(mark))
}

/// The skills whose instructions the model has, in the order in which they were loaded.
#[derive(Debug, Default)]
pub struct Loaded {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    skills: Vec<Entry>,
    /// Which skills are loaded, or what is shown of them, is not what it was when it was last asked.
    changed: bool,
}

#[derive(Debug)]
struct Entry {
    name: String,
    /// Its `SKILL.md`; empty where that is not known.
    path: String,
    /// Tells a text from another; `None` where it was loaded by an earlier process.
    fingerprint: Option<u64>,
    /// Under `skill_disclosure: system`, what the system prompt shows.
    instructions: Option<String>,
    /// The same of files: name and text.
    references: Vec<(String, String)>,
}

impl Loaded {
    /// Whether the skill was not loaded before, or with another text. What is `None` of a known one matches any.
    pub fn insert(&self, name: &str, path: &str, fingerprint: Option<u64>) -> bool {
        let mut inner = self.inner();
        let Some(known) = inner.skills.iter_mut().find(|entry| entry.name == name) else {
            let (name, path) = (name.to_owned(), path.to_owned());
            inner.skills.push(Entry { name, path, fingerprint, instructions: None, references: Vec::new() });
            inner.changed = true;
            return true;
        };
        let is_new = known.fingerprint.is_some() && fingerprint.is_some() && known.fingerprint != fingerprint;
        known.fingerprint = fingerprint.or(known.fingerprint);
        is_new
    }

    /// What the system prompt is to show of a loaded skill.
    pub fn show(&self, name: &str, instructions: String) {
        let mut inner = self.inner();
        if let Some(entry) = inner.skills.iter_mut().find(|entry| entry.name == name) {
            entry.instructions = Some(instructions);
            inner.changed = true;
        }
    }

    /// What the system prompt is to show of a file of a loaded skill, under a name of its own (the path, and which
    /// lines). False where the skill is not loaded.
    pub fn show_reference(&self, name: &str, reference: &str, text: &str) -> bool {
        let mut inner = self.inner();
        let Some(entry) = inner.skills.iter_mut().find(|entry| entry.name == name) else { return false };
        entry.references.retain(|(known, _)| known != reference);
        entry.references.push((reference.to_owned(), text.to_owned()));
        inner.changed = true;
        true
    }

    /// Whether the skill of this name was loaded.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.inner().skills.iter().any(|entry| entry.name == name)
    }

    /// Its instructions are no longer in the conversation, so that loading it gives them again. Returns its path.
    pub fn forget(&self, name: &str) -> Option<String> {
        let mut inner = self.inner();
        let at = inner.skills.iter().position(|entry| entry.name == name)?;
        inner.changed = true;
        Some(inner.skills.remove(at).path)
    }

    /// Nothing is loaded any more: a conversation that begins anew.
    pub fn clear(&self) {
        let mut inner = self.inner();
        inner.skills.clear();
        inner.changed = true;
    }

    /// Whether anything changed since this was last asked.
    #[must_use]
    pub fn take_changed(&self) -> bool {
        std::mem::take(&mut self.inner().changed)
    }

    /// The part of the system prompt that shows what is loaded; empty where nothing is to be shown there.
    #[must_use]
    pub fn section(&self) -> String {
        let inner = self.inner();
        let shown = inner.skills.iter().filter_map(|entry| Some((entry, entry.instructions.as_ref()?)));
        let parts: Vec<String> = shown
            .map(|(entry, instructions)| {
                let reference = |(name, text): &(String, String)| {
                    let (name, text) = (name.replace('"', "'"), present::neutralise(text));
                    format!(
                        "\n\n<skill_reference skill=\"{}\" file=\"{name}\">\n{text}\n</skill_reference>",
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

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder panics")
    }
}
