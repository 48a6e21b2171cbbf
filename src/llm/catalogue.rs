//! What is known of well-known models without asking anybody: a dated list in `catalogue.yaml`, read only where a
//! model file leaves something open. What the file declares beats it.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::config::Prices;
use crate::yaml;

/// What the catalogue says of one model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub id: String,
    /// Tokens that a request and its reply may have together.
    pub window: u64,
    /// Tokens that a reply may have.
    #[serde(default)]
    pub output: Option<u64>,
    #[serde(default)]
    pub prices: Option<Prices>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    date: String,
    models: Vec<Entry>,
}

static CATALOGUE: LazyLock<Catalogue> =
    LazyLock::new(|| yaml::parse(include_str!("catalogue.yaml")).expect("the catalogue is checked by a test"));

/// The entry of a model by the provider's name for it; a path before the name (`openai/gpt-4o`) does not count.
pub fn lookup(id: &str) -> Option<&'static Entry> {
    let id = id.rsplit('/').next().unwrap_or(id).to_ascii_lowercase();
    let stands_for = |entry: &&Entry| {
        id.strip_prefix(&entry.id)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', ':', '@', '_']))
    };
    CATALOGUE.models.iter().filter(stands_for).max_by_key(|entry| entry.id.len())
}

/// The day up to which the catalogue is known to be right, `2025-11-30`.
pub fn date() -> &'static str {
    &CATALOGUE.date
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_entry_wins() {
        for (id, entry) in [
            ("gpt-5-mini", Some("gpt-5-mini")),
            ("gpt-5-mini-2025-08-07", Some("gpt-5-mini")),
            ("gpt-5-codex", Some("gpt-5")),
            ("openai/gpt-4o:extended", Some("gpt-4o")),
            ("gpt-4o-mini", Some("gpt-4o-mini")),
            ("gpt-4-0613", Some("gpt-4")),
            ("gpt-45", None),
            ("o3-mini", Some("o3-mini")),
            ("anthropic/claude-sonnet-4.5", Some("claude-sonnet-4")),
            ("meta-llama/Llama-3.3-70B-Instruct", Some("llama-3.3")),
            ("llama3.1:8b", Some("llama3.1")),
            ("my-model", None),
            ("", None),
        ] {
            assert_eq!(lookup(id).map(|entry| entry.id.as_str()), entry, "{id}");
        }
    }

    #[test]
    fn the_list_is_sound() {
        assert!(date().parse::<jiff::civil::Date>().is_ok());
        for entry in &CATALOGUE.models {
            assert!(entry.output.is_none_or(|output| output <= entry.window), "{}", entry.id);
            assert_eq!(CATALOGUE.models.iter().filter(|other| other.id == entry.id).count(), 1, "{}", entry.id);
            assert_eq!(entry.id, entry.id.to_ascii_lowercase());
        }
    }
}
