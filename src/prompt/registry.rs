//! Every prompt that can be named, from the built-in ones up through the directories, and which version a label
//! means.
//!
//! A directory holds `NAME/vX.Y.md` and one `release.yaml`, which says for each name what its labels mean:
//!
//! ```yaml
//! system: { production: v1.0, next: v1.1 }
//! ```
//!
//! Later directories win, file by file and label by label. Opening lists names only; a prompt is read and compiled
//! when it is first asked for.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::builtin;
use crate::config::{PromptDir, PromptSource};
use crate::file_name;
use crate::regular::read_regular;
use crate::text;
use crate::yaml;

use super::error::PromptError;
use super::file::Prompt;
use super::version::Version;

/// The label that a name alone means.
const PRODUCTION: &str = "production";
/// The file that gives labels their meaning.
const RELEASE: &str = "release.yaml";

/// All prompts of a run.
#[derive(Debug)]
pub struct Registry {
    families: BTreeMap<String, Family>,
    warnings: Vec<String>,
}

/// One version of one prompt, as lists show it.
#[derive(Debug, Clone)]
pub struct Listed {
    pub name: String,
    pub version: Version,
    /// Sorted.
    pub labels: Vec<String>,
    /// The prompt, or why it cannot be used.
    pub prompt: Result<Arc<Prompt>, PromptError>,
}

/// The versions of one name.
#[derive(Debug, Default)]
struct Family {
    versions: BTreeMap<Version, Entry>,
    labels: BTreeMap<String, Version>,
}

#[derive(Debug)]
struct Entry {
    source: Source,
    prompt: OnceLock<Result<Arc<Prompt>, PromptError>>,
}

#[derive(Debug)]
enum Source {
    Builtin(&'static builtin::File<'static>),
    File(PathBuf),
    /// What a workspace brings along is read at once, as it was agreed to.
    Brought {
        path: String,
        text: String,
    },
}

impl Registry {
    /// The built-in prompts and those of `dirs`, lowest first. A directory that does not exist holds none.
    ///
    /// # Errors
    /// Every directory that cannot be listed and every mistake in a `release.yaml`.
    pub fn open(dirs: &[PromptDir]) -> Result<Self, Vec<PromptError>> {
        let mut registry = Self { families: BTreeMap::new(), warnings: Vec::new() };
        let mut errors = Vec::new();
        registry.add_builtin().unwrap_or_else(|error| errors.push(error));
        for dir in dirs {
            let added = match dir.through.listed(&dir.dir) {
                Some(files) => registry.add_brought(dir, files),
                None => registry.add_dir(&dir.dir),
            };
            added.unwrap_or_else(|error| errors.push(error));
        }
        if errors.is_empty() { Ok(registry) } else { Err(errors) }
    }

    /// The prompt that `reference` names: `NAME@VERSION`, `NAME@LABEL`, or `NAME` for its production version.
    ///
    /// # Errors
    /// When nothing has that name, version or label (with what there is), or the file is wrong.
    pub fn get(&self, reference: &str) -> Result<Arc<Prompt>, PromptError> {
        let (name, wanted) = reference.split_once('@').unwrap_or((reference, PRODUCTION));
        let Some(family) = self.families.get(name) else {
            return Err(PromptError::unknown(self.no_such_name(name)));
        };
        let labelled = family.labels.get(wanted).copied();
        let Some(version) = wanted.parse().ok().or(labelled) else {
            return Err(PromptError::unknown(family.no_such_version(name, wanted)));
        };
        match family.versions.get(&version) {
            Some(entry) => entry.prompt(name, version),
            None if labelled.is_some() => Err(PromptError::unknown(format!(
                "{RELEASE} says that `{name}@{wanted}` is {version}, but {name}/{version}.md does not exist; \
                 {}",
                family.known(name)
            ))),
            None => Err(PromptError::unknown(family.no_such_version(name, wanted))),
        }
    }

    /// The prompt that a configuration names or writes out; `origin` is what errors call one that is written out, and
    /// `of_project` whether the workspace brings it along.
    ///
    /// # Errors
    /// As [`Registry::get`], or a template that does not compile.
    pub fn of(&self, source: &PromptSource, origin: &str, of_project: bool) -> Result<Arc<Prompt>, PromptError> {
        match source {
            PromptSource::Registered(prompt) => self.get(&prompt.reference),
            PromptSource::Inline(text) => {
                let prompt = Prompt::inline(text, origin)?;
                Ok(Arc::new(if of_project { prompt.of_project() } else { prompt }))
            }
        }
    }

