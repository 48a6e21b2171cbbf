//! What a registry tells of released versions, which stay what they were, and of names that do not exist.

use std::path::Path;
use std::sync::Mutex;

use super::super::error::PromptError;
use super::super::family::{PromptFamily, did_you_mean};
use super::super::file::Prompt;
use super::super::layer::{MODULES, PromptLayer, released_dir};
use super::super::owner::Owner;
use super::super::release::{self, LOCK};
use super::super::version::Version;
use super::Registry;
use crate::base::digest::shorten_digest;
use crate::base::text;
use crate::config::PromptDir;

impl Registry {
    /// The versions of a prompt, whatever its releases say.
    ///
    /// # Errors
    /// A directory cannot be listed.
    pub fn versions(&self, name: &str) -> Result<Vec<Version>, PromptError> {
        let mut versions = Vec::new();
        for layer in &self.layers {
            versions.extend(layer.files(name)?.iter().filter_map(|file| Version::of_file(file)));
            versions.extend(layer.released(name));
        }
        Ok(versions)
    }

    /// True if a version of it was released anywhere.
    ///
    /// # Errors
    /// Nothing has that name, or a `release.yaml` is wrong.
    pub fn is_released(&self, name: &str) -> Result<bool, PromptError> {
        Ok(self.family(name)?.is_released)
    }

    /// The version as it was released: composed of the files that were kept then, whatever has changed since.
    pub(super) fn read_released(
        &self,
        layer: &PromptLayer,
        name: &str,
        version: Version,
    ) -> Result<Option<Prompt>, PromptError> {
        let kept =
            layer.dir().filter(|_| layer.owner == Owner::Person).map(|dir| released_dir(dir, name, version));
        let Some(kept) = kept.filter(|kept| kept.is_dir()) else { return Ok(None) };
        let prompt = Self::read_copy(&kept, name, version).map_err(|error| {
            let file = error.file.clone().or_else(|| Some(kept.display().to_string()));
            PromptError { file, ..error.hint(format!("`agent prompt repair {name}` sets such a copy aside.")) }
        })?;
        self.note_change(layer, &prompt, version)?;
        let parts = std::iter::once(&prompt).chain(prompt.modules().map(|(_, module)| module.as_ref()));
        let edited = parts.filter_map(|part| {
            let path = part.path()?;
            let mut own = self.layers.iter().rev().filter(|layer| layer.owner == Owner::Person);
            let now = own.find_map(|layer| layer.read(&path).ok().flatten())?;
            (now != part.text()).then_some(path)
        });
        let included = self.read_includes(prompt.body())?;
        let included = prompt.included.iter().filter(|(path, text)| {
            included.get(*path).is_some_and(|(owner, now)| *owner == Owner::Person && now != *text)
        });
        if let Some(first) = edited.chain(included.map(|(path, _)| path.clone())).next() {
            self.warn(format!(
                "{first} was edited after {name}@{version} was released; runs use what was released: `agent prompt new \
                 {name}` begins a version with the edit"
            ));
        }
        Ok(Some(prompt))
    }

    /// The version that a folder keeps, composed of the files in it alone.
    pub(in super::super) fn read_copy(kept: &Path, name: &str, version: Version) -> Result<Prompt, PromptError> {
        let layer = PromptLayer::from_dir(&PromptDir::new(kept.to_path_buf()));
        let registry = Self { layers: vec![layer], warnings: Mutex::default() };
        let (family, _, version) = registry.find_version(name, version)?;
        let path = &family.versions[&version].path;
        let at = &registry.layers[0];
        let prompt = Prompt::parse(name, version, &at.origin(path), at.read(path)?.unwrap_or_default())?;
        registry.compose(prompt, None)?.compiled()
    }

    fn find_version<'n>(
        &self,
        name: &'n str,
        version: Version,
    ) -> Result<(PromptFamily, &'n str, Version), PromptError> {
        let family = self.family(name)?;
        let is_known = family.versions.contains_key(&version);
        if is_known {
            Ok((family, name, version))
        } else {
            Err(family.no_such_version(name, &version.to_string()))
        }
    }

    /// Warns of a version that is not what was released. A `release.lock` without a copy of the files has its hash.
    pub(super) fn note_change(
        &self,
        layer: &PromptLayer,
        prompt: &Prompt,
        version: Version,
    ) -> Result<(), PromptError> {
        let path = format!("{}/{LOCK}", prompt.name);
        let Some(text) = layer.read(&path)? else { return Ok(()) };
        let lock = release::read_lock(&layer.origin(&path), &text)?;
        if let Some(digest) = lock.get(&version).filter(|digest| *digest != prompt.digest()) {
            self.warn(format!(
                "{}: {version} was released as #{} and is #{} now: write a change as a new version (agent prompt new {})",
                prompt.origin,
                shorten_digest(digest),
                prompt.fingerprint(),
                prompt.name
            ));
        }
        Ok(())
    }

    pub(super) fn no_such_name(&self, name: &str) -> PromptError {
        let names = match self.names() {
            Ok(names) => names,
            Err(error) => return error,
        };
        let (kind, names): (&str, Vec<&str>) = match name.strip_prefix(MODULES) {
            Some(_) => ("module", names.iter().filter_map(|name| name.strip_prefix(MODULES)).collect()),
            None => {
                ("prompt", names.iter().map(String::as_str).filter(|name| !name.starts_with(MODULES)).collect())
            }
        };
        let name = text::one_line(name.strip_prefix(MODULES).unwrap_or(name), 80);
        if names.contains(&name.as_str()) {
            return PromptError::report_unknown(format!("{kind} `{name}` has no version"));
        }
        let hint = did_you_mean(&name, &names);
        PromptError::report_unknown(format!("there is no {kind} `{name}`{hint}; known: {}", names.join(", ")))
    }
}
