//! Dotted keys, `limits.max_turns`, `models.NAME.retry.attempts`, and the variables and flags that set them.

use super::document::ConfigReading;
use super::mistake::Mistake;
use super::source::{ConfigDocument, ConfigLayer, SubjectKind};
use crate::base::yaml::{self, Node, Scalar, ScalarForm, YamlPlace, YamlTree};

const VARIABLE: &str = "AGENT_SET_";

/// The parts of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyPath {
    pub kind: SubjectKind,
    /// Empty for the settings.
    pub name: String,
    pub path: Vec<String>,
}

/// The key of the settings at the place where otherwise the name of a tool is.
const OF_ALL_TOOLS: &str = "embedding_model";

/// Splits a dotted key. Names may contain dots themselves, so the longest of `names` that fits is taken; an unknown
/// name ends at the next dot.
pub(super) fn parse_key<'n>(key: &str, names: impl Fn(SubjectKind) -> Vec<&'n str>) -> KeyPath {
    let steps = |text: &str| text.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect();
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    let is_of_all = first == SubjectKind::Tools.name() && rest == OF_ALL_TOOLS;
    let kind = SubjectKind::NAMED.into_iter().find(|kind| kind.name() == first && !is_of_all);
    let Some(kind) = kind else {
        return KeyPath { kind: SubjectKind::Settings, name: String::new(), path: steps(key) };
    };
    let fits = |name: &&str| rest.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let name = names(kind).into_iter().filter(fits).max_by_key(|name| name.len());
    let name = name.unwrap_or_else(|| rest.split('.').next().unwrap_or_default());
    KeyPath { kind, name: name.to_owned(), path: steps(&rest[name.len()..]) }
}

/// Adds the values of `AGENT_SET_…` variables and `--set` flags, as documents on top of all files.
pub(super) fn apply_sets(reading: &mut ConfigReading<'_>, sets: &[String]) {
    let variables: Vec<(String, String)> = reading
        .env
        .iter()
        .filter(|(name, _)| name.starts_with(VARIABLE))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    for (name, value) in variables {
        let key = reading.key_of_variable(&name);
        // No limit would be the opposite of what was meant.
        let is_limit = key.split('.').any(|part| part == "limits");
        if value.is_empty() && !is_limit {
            continue;
        }
        reading.set(ConfigLayer::Variables, name, &key, &value);
    }
    for set in sets {
        if let Some((key, value)) = set.split_once('=') {
            let key = key.trim();
            reading.set(ConfigLayer::Flags, format!("--set {key}"), key, value.trim());
            continue;
        }
        // The text after the key may be a secret.
        let is_key = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
        let key = &set[..set.find(|c| !is_key(c)).unwrap_or(set.len())];
        reading.mistakes.push(Mistake::in_file(format!("--set {key}"), "it is KEY=VALUE"));
    }
}

impl ConfigReading<'_> {
    /// The names of a kind that files describe.
    pub fn names(&self, kind: SubjectKind) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.documents.iter().filter(|d| d.kind == kind).map(|d| d.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Converts `AGENT_SET_MODELS__MY_MODEL__RETRY` to `models.my-model.retry`: variables cannot distinguish case, `-`
    /// and `.`, so a configured name that looks the same is meant.
    fn key_of_variable(&self, variable: &str) -> String {
        let steps: Vec<&str> = variable[VARIABLE.len()..].split("__").collect();
        let mut key: Vec<String> = steps.iter().map(|step| step.to_ascii_lowercase()).collect();
        let kind = SubjectKind::NAMED.into_iter().find(|kind| kind.name() == key[0]);
        if let (Some(kind), Some(name)) = (kind, steps.get(1)) {
            let flat = |name: &str| name.replace(['-', '.'], "_").to_ascii_uppercase();
            if let Some(known) = self.names(kind).into_iter().find(|known| flat(known) == flat(name)) {
                known.clone_into(&mut key[1]);
            }
        }
        key.join(".")
    }

    fn set(&mut self, layer: ConfigLayer, source_name: String, key: &str, value: &str) {
        let KeyPath { kind, name, path } = parse_key(key, |kind| self.names(kind));
        // A built-in tool has no file unless somebody wrote one; the callers know whether it exists.
        let may_be_new = matches!(kind, SubjectKind::Settings | SubjectKind::Tools);
        if !may_be_new && !self.names(kind).contains(&name.as_str()) {
            let message = format!("there is nothing called `{name}` in {}", kind.name());
            let known = self.names(kind);
            self.mistakes.push(Mistake::in_file(source_name, message).did_you_mean(&name, known));
            return;
        }
        if path.is_empty() {
            self.mistakes.push(Mistake::in_file(source_name, "the key names no value, only where values stand"));
            return;
        }
        let shown = source_name.clone();
        let place = self.sources.add_value(layer, source_name);
        let value = match value_of(value, place) {
            Ok(value) => value,
            Err(message) => {
                self.mistakes.push(Mistake::in_file(shown, format!("the value is not YAML: {message}")));
                return;
            }
        };
        self.documents.push(ConfigDocument::of_value(layer, kind, name, path, value));
    }
}

/// Parses a list, a mapping or a quoted text in one line of YAML; anything else is a scalar as it is.
fn value_of(text: &str, place: YamlPlace) -> Result<Node, String> {
    if !text.starts_with(['[', '{', '"', '\'']) {
        return Ok(Node {
            tree: YamlTree::Scalar(Scalar { text: text.to_owned().into(), form: ScalarForm::Given }),
            place,
        });
    }
    let mut node = yaml::parse_tree(text, place.source).map_err(|errors| errors[0].message.clone())?;
    settle_places(&mut node, place);
    Ok(node)
}

/// Sets the place of everything in a flag to the flag.
fn settle_places(node: &mut Node, place: YamlPlace) {
    node.place = place;
    match &mut node.tree {
        YamlTree::Scalar(scalar) if scalar.form == ScalarForm::Plain => scalar.form = ScalarForm::Given,
        YamlTree::Scalar(_) => {}
        YamlTree::List(items) => items.iter_mut().for_each(|item| settle_places(item, place)),
        YamlTree::Map(entries) => {
            for (key, value) in entries {
                key.place = place;
                settle_places(value, place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SubjectKind, parse_key};

    #[test]
    fn keys_name_kind_and_name() {
        let names = |kind| if kind == SubjectKind::Models { vec!["gpt-4", "gpt-4.1"] } else { vec![] };
        let table = [
            ("limits.max_turns", SubjectKind::Settings, "", "limits/max_turns"),
            ("models.gpt-4.1.retry.attempts", SubjectKind::Models, "gpt-4.1", "retry/attempts"),
            ("models.gpt-4.retry", SubjectKind::Models, "gpt-4", "retry"),
            ("models.other.x", SubjectKind::Models, "other", "x"),
            ("tools.embedding_model", SubjectKind::Settings, "", "tools/embedding_model"),
            ("tools.embedding_model.timeout", SubjectKind::Tools, "embedding_model", "timeout"),
            ("tools.grep.timeout", SubjectKind::Tools, "grep", "timeout"),
            ("models", SubjectKind::Models, "", ""),
            ("agents.default", SubjectKind::Agents, "default", ""),
        ];
        for (key, kind, name, path) in table {
            let found = parse_key(key, names);
            assert_eq!(
                (found.kind, found.name.as_str(), found.path.join("/").as_str()),
                (kind, name, path),
                "{key}"
            );
        }
    }
}
