//! The sources of values: the texts that were read, in the order of their layers; later ones win.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::base::spelling::spell;
use crate::base::yaml::{Node, YamlKey, YamlPlace, YamlTree};

/// The layers, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigLayer {
    BuiltIn,
    User,
    Project,
    /// `--config DIR` or `AGENT_CONFIG`, which replaces user and project.
    Directory,
    Variables,
    Flags,
}

impl fmt::Display for ConfigLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built in",
            Self::User => "user",
            Self::Project => "project",
            Self::Directory => "--config",
            Self::Variables => "variable",
            Self::Flags => "flag",
        })
    }
}

/// The kind of a file's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// `agent.yaml`
    Settings,
    Agents,
    Models,
    Tools,
    SessionStores,
    Flows,
    Mcp,
    Hooks,
}

impl SubjectKind {
    /// Every kind, in the order of the files.
    pub const ALL: [Self; 8] = [
        Self::Settings,
        Self::Agents,
        Self::Models,
        Self::Tools,
        Self::SessionStores,
        Self::Flows,
        Self::Mcp,
        Self::Hooks,
    ];
    /// The kinds that have a file for each name. Their dotted keys begin with the kind.
    pub const NAMED: [Self; 7] =
        [Self::Agents, Self::Models, Self::Tools, Self::SessionStores, Self::Flows, Self::Mcp, Self::Hooks];

    /// Its name in keys and schemas.
    pub fn name(self) -> &'static str {
        spell(&self)
    }

    /// The folder of its files in a config directory; the settings are a single file.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Settings => "",
            Self::SessionStores => "storages/session_stores",
            other => other.name(),
        }
    }

    /// The kind of this name, in the singular or the plural: `model` and `models` are the same.
    ///
    /// # Errors
    /// There is no such kind; the error is a sentence that lists the kinds.
    pub fn parse(name: &str) -> Result<Self, String> {
        let is_meant = |kind: &Self| kind.name() == name || kind.name().strip_suffix('s') == Some(name);
        let kind = Self::ALL.into_iter().find(is_meant);
        kind.ok_or_else(|| format!("there is no kind `{name}`: {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// A text that values came from: a file, a variable or a flag.
#[derive(Debug)]
pub(super) struct ConfigSource {
    pub layer: ConfigLayer,
    /// The path, `AGENT_SET_…` or `--set KEY`.
    pub name: String,
    /// The text to which line and column refer: the file, or the output of a `.yaml.j2` file. Empty for variables and
    /// flags.
    pub text: Cow<'static, str>,
    /// True if `text` is the output of a template.
    pub rendered: bool,
}

/// One source's values for one thing.
#[derive(Debug)]
pub(super) struct ConfigDocument {
    pub layer: ConfigLayer,
    pub kind: SubjectKind,
    /// Empty for the settings.
    pub name: String,
    pub node: Node,
}

impl ConfigDocument {
    /// A document with one value, at a path of keys.
    pub fn of_value(layer: ConfigLayer, kind: SubjectKind, name: String, path: Vec<String>, value: Node) -> Self {
        let place = value.place;
        let node = path.into_iter().rev().fold(value, |inner, step| Node {
            tree: YamlTree::Map(vec![(YamlKey { text: step.into(), place }, inner)]),
            place,
        });
        Self { layer, kind, name, node }
    }
}

/// Every source that was read; a [`YamlPlace`] carries its number.
#[derive(Debug, Default)]
pub(super) struct Sources(Vec<ConfigSource>);

impl Sources {
    pub fn add(&mut self, source: ConfigSource) -> u16 {
        self.0.push(source);
        u16::try_from(self.0.len() - 1).expect("fewer sources than files that can be read in a moment")
    }

    /// Adds a variable or a flag, which has no text. Returns the place of its value.
    pub fn add_value(&mut self, layer: ConfigLayer, name: String) -> YamlPlace {
        let source = self.add(ConfigSource { layer, name, text: "".into(), rendered: false });
        YamlPlace { source, ..YamlPlace::default() }
    }

    /// The number of the source with this name; unknown ones come last.
    pub fn position(&self, name: &str) -> usize {
        self.0.iter().position(|source| source.name == name).unwrap_or(usize::MAX)
    }

    pub fn get(&self, place: YamlPlace) -> &ConfigSource {
        &self.0[usize::from(place.source)]
    }

    /// `file:line`, or the name of the variable or flag.
    pub fn describe(&self, place: YamlPlace) -> String {
        let source = self.get(place);
        let name = &source.name;
        match (place.line, source.rendered) {
            (0, _) => name.clone(),
            (line, false) => format!("{name}:{line}"),
            (line, true) => format!("{name}:{line} (of what it renders to)"),
        }
    }
}
