//! From directories, variables and flags to the one read-only [`Config`]: everything is read, then merged, then
//! checked, and nothing half-loads.
//!
//! When all is well no schema is built: the merged trees are read as their types, which refuse what they do not
//! know. Only a failure, or `config check`, walks the schemas to name every mistake at once.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde::de::DeserializeOwned;

use super::command;
use super::document::Reading;
use super::env::{Dirs, Env};
use super::inspect;
use super::key;
use super::layer::{self, Layers};
use super::merge::Merged;
use super::mistake::{ConfigError, Mistake, did_you_mean};
use super::model::ModelConfig;
use super::rules;
use super::settings::{AgentConfig, Named, SessionStoreConfig, Settings};
use super::skill_dirs::{self, SkillDir};
use super::source::{Document, Kind, Sources};
use super::tool::ToolConfig;
use crate::workspace::Workspace;

/// What a configuration is made from.
#[derive(Debug, Clone)]
pub struct LoadOptions<'a> {
    pub env: &'a Env,
    pub workspace: &'a Workspace,
    /// `--config DIR`; without it `AGENT_CONFIG` is asked.
    pub config_dir: Option<PathBuf>,
    /// `--set KEY=VALUE`, in order.
    pub sets: &'a [String],
    /// Whether what the workspace brings along is used; see [`super::brought`].
    pub trust: bool,
}

/// The configuration of a run: read-only.
#[derive(Debug)]
pub struct Config {
    pub settings: Settings,
    pub agents: Named<AgentConfig>,
    pub models: Named<ModelConfig>,
    /// By the name that the model calls.
    pub tools: Named<ToolConfig>,
    pub session_stores: Named<SessionStoreConfig>,
    /// Lowest first; the built-in prompts are below them all.
    pub prompt_dirs: Vec<PathBuf>,
    /// Lowest first; the built-in skills are below them all.
    pub skill_dirs: Vec<SkillDir>,
    /// The config directories that were read, lowest first.
    pub config_dirs: Vec<PathBuf>,
    /// What is worth a line, but no reason to stop.
    pub warnings: Vec<String>,
    pub env: Env,
    pub dirs: Dirs,
    pub(super) sources: Sources,
    pub(super) documents: Vec<Document>,
}

/// A name that is not configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} `{name}`: {}", did_you_mean(name, known.iter().map(String::as_str))
    .unwrap_or_else(|| format!("configured: {}", known.join(", "))))]
pub struct UnknownName {
    /// `agent`, `model`
    pub what: &'static str,
    pub name: String,
    pub known: Vec<String>,
}

/// Says what is wrong with a reference to a prompt, given the prompt directories (lowest first).
pub type PromptCheck<'p> = dyn FnMut(&[PathBuf], &str) -> Result<(), String> + 'p;

/// Reads the configuration.
///
/// # Errors
/// Every mistake, if there is one.
pub fn load(options: &LoadOptions<'_>) -> Result<Config, ConfigError> {
    let (gathered, mut mistakes) = gather(options);
    let merged = Merged::of(&gathered.documents);
    let mut typed = Typed::default();
    let refused = typed.read(&merged, &gathered.sources);
    if !mistakes.is_empty() || !refused.is_empty() {
        inspect::against_schemas(&gathered, &merged, &mut mistakes);
    }
    typed.check(&merged, &gathered.sources, refused, &mut mistakes);
    finish(options, gathered, typed, mistakes)
}

/// Reads the configuration as [`load`] does, and checks what a run would find out only later: values that a higher
/// layer hides, the syntax of prompts and scripts, and that the prompts which agents name exist. `prompt` is
/// asked about references like `system@production`; `tools` are the names that permission rules may speak of.
///
/// # Errors
/// Every mistake, if there is one.
pub fn check(
    options: &LoadOptions<'_>,
    prompt: &mut PromptCheck<'_>,
    tools: &[&str],
) -> Result<Config, ConfigError> {
    let (gathered, mut mistakes) = gather(options);
    let merged = Merged::of(&gathered.documents);
    let mut typed = Typed::default();
    let refused = typed.read(&merged, &gathered.sources);
    inspect::against_schemas(&gathered, &merged, &mut mistakes);
    typed.check(&merged, &gathered.sources, refused, &mut mistakes);
    inspect::run_time_templates(&gathered, &mut mistakes);
    inspect::prompts(&gathered, &merged, prompt, &mut mistakes);
    let own = merged.of_kind(Kind::Tools).map(|(name, _)| name);
    let tools: Vec<&str> = tools.iter().copied().chain(own).collect();
    inspect::tools_of_rules(&gathered, &tools, &mut mistakes);
    finish(options, gathered, typed, mistakes)
}

