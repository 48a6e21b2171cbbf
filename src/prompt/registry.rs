//! Every prompt that can be named: the built-in ones, the user's, and those that a workspace brings along.
//!
//! Later places win, version by version and label by label. Prompts are listed and read only when they are needed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::{builtin, frontmatter, text, yaml};
use crate::config::{PromptDir, PromptSource};
use crate::template::{Syntax, is_safe_name};

use super::error::PromptError;
use super::family::{PromptFamily, VersionPlace};
use super::file::{Prompt, PromptSection};
use super::head::SectionSource;
use super::includes;
use super::layer::{MODULES, PromptLayer, is_name};
use super::owner::{OWNERS, Owner};
use super::release::{Canary, LATEST, PRODUCTION, RELEASE, Release, Released};
use super::version::Version;

/// All prompts of a run.
#[derive(Debug)]
pub struct Registry {
    /// Lowest first.
    layers: Vec<PromptLayer>,
    /// Warnings about files of a workspace that are left out.
    warnings: Mutex<Vec<String>>,
}

/// One version of one prompt, as lists show it.
#[derive(Debug, Clone)]
pub struct ListedPrompt {
    pub name: String,
    pub version: Version,
    /// Sorted; with `canary N%` for a canary.
    pub labels: Vec<String>,
    /// The prompt, or the reason that it cannot be used.
    pub prompt: Result<Arc<Prompt>, PromptError>,
}

impl Registry {
    /// The built-in prompts and those of `dirs`, lowest first. A directory that does not exist has none.
    pub fn new(dirs: &[PromptDir]) -> Self {
        let layers = std::iter::once(PromptLayer::BUILTIN).chain(dirs.iter().map(PromptLayer::from_dir)).collect();
        Self { layers, warnings: Mutex::default() }
    }

    /// The prompt that `reference` names: `NAME@VERSION`, `NAME@LABEL`, `NAME@latest`, or `NAME` for what is in
    /// production (the latest version of a prompt that was never released).
    ///
    /// # Errors
    /// Nothing has that name, version or label (the error lists what there is), or a file is wrong.
    pub fn get(&self, reference: &str) -> Result<Arc<Prompt>, PromptError> {
        let (family, name, version) = self.find(reference)?;
        self.read(name, version, &family.versions[&version])
    }

    /// Returns the same with the canary of the version in production.
    ///
    /// # Errors
    /// As [`Registry::get`].
    pub fn get_released(&self, reference: &str) -> Result<Released, PromptError> {
        let (family, name, version) = self.find(reference)?;
        let stable = self.read(name, version, &family.versions[&version])?;
        let is_production = matches!(reference.split_once('@'), None | Some((_, PRODUCTION)));
        match family.canary.filter(|canary| is_production && canary.version != version) {
            None => Ok(Released::only(stable)),
            Some(Canary { version, percent }) => {
                let canary = self.read(name, version, &family.versions[&version])?;
                Ok(Released::with_canary(stable, percent, canary))
            }
        }
    }

    /// The prompt that a configuration names or contains; `origin` is the name of a contained one in errors, and
    /// `of_project` is true if the workspace brings it along.
    ///
    /// # Errors
    /// As [`Registry::get`], or a template that does not compile.
    pub fn resolve(&self, source: &PromptSource, origin: &str, of_project: bool) -> Result<Released, PromptError> {
        match source {
            PromptSource::Registered(prompt) => self.get_released(&prompt.reference),
            PromptSource::Inline(text) => {
                if let Some((name, _)) =
                    text.trim().split_once('@').filter(|_| !text.trim().contains(char::is_whitespace))
                    && is_name(name)
                {
                    let told = format!("`{}` would be the whole prompt, word for word", text.trim());
                    let hint = format!("Write `{{ ref: {} }}` for the prompt of that name.", text.trim());
                    return Err(PromptError::of_file(origin, told).hint(hint));
                }
                let prompt = Prompt::inline(text, origin)?;
                Ok(Released::only(Arc::new(if of_project { prompt.owned_by(Owner::Project) } else { prompt })))
            }
        }
    }