    /// Every version of every prompt, by name, oldest first. Reads and compiles them all.
    #[must_use]
    pub fn list(&self) -> Vec<Listed> {
        let of_family = |(name, family): (&String, &Family)| {
            let of_version = |(version, entry): (&Version, &Entry)| Listed {
                name: name.clone(),
                version: *version,
                labels: family.labels_of(*version).map(str::to_owned).collect(),
                prompt: entry.prompt(name, *version),
            };
            family.versions.iter().map(of_version).collect::<Vec<_>>()
        };
        self.families.iter().flat_map(of_family).collect()
    }

    /// Everything that is wrong with any prompt or label.
    #[must_use]
    pub fn check(&self) -> Vec<PromptError> {
        let files = self.list().into_iter().filter_map(|listed| listed.prompt.err());
        let labels = self.families.iter().flat_map(|(name, family)| {
            let dangling = family.labels.iter().filter(|(_, version)| !family.versions.contains_key(version));
            dangling.filter_map(move |(label, _)| self.get(&format!("{name}@{label}")).err())
        });
        files.chain(labels).collect()
    }

    fn add_builtin(&mut self) -> Result<(), PromptError> {
        for family in builtin::PROMPTS.dirs() {
            for file in family.files() {
                self.add(&family.path().to_string_lossy(), file.path(), Source::Builtin(file));
            }
        }
        let Some(packed) = builtin::tree("prompts", RELEASE) else { return Ok(()) };
        let file = "built-in prompts/release.yaml";
        let releases =
            yaml::packed(packed, 0).read().map_err(|error| PromptError::of_file(file, error.message))?;
        self.add_labels(file, releases)
    }

    fn add_dir(&mut self, dir: &Path) -> Result<(), PromptError> {
        let unreadable = |path: &Path, error: &io::Error| {
            PromptError::of_file(&path.display().to_string(), format!("cannot be read: {error}"))
        };
        for family in entries(dir).map_err(|error| unreadable(dir, &error))? {
            let Some(name) = family.file_name().and_then(|name| name.to_str()) else { continue };
            if name.starts_with('.') || !family.is_dir() {
                continue;
            }
            for file in entries(&family).map_err(|error| unreadable(&family, &error))? {
                let source = Source::File(file.clone());
                self.add(name, &file, source);
            }
        }
        let release = dir.join(RELEASE);
        let name = release.display().to_string();
        match read_regular(&release).map_err(|why| PromptError::of_file(&name, why))? {
            Some(text) => self.add_labels(&name, releases(&name, &text)?),
            None => Ok(()),
        }
    }

    /// Adds the prompts of a directory that the workspace brings along. One that has changed does not exist.
    fn add_brought(&mut self, dir: &PromptDir, files: Vec<PathBuf>) -> Result<(), PromptError> {
        let mut release = None;
        for file in files {
            let path = file_name::written(&file).into_owned();
            let inside = file.strip_prefix(&dir.dir).unwrap_or(&file);
            let name = inside.parent().and_then(Path::to_str).unwrap_or_default().to_owned();
            let is_release = inside == Path::new(RELEASE);
            if !is_release && (name.is_empty() || name.starts_with('.') || name.contains('/')) {
                continue;
            }
            match dir.through.read_text(&file) {
                Ok(Some(text)) if is_release => release = Some((path, text)),
                Ok(Some(text)) => self.add(&name, &file, Source::Brought { path, text }),
                Ok(None) => {}
                Err(why) => self.warnings.push(format!("{path} {why}")),
            }
        }
        if let Some((path, text)) = release {
            self.add_brought_labels(&path, &text)?;
        }
        Ok(())
    }