/// Everything that was read, before it means anything.
pub(super) struct Gathered {
    pub layers: Layers,
    pub sources: Sources,
    pub documents: Vec<Document>,
    pub warnings: Vec<String>,
}

fn gather(options: &LoadOptions<'_>) -> (Gathered, Vec<Mistake>) {
    let mut layers = layer::find(options);
    let mut reading = Reading {
        env: options.env,
        sources: Sources::default(),
        documents: Vec::new(),
        mistakes: std::mem::take(&mut layers.mistakes),
        warnings: std::mem::take(&mut layers.warnings),
        included: Arc::new(Mutex::new(HashSet::new())),
    };
    for dir in &layers.dirs {
        let scan = layer::scan(dir);
        reading.mistakes.extend(scan.mistakes);
        scan.files.into_iter().for_each(|file| reading.read(file));
        let included = reading.included.lock().expect("no holder panics");
        let is_included = |unknown: &str| {
            let inside = |name: &str| name == unknown || name.starts_with(&format!("{unknown}/"));
            included.iter().any(|(root, name)| Some(root) == dir.dir.as_ref() && inside(name))
        };
        let unknown = scan.unknown.into_iter().filter(|(path, _)| !is_included(path));
        reading.mistakes.extend(unknown.map(|(_, mistake)| mistake));
    }
    key::apply(&mut reading, options.sets);
    let Reading { sources, documents, mistakes, warnings, .. } = reading;
    (Gathered { layers, sources, documents, warnings }, mistakes)
}

/// What the merged trees are, as far as they can be read.
#[derive(Default)]
struct Typed {
    settings: Option<Settings>,
    agents: Named<AgentConfig>,
    models: Named<ModelConfig>,
    tools: Named<ToolConfig>,
    session_stores: Named<SessionStoreConfig>,
}

impl Typed {
    /// Reads what can be read, and returns what cannot.
    fn read(&mut self, merged: &Merged, sources: &Sources) -> Vec<Mistake> {
        let mut refused = Vec::new();
        let mut settings = Named::new();
        named(merged, Kind::Settings, sources, &mut settings, &mut refused);
        self.settings = settings.remove("");
        named(merged, Kind::Agents, sources, &mut self.agents, &mut refused);
        named(merged, Kind::Models, sources, &mut self.models, &mut refused);
        named(merged, Kind::Tools, sources, &mut self.tools, &mut refused);
        named(merged, Kind::SessionStores, sources, &mut self.session_stores, &mut refused);
        refused
    }

    /// What types cannot say: references and values that make no sense. What the types `refused` is told only where
    /// nothing else was found, for the schemas say the same in better words.
    fn check(&self, merged: &Merged, sources: &Sources, refused: Vec<Mistake>, mistakes: &mut Vec<Mistake>) {
        if mistakes.is_empty() {
            mistakes.extend(refused);
        }
        references(merged, sources, mistakes);
        command::check(merged, sources, &self.tools, mistakes);
        let sections = merged.get(Kind::Settings, "");
        rules::check(
            self.settings.as_ref(),
            sections,
            &self.agents,
            &self.models,
            &mut |kind, name, path, message| {
                let node = merged.get(kind, name);
                let value = node.and_then(|node| node.at(path.iter().copied()).or(Some(node)));
                mistakes.push(Mistake::at(sources, value.map(|node| node.place).unwrap_or_default(), message));
            },
        );
    }
}

