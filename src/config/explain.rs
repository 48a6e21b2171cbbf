//! `config show` and `config explain`: the merged result, and who set what, without a secret in either.

use std::fmt::Write;

use serde_json::{Value, json};

use super::key::{self, KeyPath};
use super::loaded::{Config, UnknownName};
use super::merge::INHERITED;
use super::mistake::{ConfigError, Mistake, in_order};
use super::source::{ConfigDocument, ConfigLayer, SubjectKind};
use crate::base::secrets::Redactor;
use crate::base::yaml::{self, Node, YamlPlace, YamlTree};

impl Config {
    /// The merged result as YAML, defaults included, secrets as `***`.
    pub fn show(&self) -> String {
        yaml::write_document(&self.mask_secrets()).unwrap_or_default()
    }

    /// The value of a dotted key and the chain of what set it, highest first, secrets as `***`.
    ///
    /// # Errors
    /// There is no such key.
    pub fn explain(&self, key: &str) -> Result<String, UnknownName> {
        let KeyPath { kind, name, path } = key::parse_key(key, |kind| self.names(kind));
        let mut value = &self.mask_secrets();
        let mut text = String::new();
        let mut so_far = match kind {
            SubjectKind::Settings => vec![],
            _ => vec![kind.name(), name.as_str()],
        };
        so_far.retain(|step| !step.is_empty());
        so_far.extend(path.iter().map(String::as_str));
        for step in &so_far {
            let known: Vec<String> = value.as_object().map(|o| o.keys().cloned().collect()).unwrap_or_default();
            value = value.get(*step).ok_or(UnknownName { what: "key", name: (*step).to_owned(), known })?;
        }
        let shown = match value {
            Value::Object(_) | Value::Array(_) => {
                let text = yaml::write_document(value).unwrap_or_default();
                format!("\n{}", text.lines().flat_map(|line| ["  ", line, "\n"]).collect::<String>())
            }
            scalar => format!(" {}", yaml::write_document(scalar).unwrap_or_default().trim_end()),
        };
        let _ = writeln!(text, "{key}:{}", shown.trim_end());
        let chain = self.chain(kind, &name, &path);
        if chain.is_empty() {
            text.push_str("  default of the program\n");
        }
        let redactor = self.redactor();
        for (number, (document, node)) in chain.iter().rev().enumerate() {
            let place = self.sources.describe(node.place);
            let layer = self.sources.get(node.place).layer;
            let inherited = if document.kind == kind { "" } else { ", inherited from the settings" };
            let verb = if number == 0 { "set by" } else { "over" };
            let last = path.last().map_or("", String::as_str);
            let _ =
                writeln!(text, "  {verb:<6} {place} ({layer}{inherited}){}", word_value(&redactor, last, node));
        }
        Ok(text)
    }

    /// A mistake about the value of a dotted key (indices lead into lists: `agents.default.tools.0`), at the place
    /// that set it last: for those who know what a value must refer to.
    pub fn mistake(&self, key: &str, message: &str) -> Mistake {
        self.mistake_of(&[key.to_owned()], message)
    }

    /// The same for a mistake that several values make together: at the one of them that the highest layer set.
    pub fn mistake_of(&self, keys: &[String], message: &str) -> Mistake {
        let latest = keys.iter().filter_map(|key| {
            let place = self.place_of(key)?;
            Some((self.sources.get(place).layer, place))
        });
        // Of several in one layer, the first.
        let latest = latest.reduce(|found, other| if other.0 > found.0 { other } else { found });
        match latest {
            Some((_, place)) => Mistake::place_at(&self.sources, place, message),
            None => Mistake::in_file(keys.first().map_or("", String::as_str), message),
        }
    }

    /// The origin of the value of a dotted key, for people: `file:line`, the variable or the flag.
    pub fn place(&self, key: &str) -> String {
        self.place_of(key).map_or(key.to_owned(), |place| self.sources.describe(place))
    }

    /// True if the value of a dotted key is one that the workspace brings along.
    pub fn is_of_project(&self, key: &str) -> bool {
        self.place_of(key).is_some_and(|place| self.sources.get(place).layer == ConfigLayer::Project)
    }

    /// The place that set the value of a dotted key last.
    fn place_of(&self, key: &str) -> Option<YamlPlace> {
        let KeyPath { kind, name, path } = key::parse_key(key, |kind| self.names(kind));
        Some(self.chain(kind, &name, &path).last()?.1.place)
    }

    /// All mistakes as one error, in the order of their places.
    pub fn error(&self, mut mistakes: Vec<Mistake>) -> ConfigError {
        in_order(&self.sources, &mut mistakes);
        ConfigError { mistakes }
    }

    /// The file, variable or flag that describes a tool; of several, the one that wins.
    pub fn where_tool_is(&self, name: &str) -> Option<&str> {
        let (_, node) = *self.chain(SubjectKind::Tools, name, &[]).last()?;
        Some(&self.sources.get(node.place).name)
    }

    /// The documents that state the value at `path`, or a part of it, lowest first.
    fn chain(&self, kind: SubjectKind, name: &str, path: &[String]) -> Vec<(&ConfigDocument, &Node)> {
        let inherits =
            kind == SubjectKind::Agents && path.first().is_some_and(|key| INHERITED.contains(&key.as_str()));
        let ground = self.documents.iter().filter(|d| inherits && d.kind == SubjectKind::Settings);
        let own = self.documents.iter().filter(|d| d.kind == kind && d.name == name);
        let steps = || path.iter().map(String::as_str);
        let found = ground.chain(own).filter_map(|document| Some((document, document.node.find(steps())?)));
        found.filter(|(_, node)| !node.is_blank()).collect()
    }

    fn names(&self, kind: SubjectKind) -> Vec<&str> {
        self.documents.iter().filter(|d| d.kind == kind).map(|d| d.name.as_str()).collect()
    }

    pub(super) fn mask_secrets(&self) -> Value {
        let mut value = json!(self.settings);
        value["agents"] = json!(self.agents);
        value["models"] = json!(self.models);
        // Settings for all tools are listed beside the single tools.
        if let (Value::Object(all), Value::Object(single)) = (&mut value["tools"], json!(self.tools)) {
            all.extend(single);
        }
        value["session_stores"] = json!(self.session_stores);
        value["flows"] = json!(self.flows);
        self.redactor().mask("", &mut value);
        value
    }
}

/// The value that one layer set, in short.
fn word_value(redactor: &Redactor, key: &str, node: &Node) -> String {
    if !matches!(node.tree, YamlTree::Scalar(_)) {
        return String::new();
    }
    let mut value = Value::String(node.text().unwrap_or_default().to_owned());
    redactor.mask(key, &mut value);
    format!(": {}", crate::base::text::one_line(value.as_str().unwrap_or_default(), 60))
}
