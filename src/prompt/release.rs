//! Selects the version of a prompt: labels, a canary that takes a share of the sessions, and the hashes of released
//! versions.
//!
//! ```yaml
//! # prompts/NAME/release.yaml
//! labels: { production: v1.0, staging: v1.1 }
//! canary: { version: v1.1, percent: 10 }
//! history: [v0.9]
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::base::yaml;

use super::error::PromptError;
use super::file::Prompt;
use super::owner::OWNERS;
use super::version::Version;

/// The label that a plain name means.
pub const PRODUCTION: &str = "production";
/// The word for the highest version. It is not a label: nobody can give it another meaning.
pub const LATEST: &str = "latest";
/// The file of labels and the canary, beside the versions.
pub const RELEASE: &str = "release.yaml";
/// The file of the hashes of released versions, beside them.
pub const LOCK: &str = "release.lock";
/// The file that describes, for people, the changes from version to version.
pub const CHANGELOG: &str = "changelog.md";

/// True if a version may have this label: a word, which is not the name of a version or of its owner.
pub fn is_label(label: &str) -> bool {
    let begins = label.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_word = begins && label.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    is_word
        && label != LATEST
        && label.parse::<Version>().is_err()
        && OWNERS.iter().all(|(_, word)| *word != label)
}

/// The content of a `release.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Release {
    pub labels: BTreeMap<String, Version>,
    pub canary: Option<Canary>,
    /// The versions that were in production before, oldest first, for rollbacks.
    pub history: Vec<Version>,
}

/// A version that a share of the sessions gets instead of the one in production.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    pub version: Version,
    /// The share of the sessions in percent, from 0 to 100.
    pub percent: u8,
}

/// The SHA-256 of each released version, in hexadecimal digits: `release.lock`.
pub type Lock = BTreeMap<Version, String>;

/// The prompt that a name means: the same for every session, or another one for those of its canary.
#[derive(Debug, Clone)]
pub struct Released {
    /// The version in production, or the one that was asked for.
    pub stable: Arc<Prompt>,
    canary: Option<(u8, Arc<Prompt>)>,
}

impl Release {
    /// Reads a `release.yaml`; `file` is its name in errors. It may be empty.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, PromptError> {
        let release: Self = parse_map(file, text)?;
        if let Some(Canary { percent: percent @ 101.., .. }) = release.canary {
            return Err(PromptError::of_file(file, format!("a canary takes 0 to 100 percent, not {percent}")));
        }
        if release.labels.contains_key(LATEST) {
            let why = "`latest` is always the highest version and cannot be a label";
            return Err(PromptError::of_file(file, why));
        }
        Ok(release)
    }
}

/// Reads a `release.lock`; `file` is its name in errors.
pub(super) fn read_lock(file: &str, text: &str) -> Result<Lock, PromptError> {
    parse_map(file, text)
}

/// Reads a file that may be empty.
fn parse_map<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, PromptError> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    yaml::parse_document(text).map_err(|error| PromptError::of_yaml(file, error))
}

impl Released {
    /// One prompt for every session.
    pub fn only(stable: Arc<Prompt>) -> Self {
        Self { stable, canary: None }
    }

    pub(super) fn with_canary(stable: Arc<Prompt>, percent: u8, prompt: Arc<Prompt>) -> Self {
        Self { stable, canary: Some((percent, prompt)) }
    }

    /// Every prompt that a session may get.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Prompt>> {
        std::iter::once(&self.stable).chain(self.canary.as_ref().map(|(_, prompt)| prompt))
    }

    /// The prompt of a session. It depends only on the id, so that a session keeps it.
    pub fn of_session(&self, id: &str) -> &Arc<Prompt> {
        match &self.canary {
            Some((percent, prompt)) if draw_lot(&self.stable.name, id) < *percent => prompt,
            _ => &self.stable,
        }
    }
}

/// The number that a session draws for a prompt, from 0 to 99, independently for each prompt.
fn draw_lot(name: &str, session: &str) -> u8 {
    let digest = Sha256::new().chain_update(name).chain_update([0]).chain_update(session).finalize();
    let number = digest.iter().take(4).fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    u8::try_from(number % 100).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_takes_its_share_and_keeps_it() {
        let prompt = |text: &str| Arc::new(Prompt::inline(text, "here").expect("a prompt"));
        let taken = |percent: u8| -> Vec<usize> {
            let released = Released::with_canary(prompt("old"), percent, prompt("new"));
            (0..1000).filter(|n| released.of_session(&format!("s-{n}")).body() == "new").collect()
        };
        let (tenth, third) = (taken(10), taken(33));
        assert!((70..130).contains(&tenth.len()), "{}", tenth.len());
        assert!((280..380).contains(&third.len()), "{}", third.len());
        assert!(tenth.iter().all(|n| third.contains(n)), "a larger share keeps those of the smaller one");
        assert_eq!((taken(0).len(), taken(100).len()), (0, 1000));
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, said) in [
            ("labels: { production: latest }\n", "release.yaml:1:"),
            ("labels: { latest: v1.0 }\n", "cannot be a label"),
            ("canary: { version: v1.0, percent: 101 }\n", "0 to 100 percent, not 101"),
            ("canary: { version: v1.0 }\n", "percent"),
            ("labels: { production: v1.\n", "release.yaml:"),
            ("label: {}\n", "label"),
        ] {
            let error = Release::parse("p/release.yaml", text).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert_eq!(Release::parse("p/release.yaml", " \n"), Ok(Release::default()));
        assert!(read_lock("p/release.lock", "v1.0: [").is_err());
    }
}