/// Agents and models that are named must be configured. Read from the trees, so that a mistake elsewhere in a file
/// does not hide this one.
fn references(merged: &Merged, sources: &Sources, mistakes: &mut Vec<Mistake>) {
    let settings =
        merged.of_kind(Kind::Settings).map(|(_, node)| (node.get("default_agent"), Kind::Agents, "agent"));
    let agents = merged.of_kind(Kind::Agents).map(|(_, node)| (node.get("model"), Kind::Models, "model"));
    for (node, kind, what) in settings.chain(agents) {
        let Some((node, target)) = node.and_then(|node| Some((node, node.text()?))) else { continue };
        let known: Vec<&str> = merged.of_kind(kind).map(|(name, _)| name).collect();
        if !known.contains(&target) {
            let hint = did_you_mean(target, known.iter().copied());
            let hint = hint.unwrap_or_else(|| format!("configured: {}", known.join(", ")));
            mistakes.push(Mistake::at(sources, node.place, format!("there is no {what} `{target}`")).hint(hint));
        }
    }
}

fn named<T: DeserializeOwned>(
    merged: &Merged,
    kind: Kind,
    sources: &Sources,
    into: &mut Named<T>,
    mistakes: &mut Vec<Mistake>,
) {
    for (name, node) in merged.of_kind(kind) {
        match node.read() {
            Ok(value) => {
                into.insert(name.to_owned(), value);
            }
            Err(error) => {
                mistakes.push(Mistake::at(sources, error.place.unwrap_or(node.place), error.message));
            }
        }
    }
}

fn finish(
    options: &LoadOptions<'_>,
    gathered: Gathered,
    typed: Typed,
    mut mistakes: Vec<Mistake>,
) -> Result<Config, ConfigError> {
    if mistakes.is_empty()
        && let Some(settings) = typed.settings
    {
        let mut layers = gathered.layers;
        layers.skill_dirs.extend(skill_dirs::configured(&settings.skills, &options.env.dirs().home));
        return Ok(Config {
            settings,
            agents: typed.agents,
            models: typed.models,
            tools: typed.tools,
            session_stores: typed.session_stores,
            prompt_dirs: layers.prompt_dirs,
            skill_dirs: layers.skill_dirs,
            config_dirs: layers.dirs.into_iter().filter_map(|layer| layer.dir).collect(),
            warnings: gathered.warnings,
            env: options.env.clone(),
            dirs: options.env.dirs(),
            sources: gathered.sources,
            documents: gathered.documents,
        });
    }
    let order = |mistake: &Mistake| {
        (gathered.sources.position(&mistake.file), mistake.line.unwrap_or(0), mistake.column.unwrap_or(0))
    };
    mistakes.sort_by_cached_key(|mistake| order(mistake));
    mistakes.dedup();
    // A value from a variable may stand in a line or a message.
    let redactor = super::redact::Redactor::of_env(options.env);
    for mistake in &mut mistakes {
        mistake.message = redactor.redact(&mistake.message).into_owned();
        mistake.source_line = mistake.source_line.as_deref().map(|line| redactor.redact(line).into_owned());
    }
    Err(ConfigError { mistakes })
}

impl LoadOptions<'_> {
    /// The directory that stands in for user and project, if one was named.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        self.config_dir.clone().or_else(|| self.env.get("AGENT_CONFIG").map(PathBuf::from))
    }
}

impl Config {
    /// An agent by name; the default one without.
    ///
    /// # Errors
    /// When none of that name is configured.
    pub fn agent(&self, name: Option<&str>) -> Result<&AgentConfig, UnknownName> {
        find("agent", &self.agents, name.unwrap_or(&self.settings.default_agent))
    }

    /// A model by its configured name.
    ///
    /// # Errors
    /// When none of that name is configured.
    pub fn model(&self, name: &str) -> Result<&ModelConfig, UnknownName> {
        find("model", &self.models, name)
    }

    /// Where sessions live: an absolute path.
    #[must_use]
    pub fn session_dir(&self) -> PathBuf {
        let dir = self.session_stores.get("default").map_or("sessions", |store| store.dir.as_str());
        match dir.strip_prefix("~/") {
            Some(rest) => self.dirs.home.join(rest),
            None => self.dirs.data.join(dir),
        }
    }
}

fn find<'c, T>(what: &'static str, all: &'c Named<T>, name: &str) -> Result<&'c T, UnknownName> {
    let unknown = || UnknownName { what, name: name.to_owned(), known: all.keys().cloned().collect() };
    all.get(name).ok_or_else(unknown)
}