    /// A label of a project that means nothing takes none away.
    fn add_brought_labels(&mut self, file: &str, text: &str) -> Result<(), PromptError> {
        for (name, labels) in releases(file, text)? {
            for (label, version) in labels {
                match self.families.get_mut(&name).filter(|family| family.versions.contains_key(&version)) {
                    Some(family) => {
                        family.labels.insert(label, version);
                    }
                    None => {
                        let (name, label) = (text::one_line(&name, 80), text::one_line(&label, 80));
                        self.warnings
                            .push(format!("{file}: there is no {version} of `{name}` for `{label}` to mean"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Files that are left out, and why.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Adds the file if its name is a version; notes and tests beside it are nobody's prompt.
    fn add(&mut self, name: &str, path: &Path, source: Source) {
        let stem = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".md"));
        if let Some(version) = stem.filter(|stem| stem.starts_with('v')).and_then(|stem| stem.parse().ok()) {
            let entry = Entry { source, prompt: OnceLock::new() };
            self.families.entry(name.to_owned()).or_default().versions.insert(version, entry);
        }
    }

    fn add_labels(&mut self, file: &str, releases: Releases) -> Result<(), PromptError> {
        for (name, labels) in releases {
            match self.families.get_mut(&name) {
                Some(family) => family.labels.extend(labels),
                None => return Err(PromptError::of_file(file, self.no_such_name(&name))),
            }
        }
        Ok(())
    }

    fn no_such_name(&self, name: &str) -> String {
        let names: Vec<&str> = self.families.keys().map(String::as_str).collect();
        format!("there is no prompt `{name}`{}; known: {}", did_you_mean(name, &names), names.join(", "))
    }
}

impl Family {
    fn labels_of(&self, version: Version) -> impl Iterator<Item = &str> {
        self.labels.iter().filter(move |(_, meant)| **meant == version).map(|(label, _)| label.as_str())
    }

    fn no_such_version(&self, name: &str, wanted: &str) -> String {
        let labels: Vec<&str> = self.labels.keys().map(String::as_str).collect();
        format!(
            "prompt `{name}` has no version or label `{wanted}`{}; {}",
            did_you_mean(wanted, &labels),
            self.known(name)
        )
    }

    /// The known versions and labels, and how to give a version a label where there is none.
    fn known(&self, name: &str) -> String {
        let versions = self.versions.keys().map(Version::to_string).collect::<Vec<_>>().join(", ");
        let labels: Vec<String> =
            self.labels.iter().map(|(label, version)| format!("{label} ({version})")).collect();
        if labels.is_empty() {
            let newest = self.versions.keys().next_back().map(Version::to_string).unwrap_or_default();
            return format!(
                "versions: {versions}; no labels (a line `{name}: {{ production: {newest} }}` in {RELEASE} gives \
                 it one)"
            );
        }
        format!("versions: {versions}; labels: {}", labels.join(", "))
    }
}

impl Entry {
    fn prompt(&self, name: &str, version: Version) -> Result<Arc<Prompt>, PromptError> {
        self.prompt.get_or_init(|| self.source.read(name, version).map(Arc::new)).clone()
    }
}

impl Source {
    fn read(&self, name: &str, version: Version) -> Result<Prompt, PromptError> {
        match self {
            Self::Builtin(file) => read_built_in(file, name, version),
            Self::Brought { path, text } => Ok(Prompt::parse(name, version, path, text)?.of_project()),
            Self::File(path) => {
                let origin = path.display().to_string();
                let text = read_regular(path).map_err(|why| PromptError::of_file(&origin, why))?;
                let text = text.ok_or_else(|| PromptError::of_file(&origin, "does not exist any more"))?;
                Prompt::parse(name, version, &origin, &text)
            }
        }
    }
}

fn read_built_in(
    file: &'static builtin::File<'static>,
    name: &str,
    version: Version,
) -> Result<Prompt, PromptError> {
    let path = file.path().to_string_lossy();
    let origin = format!("built-in prompts/{path}");
    let unread = || PromptError::of_file(&origin, "was not read by the build");
    let text = file.contents_utf8().ok_or_else(unread)?;
    let head = builtin::tree("prompts", &path).ok_or_else(unread)?;
    let fingerprint = builtin::fingerprint(&path).ok_or_else(unread)?;
    Prompt::built_in((name, version, &origin), text, head, fingerprint)
}

/// What the labels of each name mean.
type Releases = BTreeMap<String, BTreeMap<String, Version>>;

fn releases(file: &str, text: &str) -> Result<Releases, PromptError> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    yaml::parse(text).map_err(|error| PromptError::of_yaml(file, error))
}

fn did_you_mean(name: &str, candidates: &[&str]) -> String {
    match text::nearest(name, candidates.iter().copied()).as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}

/// The entries of a directory, sorted; none where it does not exist.
fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let listing = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing?,
    };
    let mut paths = listing.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Listed, Prompt, Registry};
    use crate::config::{PromptDir, PromptSource};

    fn registry(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<Registry, Vec<super::PromptError>>) {
        let dir = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        let registry = Registry::open(&[dir.path().to_path_buf(), dir.path().join("absent")].map(PromptDir::new));
        (dir, registry)
    }

    #[test]
    fn what_is_built_in_is_sound() {
        let registry = Registry::open(&[]).expect("release.yaml is sound");
        assert_eq!(registry.check(), []);
        for Listed { name, version, prompt, .. } in registry.list() {
            let prompt = prompt.expect("sound");
            assert_eq!(prompt.fingerprint, registry.get(&name).expect("it has a production version").fingerprint);
            assert!(!prompt.description.is_empty());
            // What the build has read is what would be read here, and it is a template.
            let text = crate::builtin::PROMPTS.get_file(format!("{name}/{version}.md"));
            let text = text.and_then(crate::builtin::File::contents_utf8).expect("text");
            let read = Prompt::parse(&name, version, &prompt.origin, text).expect("sound");
            let facts = |prompt: &Prompt| {
                (prompt.body_line, prompt.body.clone(), prompt.required_vars.clone(), prompt.fingerprint.clone())
            };
            assert_eq!(facts(&read), facts(&prompt));
            assert_eq!((read.description, read.forbidden.len()), (prompt.description.clone(), 0));
        }
    }

    #[test]
    fn later_directories_win_file_by_file_and_label_by_label() {
        let (_dir, registry) = registry(&[
            ("system/v1.0.md", "mine"),
            ("system/v1.1.md", "newer"),
            ("system/notes.md", "{% not a prompt"),
            ("own/v2.0.md", "own"),
            ("release.yaml", "system: { next: v1.1 }\n"),
        ]);
        let registry = registry.expect("sound");
        let body = |reference: &str| registry.get(reference).map(|prompt| prompt.body.clone());
        assert_eq!(body("system").as_deref(), Ok("mine"));
        assert_eq!(body("system@1.1").as_deref(), Ok("newer"));
        assert_eq!(body("system@next").as_deref(), Ok("newer"));
        assert_eq!(body("own@v2.0").as_deref(), Ok("own"));
        let unlabelled = body("own").expect_err("no label").to_string();
        assert!(unlabelled.contains("own: { production: v2.0 }"), "{unlabelled}");
        assert_eq!(registry.list().len(), 5);
    }

    #[test]
    fn errors_say_what_there_is() {
        let registry = Registry::open(&[]).expect("sound");
        let error = |reference: &str| registry.get(reference).expect_err("unknown").to_string();
        assert!(error("sytem").contains("did you mean system?"), "{}", error("sytem"));
        assert!(error("system@prodution").contains("did you mean production?"));
        assert!(error("system@v9.9").contains("versions: v1.0; labels: production (v1.0)"));
    }

    #[test]
    fn mistakes_in_release_yaml_have_a_place() {
        let (_dir, wrong) = registry(&[("release.yaml", "system:\n  production: latest\n")]);
        let error = wrong.expect_err("not a version")[0].to_string();
        assert!(error.contains("release.yaml:2:"), "{error}");
        let (_dir, unknown) = registry(&[("release.yaml", "sistem: { production: v1.0 }\n")]);
        assert!(unknown.expect_err("no such prompt")[0].to_string().contains("did you mean system?"));
        let (_dir, dangling) = registry(&[("release.yaml", "system: { next: v7.0 }\n")]);
        let errors = dangling.expect("lazily").check();
        assert!(errors[0].to_string().contains("system/v7.0.md does not exist"), "{errors:?}");
    }

    #[test]
    fn a_configuration_may_write_a_prompt_out() {
        let registry = Registry::open(&[]).expect("sound");
        let prompt =
            registry.of(&PromptSource::Inline("Be brief.".to_owned()), "here", false).expect("a template");
        assert_eq!((prompt.name.as_str(), prompt.version), ("inline", None));
    }
}
