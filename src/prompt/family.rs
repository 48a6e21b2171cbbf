//! The versions of one prompt, with the meaning of its labels and its canary.

use std::collections::BTreeMap;

use crate::base::text;

use super::error::PromptError;
use super::release::{Canary, LATEST, PRODUCTION, RELEASE};
use super::version::Version;

/// The versions of one name.
#[derive(Debug, Default)]
pub(super) struct PromptFamily {
    pub versions: BTreeMap<Version, VersionPlace>,
    pub labels: BTreeMap<String, Version>,
    pub canary: Option<Canary>,
    /// True if any place has a `release.yaml` for it.
    pub is_released: bool,
    /// Labels that mean a version that does not exist.
    dangling: BTreeMap<String, Version>,
}

/// The place of a version.
#[derive(Debug, Clone)]
pub(super) struct VersionPlace {
    /// Index of the layer.
    pub layer: usize,
    /// `NAME/v1.0.md`.
    pub path: String,
}

impl PromptFamily {
    /// The version that a selector means: a version, a label, `latest`.
    pub fn version(&self, wanted: &str) -> Option<Version> {
        let latest = self.versions.keys().next_back().copied();
        match wanted {
            LATEST => latest,
            PRODUCTION if !self.is_released => latest,
            _ => {
                let labelled = self.labels.get(wanted).copied();
                wanted.parse().ok().or(labelled).filter(|version| self.versions.contains_key(version))
            }
        }
    }

    /// Sets aside what refers to a version that does not exist: it is an error only for whoever asks for it.
    pub fn set_dangling_aside(mut self) -> Self {
        let versions = &self.versions;
        self.dangling.extend(self.labels.extract_if(.., |_, version| !versions.contains_key(version)));
        self.canary = self.canary.filter(|canary| versions.contains_key(&canary.version));
        self
    }

    /// The labels of a version, sorted, with `canary N%` for a canary.
    pub fn labels_of(&self, version: Version) -> Vec<String> {
        let labels = self.labels.iter().filter(|(_, meant)| **meant == version).map(|(label, _)| label.clone());
        let canary = self.canary.filter(|canary| canary.version == version);
        labels.chain(canary.map(|canary| format!("canary {}%", canary.percent))).collect()
    }

    /// The error for a selector that means nothing.
    pub fn no_such_version(&self, name: &str, wanted: &str) -> PromptError {
        let labels: Vec<&str> = self.labels.keys().map(String::as_str).chain([LATEST]).collect();
        let wanted = text::one_line(wanted, 80);
        if let Some(version) = self.dangling.get(&wanted) {
            return PromptError::report_unknown(format!(
                "{name}/{RELEASE} says that `{wanted}` is {version}, but {name}/{version}.md does not exist; {}",
                self.list_known()
            ))
            .hint(format!("`agent prompt repair {name}` takes such labels out."));
        }
        let hint = did_you_mean(&wanted, &labels);
        let known = self.list_known();
        PromptError::report_unknown(format!("prompt `{name}` has no version or label `{wanted}`{hint}; {known}"))
    }

    /// The known versions and labels.
    fn list_known(&self) -> String {
        let versions = self.versions.keys().map(Version::to_string).collect::<Vec<_>>().join(", ");
        let labels: Vec<String> =
            self.labels.iter().map(|(label, version)| format!("{label} ({version})")).collect();
        let labels = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
        format!("versions: {versions}; labels: {labels}")
    }
}

/// The end of a sentence about an unknown name, with similar names.
pub(super) fn did_you_mean(name: &str, candidates: &[&str]) -> String {
    match text::find_nearest(name, candidates.iter().copied()).as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}
