//! The head of a prompt file: its purpose, the variables that it reads, and the parts that it is composed of.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value as Json};

use crate::template::Syntax;

use super::chat::MessageTemplate;

/// The YAML between the dashes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PromptHead {
    pub description: String,
    /// The syntax of the body and the messages.
    pub format: Syntax,
    /// Names that must be defined, dotted ones (`vars.team`) included.
    pub required_vars: Vec<String>,
    /// Values of names that nothing else defines. Mappings are completed key by key.
    pub defaults: Map<String, Json>,
    /// A YAML file beside the prompt, whose data is in the variable `examples`; empty if there is none.
    pub examples: String,
    /// The sections, in the order of the rendered text; empty for a prompt that is only its body.
    pub modules: Vec<Section>,
    /// The opening messages of a conversation; empty for a prompt that is only a system prompt.
    pub messages: Vec<MessageTemplate>,
    /// Variables with content from outside: the text must delimit them.
    pub untrusted: Vec<String>,
    /// The reminder at the end of the rendered text; empty if there is none.
    pub reminder: String,
    /// Notes of its authors. The program reads none of them.
    pub metadata: Map<String, Json>,
}

/// A part of a composed prompt: `identity@1.0`, or `Heading: skills@1.0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The heading above it; `None` for a part without one.
    pub heading: Option<String>,
    pub source: SectionSource,
}

/// The source of the text of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SectionSource {
    /// The file's own text.
    Body,
    /// `NAME` or `NAME@VERSION` of a module.
    Module(String),
}

/// The word in `modules` that stands for the file's own text.
const BODY: &str = "body";

impl PromptHead {
    /// The sections, including the body: a body that `modules` does not place comes last.
    pub(super) fn sections(&self, has_body: bool) -> Vec<Section> {
        let mut sections = self.modules.clone();
        let is_placed = sections.iter().any(|section| section.source == SectionSource::Body);
        if sections.is_empty() || has_body && !is_placed {
            sections.push(Section { heading: None, source: SectionSource::Body });
        }
        sections
    }

    /// The names that the file declares: those that it requires, those with defaults, and its placeholders.
    pub(super) fn list_declared(&self) -> impl Iterator<Item = &str> {
        self.required_vars.iter().chain(self.defaults.keys()).map(String::as_str).chain(self.placeholders())
    }

    /// The names of the variables that hold messages.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().filter_map(|entry| match entry {
            MessageTemplate::Placeholder { key, .. } => Some(key.as_str()),
            MessageTemplate::Message(_) => None,
        })
    }
}

impl From<&str> for SectionSource {
    fn from(written: &str) -> Self {
        if written == BODY { Self::Body } else { Self::Module(written.to_owned()) }
    }
}

impl<'de> Deserialize<'de> for Section {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SectionVisitor)
    }
}

struct SectionVisitor;

impl<'de> Visitor<'de> for SectionVisitor {
    type Value = Section;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a module (`NAME@VERSION`), or one below its heading (`Heading: NAME@VERSION`)")
    }

    fn visit_str<E: de::Error>(self, written: &str) -> Result<Section, E> {
        Ok(Section { heading: None, source: written.into() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Section, A::Error> {
        let one = || de::Error::custom("a section is one heading with one module: `Heading: NAME@VERSION`");
        let (heading, written) = map.next_entry::<String, String>()?.ok_or_else(one)?;
        match map.next_entry::<String, String>()? {
            Some(_) => Err(one()),
            None => Ok(Section { heading: Some(heading), source: written.as_str().into() }),
        }
    }
}
