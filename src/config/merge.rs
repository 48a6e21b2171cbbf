//! Documents of the same kind and name become one: mappings merge key by key, everything else is replaced.
//!
//! The exception are the permission rules: those of a project are added to the user's, and an agent's own to those of
//! the settings, so that none of them is lost.

use std::collections::BTreeMap;

use super::document::RULES;
use super::source::{ConfigDocument, ConfigLayer, SubjectKind};
use crate::base::yaml::{Node, Scalar, ScalarForm, YamlKey, YamlPlace, YamlTree};

/// The sections of the settings that every agent inherits.
pub(super) const INHERITED: [&str; 5] = ["limits", "context", "tool_output", "sandbox", "permissions"];

/// The merged tree of everything, by kind and name. The agents' sections override those of the settings.
pub(super) struct Merged(BTreeMap<(SubjectKind, String), Node>);

impl Merged {
    pub fn merge_all<'d>(documents: impl IntoIterator<Item = &'d ConfigDocument>) -> Self {
        let mut merged = BTreeMap::<(SubjectKind, String), Node>::new();
        for ConfigDocument { layer, kind, name, node } in documents {
            let empty = || Node { tree: YamlTree::Map(Vec::new()), place: node.place };
            let below = merged.entry((*kind, name.clone())).or_insert_with(empty);
            let kept = below.find(RULES).cloned().filter(|_| *layer == ConfigLayer::Project);
            lay_over(below, node);
            add_below(below, kept);
        }
        let settings = merged.get(&(SubjectKind::Settings, String::new())).cloned();
        for ((kind, name), node) in &mut merged {
            if *kind != SubjectKind::Settings {
                set_name(node, name);
            }
            if let (SubjectKind::Agents, Some(settings)) = (kind, &settings) {
                inherit_sections(node, settings);
            }
        }
        Self(merged)
    }

    pub fn get(&self, kind: SubjectKind, name: &str) -> Option<&Node> {
        self.0.get(&(kind, name.to_owned()))
    }

    pub fn of_kind(&self, kind: SubjectKind) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().filter(move |((k, _), _)| *k == kind).map(|((_, name), node)| (name.as_str(), node))
    }
}

/// Merges `above` into `below`. A section without content has no effect.
pub(super) fn lay_over(below: &mut Node, above: &Node) {
    if above.is_blank() && matches!(below.tree, YamlTree::Map(_)) {
        return;
    }
    let (YamlTree::Map(lower), YamlTree::Map(upper)) = (&mut below.tree, &above.tree) else {
        *below = above.clone();
        return;
    };
    for (key, value) in upper {
        match lower.iter_mut().find(|(other, _)| other.text == key.text) {
            Some((other, below)) => {
                // The place of a value is also that of its key.
                if !matches!(value.tree, YamlTree::Map(_)) {
                    other.place = key.place;
                }
                lay_over(below, value);
            }
            None => lower.push((key.clone(), value.clone())),
        }
    }
}

/// Adds the replaced rules after those that replaced them.
fn add_below(node: &mut Node, kept: Option<Node>) {
    let section = node.get_mut(RULES[0]);
    let rules = section.and_then(|section| section.get_mut(RULES[1]));
    let unchanged = |rules: &&mut Node| kept.as_ref().is_some_and(|kept| kept.place == rules.place);
    prepend_list(rules.filter(|rules| !unchanged(rules)), kept.clone());
}

fn prepend_list(list: Option<&mut Node>, first: Option<Node>) {
    if let (Some(Node { tree: YamlTree::List(list), .. }), Some(Node { tree: YamlTree::List(first), .. })) =
        (list, first)
    {
        list.splice(0..0, first);
    }
}

/// Sets a missing name to that of the file.
fn set_name(node: &mut Node, name: &str) {
    let place = YamlPlace { line: 0, column: 0, ..node.place };
    let value =
        Node { tree: YamlTree::Scalar(Scalar { text: name.to_owned().into(), form: ScalarForm::Quoted }), place };
    if let YamlTree::Map(entries) = &mut node.tree {
        entries.retain(|(key, _)| key.text != "name");
        entries.insert(0, (YamlKey { text: "name".into(), place }, value));
    }
}

/// Merges an agent's sections into those of the settings.
pub(super) fn inherit_sections(agent: &mut Node, settings: &Node) {
    let YamlTree::Map(entries) = &mut agent.tree else { return };
    for section in INHERITED {
        let Some((key, ground)) = settings.entries().iter().find(|(key, _)| key.text == section) else { continue };
        let mut merged = ground.clone();
        let rules = ground.get(RULES[1]).cloned().filter(|_| section == RULES[0]);
        match entries.iter_mut().find(|(key, _)| key.text == section) {
            Some((_, own)) => {
                let adds = own.get(RULES[1]).is_some();
                lay_over(&mut merged, own);
                *own = merged;
                prepend_list(own.get_mut(RULES[1]), rules.filter(|_| adds));
            }
            None => entries.push((key.clone(), merged)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::lay_over;
    use crate::base::yaml::parse_tree;

    fn merged(below: &str, above: &str) -> Value {
        let mut node = parse_tree(below, 0).expect("valid");
        lay_over(&mut node, &parse_tree(above, 1).expect("valid"));
        node.read().expect("any value")
    }

    #[test]
    fn mappings_merge_and_the_rest_replaces() {
        let table = [
            ("a: {b: 1, c: 2}", "a: {c: 3}", json!({"a": {"b": 1, "c": 3}})),
            ("a: [1, 2]", "a: [3]", json!({"a": [3]})),
            ("a: {b: 1}", "a:", json!({"a": {"b": 1}})),
            ("a: {b: 1}", "a: null", json!({"a": null})),
            ("a: 1", "a: {b: 1}", json!({"a": {"b": 1}})),
        ];
        for (below, above, expected) in table {
            assert_eq!(merged(below, above), expected, "{below} + {above}");
        }
    }

    /// A second implementation of merging.
    fn model(below: &mut Map<String, Value>, above: Map<String, Value>) {
        for (key, value) in above {
            match (below.get_mut(&key), value) {
                (Some(Value::Object(lower)), Value::Object(upper)) => model(lower, upper),
                (_, value) => {
                    below.insert(key, value);
                }
            }
        }
    }

    fn maps() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<u8>().prop_map(Value::from), any::<bool>().prop_map(Value::from)];
        let value = leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| json!(map)),
            ]
        });
        prop::collection::btree_map("[a-d]", value, 0..4).prop_map(|map| json!(map))
    }

    proptest! {
        #[test]
        fn merging_is_what_the_model_says(below in maps(), above in maps()) {
            let mut expected = below.as_object().cloned().unwrap_or_default();
            model(&mut expected, above.as_object().cloned().unwrap_or_default());
            // JSON is YAML.
            prop_assert_eq!(merged(&below.to_string(), &above.to_string()), Value::Object(expected));
        }
    }
}
