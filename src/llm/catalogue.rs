//! Facts about well-known models: a dated list in `catalogue.yaml`, read only where a model file leaves something
//! open. The model file wins.
//!
//! The list has one model a line, and only the line that is asked for is parsed as YAML: parsing all of it would
//! cost more than the rest of a start.

use serde::Deserialize;

use crate::config::Prices;
use crate::yaml;

const CATALOGUE: &str = include_str!("catalogue.yaml");

/// The entry of one model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub id: String,
    /// The most tokens of a request and its reply together.
    pub window: u64,
    /// The most tokens of a reply.
    #[serde(default)]
    pub output: Option<u64>,
    #[serde(default)]
    pub prices: Option<Prices>,
}

/// The entry of a model by the provider's name for it; a path before the name (`openai/gpt-4o`) does not count.
#[must_use]
pub fn lookup(id: &str) -> Option<Entry> {
    let id = id.rsplit('/').next().unwrap_or(id).to_ascii_lowercase();
    let stands_for = |(entry, _): &(&str, &str)| {
        id.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', ':', '@', '_']))
    };
    let (_, entry) = lines().filter(stands_for).max_by_key(|(entry, _)| entry.len())?;
    Some(yaml::parse(entry).expect("a test reads every line"))
}

/// The ids, each with its line.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    CATALOGUE.lines().filter_map(|line| {
        let entry = line.strip_prefix("  - ")?;
        let id = entry.strip_prefix("{ id: ")?.split(',').next()?;
        Some((id, entry))
    })
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
            assert_eq!(lookup(id).map(|found| found.id).as_deref(), entry, "{id}");
        }
    }

    #[test]
    fn the_list_is_sound() {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Catalogue {
            date: String,
            models: Vec<Entry>,
        }
        let Catalogue { date, models } = yaml::parse(CATALOGUE).expect("YAML");
        assert!(date.parse::<jiff::civil::Date>().is_ok(), "{date}");
        for entry in &models {
            assert!(entry.output.is_none_or(|output| output <= entry.window), "{}", entry.id);
            assert_eq!(entry.id, entry.id.to_ascii_lowercase());
            assert_eq!(lookup(&entry.id).as_ref(), Some(entry), "one line, and no other of this id");
        }
        assert_eq!(lines().count(), models.len());
    }
}