    /// The names of all prompts, modules included, sorted.
    ///
    /// # Errors
    /// A directory cannot be listed.
    pub fn names(&self) -> Result<BTreeSet<String>, PromptError> {
        self.layers.iter().try_fold(BTreeSet::new(), |mut names, layer| {
            names.extend(layer.names()?);
            Ok(names)
        })
    }

    /// Every version of these prompts, by name, oldest first. Reads and compiles them.
    ///
    /// # Errors
    /// A directory cannot be listed, a name does not exist or a `release.yaml` is wrong.
    pub fn list<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<ListedPrompt>, PromptError> {
        let mut listed = Vec::new();
        for name in names {
            let family = self.family(name)?;
            listed.extend(family.versions.iter().map(|(version, place)| ListedPrompt {
                name: name.to_owned(),
                version: *version,
                labels: family.labels_of(*version),
                prompt: self.read(name, *version, place),
            }));
        }
        Ok(listed)
    }

    /// The text of a file of a prompt (`tests.yaml`, `changelog.md`, `recordings/x.jsonl`) from the nearest place that
    /// has it, and its name in errors.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_beside(&self, name: &str, file: &str) -> Result<Option<(String, String)>, PromptError> {
        if !is_name(name) {
            return Err(self.no_such_name(name));
        }
        let path = format!("{name}/{file}");
        for layer in self.layers.iter().rev() {
            if let Some(text) = layer.read(&path)? {
                return Ok(Some((text.into_owned(), layer.origin(&path))));
            }
        }
        Ok(None)
    }

    /// The directory of prompts that has this version of a prompt (any version, without one), the nearest first;
    /// `None` if only the program has it.
    ///
    /// # Errors
    /// A directory cannot be listed.
    pub fn home(&self, name: &str, version: Option<Version>) -> Result<Option<PathBuf>, PromptError> {
        for layer in self.layers.iter().rev() {
            let files = layer.files(name)?;
            let mut versions = files.iter().filter_map(|file| Version::of_file(file));
            if versions.any(|found| version.is_none_or(|version| version == found)) {
                return Ok(layer.dir().map(Path::to_path_buf));
            }
        }
        Ok(None)
    }

    /// Files that are left out of the prompts requested so far, with the reasons.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The version that a reference means, without reading it.
    ///
    /// # Errors
    /// Nothing has that name, version or label, or a `release.yaml` is wrong.
    pub fn find_meant(&self, reference: &str) -> Result<Version, PromptError> {
        self.find(reference).map(|(_, _, version)| version)
    }

    fn find<'r>(&self, reference: &'r str) -> Result<(PromptFamily, &'r str, Version), PromptError> {
        let (name, wanted) = reference.split_once('@').unwrap_or((reference, PRODUCTION));
        if let Some((owner, _)) = OWNERS.iter().find(|(_, word)| *word == wanted) {
            let family = self.family_of(name, |layer| layer.owner == *owner);
            let family = family
                .map_err(|_| PromptError::report_unknown(format!("there is no `{name}` of the {wanted}")))?;
            let version = family.version(PRODUCTION).or_else(|| family.version(LATEST));
            return version.map(|version| (family, name, version)).ok_or_else(|| self.no_such_name(name));
        }
        let family = self.family(name)?;
        let version = family.version(wanted).ok_or_else(|| family.no_such_version(name, wanted))?;
        Ok((family, name, version))
    }

    fn family(&self, name: &str) -> Result<PromptFamily, PromptError> {
        self.family_of(name, |_| true)
    }

    /// The versions in the places that `counts` accepts.
    fn family_of(&self, name: &str, counts: impl Fn(&PromptLayer) -> bool) -> Result<PromptFamily, PromptError> {
        if !is_name(name) {
            return Err(self.no_such_name(name));
        }
        let (mut family, mut odd) = (PromptFamily::default(), None);
        for (index, layer) in self.layers.iter().enumerate().filter(|(_, layer)| counts(layer)) {
            let files = layer.files(name)?;
            for file in &files {
                let path = format!("{name}/{file}");
                let Some(version) = Version::of_file(file) else {
                    odd = odd.or_else(|| Version::is_meant_by(file).then(|| layer.origin(&path)));
                    continue;
                };
                if layer.owner == Owner::Project && !self.is_read(layer, &path) {
                    continue;
                }
                let place = VersionPlace { layer: index, path };
                if let Some(twin) = family.versions.insert(version, place).filter(|twin| twin.layer == index) {
                    let (file, twin) = (layer.origin(&format!("{name}/{file}")), twin.path);
                    return Err(PromptError::of_file(&file, format!("{twin} is the same version: take one out")));
                }
            }
            if layer.owner == Owner::Person {
                // A released version is there even if its file is not.
                for version in layer.released(name) {
                    let place = VersionPlace { layer: index, path: format!("{name}/{version}.md") };
                    family.versions.entry(version).or_insert(place);
                }
            }
            if files.iter().any(|file| file == RELEASE) {
                self.add_release(&mut family, layer, name)?;
            }
        }
        match odd {
            _ if !family.versions.is_empty() => Ok(family.set_dangling_aside()),
            Some(file) => Err(PromptError::of_file(&file, "it is no version of a prompt: name it like v1.0.md")),
            None => Err(self.no_such_name(name)),
        }
    }

    fn add_release(&self, family: &mut PromptFamily, layer: &PromptLayer, name: &str) -> Result<(), PromptError> {
        let path = format!("{name}/{RELEASE}");
        let origin = layer.origin(&path);
        let is_brought = layer.owner == Owner::Project;
        if is_brought && !self.is_read(layer, &path) {
            return Ok(());
        }
        let mut release = match builtin::find_tree("prompts", &path).filter(|_| layer.owner == Owner::Program) {
            Some(packed) => {
                let read = yaml::unpack_tree(packed, 0).read();
                read.map_err(|error| PromptError::of_file(&origin, error.message))?
            }
            None => Release::parse(&origin, &layer.read(&path)?.unwrap_or_default())?,
        };
        if is_brought {
            // A project's label that refers to nothing does not hide others.
            let Release { labels, canary, .. } = &mut release;
            labels.retain(|label, version| {
                let exists = family.versions.contains_key(version);
                if !exists {
                    let label = text::one_line(label, 80);
                    self.warn(format!("{origin}: there is no {version} of `{name}` for `{label}` to mean"));
                }
                exists
            });
            *canary = canary.filter(|canary| family.versions.contains_key(&canary.version));
        }
        family.is_released = true;
        // The place that sets the production version also sets its canary.
        if release.canary.is_some() || release.labels.contains_key(PRODUCTION) {
            family.canary = release.canary;
        }
        family.labels.extend(release.labels);
        Ok(())
    }

    /// True if a file that a workspace brings along is unchanged since the user agreed to it.
    fn is_read(&self, layer: &PromptLayer, path: &str) -> bool {
        match layer.read(path) {
            Ok(text) => text.is_some(),
            Err(error) => {
                self.warn(error.to_string().replacen(": ", " ", 1));
                false
            }
        }
    }

    fn warn(&self, warning: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Reads a version, composes it, and checks it against its lock.
    fn read(&self, name: &str, version: Version, place: &VersionPlace) -> Result<Arc<Prompt>, PromptError> {
        let layer = &self.layers[place.layer];
        if let Some(released) = self.read_released(layer, name, version)? {
            return Ok(Arc::new(released));
        }
        let origin = layer.origin(&place.path);
        let gone = || PromptError::of_file(&origin, "does not exist any more");
        let text = layer.read(&place.path)?.ok_or_else(gone)?;
        if let (Owner::Program, Cow::Borrowed(text)) = (layer.owner, &text) {
            let unread = || PromptError::of_file(&origin, "was not read by the build");
            let head = builtin::find_tree("prompts", &place.path).ok_or_else(unread)?;
            let digest = builtin::find_digest(&place.path).ok_or_else(unread)?;
            let prompt = Prompt::built_in(name, version, &origin, text, head, digest)?;
            return Ok(Arc::new(self.compose(prompt, Some(digest))?));
        }
        let prompt = Prompt::parse(name, version, &origin, text)?.owned_by(layer.owner);
        let prompt = self.compose(prompt, None)?.compiled()?;
        self.note_change(layer, &prompt, version)?;
        Ok(Arc::new(prompt))
    }

    fn compose(&self, prompt: Prompt, digest: Option<&str>) -> Result<Prompt, PromptError> {
        let prompt = self.with_examples(prompt)?;
        let is_module = prompt.name.starts_with(MODULES);
        let mut parts = Vec::new();
        for section in prompt.head.sections(!prompt.body().trim().is_empty()) {
            let module = match section.source {
                SectionSource::Body => None,
                SectionSource::Module(reference) => {
                    let wrong = |why: String| {
                        let line = prompt.line_of("modules", &reference);
                        PromptError { line: Some(line), ..PromptError::of_file(&prompt.origin, why) }
                    };
                    if is_module {
                        let why = "a module is not composed of others: name them in the prompt";
                        return Err(wrong(why.to_owned()));
                    }
                    let module = self.get(&format!("{MODULES}{reference}"));
                    Some(module.map_err(|error| if error.file.is_some() { error } else { wrong(error.message) })?)
                }
            };
            parts.push(PromptSection { heading: section.heading, module });
        }
        let included = match prompt.head.format {
            // The build knows the digest of a built-in prompt without included files: a test finds none.
            Syntax::Jinja if digest.is_none() => self.read_includes(prompt.body())?,
            _ => BTreeMap::new(),
        };
        let brings_one = included.values().any(|(owner, _)| *owner == Owner::Project);
        let prompt = if brings_one { prompt.owned_by(Owner::Project) } else { prompt };
        Ok(prompt.compose(parts, included.into_iter().map(|(name, (_, text))| (name, text)).collect(), digest))
    }

    /// A prompt with the examples that its head names, from the nearest place that has them.
    fn with_examples(&self, prompt: Prompt) -> Result<Prompt, PromptError> {
        let file = prompt.head.examples.clone();
        if file.is_empty() {
            return Ok(prompt);
        }
        let wrong = |why: &str| {
            let line = Some(prompt.line_of("examples", &file));
            PromptError { line, ..PromptError::of_file(&prompt.origin, format!("`examples: {file}` {why}")) }
        };
        if !is_safe_name(&file) {
            return Err(wrong("leads out of the folder of the prompt"));
        }
        let path = format!("{}/{file}", prompt.name);
        for layer in self.layers.iter().rev() {
            if layer.owner == Owner::Project && !self.is_read(layer, &path) {
                continue;
            }
            if let Some(text) = layer.read(&path)? {
                return prompt.with_examples(text, &layer.origin(&path), layer.owner);
            }
        }
        Err(wrong("is not beside the prompt"))
    }

    /// The files that a source includes, directly and indirectly, without their heads.
    fn read_includes(&self, source: &str) -> Result<BTreeMap<String, (Owner, String)>, PromptError> {
        let mut found: BTreeMap<String, (Owner, String)> = BTreeMap::new();
        let mut wanted = includes::find_includes(source);
        while let Some(name) = wanted.pop() {
            if found.contains_key(&name) {
                continue;
            }
            for layer in self.layers.iter().rev() {
                let Some(text) = layer.read(&name)? else { continue };
                let parts = frontmatter::split_head(&text);
                let parts = parts.map_err(|error| PromptError::of_yaml(&layer.origin(&name), error))?;
                let body = match parts.body_line {
                    1 => parts.body.to_owned(),
                    // A comment replaces the head, so that places are those of the file. It consumes the line break
                    // below.
                    line => format!("{{#{}-#}}\n{}", "\n".repeat(line - 2), parts.body),
                };
                wanted.extend(includes::find_includes(&body));
                found.insert(name, (layer.owner, body));
                break;
            }
        }
        Ok(found)
    }
}

mod released;

#[cfg(test)]
mod tests;
